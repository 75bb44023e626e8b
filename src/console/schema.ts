import { Type } from 'typebox';
import { named } from '../api/schema.ts';

export const SignIn = named(
  'ConsoleSignInRequest',
  Type.Object({
    code: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The code of a sign-in link: the value of `#code=` in its address. It works once.',
    }),
  }),
);
