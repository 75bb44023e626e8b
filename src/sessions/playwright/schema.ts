import { Type, type Static } from 'typebox';
import { named } from '../../api/schema.ts';

export const ExecuteRequest = named(
  'ExecutePlaywrightRequest',
  Type.Object(
    {
      code: Type.String({
        maxLength: 1_000_000,
        description:
          'The body of an async function, in TypeScript or JavaScript, with page, context and browser in scope. Its return value is `result`.',
      }),
      timeout_sec: Type.Optional(Type.Integer({ minimum: 1, maximum: 300, default: 60 })),
    },
    { additionalProperties: false },
  ),
);

export const ExecuteResult = named(
  'ExecutePlaywrightResult',
  Type.Object({
    success: Type.Boolean({
      description: 'Whether the code ran to its end. Its own errors are not errors of the API.',
    }),
    result: Type.Optional(Type.Unsafe<unknown>({ description: 'The return value; null for none.' })),
    error: Type.Optional(Type.String({ description: 'The error of the code.' })),
    stdout: Type.Optional(Type.String()),
    stderr: Type.Optional(Type.String({ description: 'With the stack of the error.' })),
  }),
);

export type ExecuteRequest = Static<typeof ExecuteRequest>;
export type ExecuteResult = Static<typeof ExecuteResult>;
