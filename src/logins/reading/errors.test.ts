import { describe, expect, test } from 'vitest';
import {
  alert,
  button,
  form,
  input,
  password,
  snapshot,
  words,
  type Part,
} from '../../../test/support/logins/snapshot.ts';
import { read } from './read.ts';
import type { ReadContext } from './types.ts';

const context: ReadContext = { domain: 'shop.example' };
const loginForm = (user: string, secret: string, send: string): Part[] =>
  form([input(user), password(secret), button(send)]);

const errors: [string, Part, Partial<ReadContext>, string | undefined][] = [
  ['by role', alert('Invalid email or password.'), { submitted: ['password'] }, 'credentials fresh'],
  ['by class', words('Falsches Passwort', { classes: 'form-error' }), { submitted: ['password'] }, 'credentials fresh'],
  [
    'by place and being new, in no language',
    words('Brmpf grumpf'),
    { submitted: ['identifier', 'password'] },
    'credentials fresh',
  ],
  [
    'that asks for the right data, in Polish',
    words('Wprowadź poprawne dane w polach „nazwa użytkownika” i „hasło” dla konta należącego do zespołu.', {
      classes: 'errornote',
    }),
    { submitted: ['identifier', 'password'] },
    'credentials fresh',
  ],
  [
    'that asks for the right data',
    alert('Please enter the right details.'),
    { submitted: ['identifier', 'password'] },
    'credentials fresh',
  ],
  ['of a field that is empty', alert('Please enter your name.'), { submitted: ['identifier'] }, 'other fresh'],
  ['of a lock', alert('Konto gesperrt'), { submitted: ['password'] }, 'locked fresh'],
  [
    'that warns of a lock',
    alert('Wrong password. 2 attempts remaining before your account is locked.'),
    { submitted: ['password'] },
    'credentials fresh',
  ],
  ['of too many tries', alert('Too many attempts. Try again in 5 minutes.'), { submitted: ['password'] }, 'rate fresh'],
  ['of the site itself', alert('Something went wrong.'), { submitted: ['password'] }, 'other fresh'],
  ['of a code', alert('The code is invalid.'), { submitted: ['code'] }, 'code fresh'],
  [
    'nothing',
    words('We are here for you.', { formKey: 'other', box: { x: 0, y: 3000, width: 300, height: 20 } }),
    { submitted: ['password'] },
    undefined,
  ],
];

describe('after a submit an error is known', () => {
  test.each(errors)('%s', (_, part, more, expected) => {
    const before = snapshot([loginForm('Email', 'Password', 'Log in')]);
    const after = snapshot([form([part]), loginForm('Email', 'Password', 'Log in')]);
    const { error } = read(after, { ...context, before, ...more });
    expect(error && `${error.kind}${error.fresh ? ' fresh' : ''}`).toBe(expected);
  });

  test('a text that was there before is not new', () => {
    const page = snapshot([alert('Your session has expired.'), loginForm('Email', 'Password', 'Log in')]);
    expect(read(page, { ...context, before: page, submitted: ['password'] }).error).toMatchObject({ fresh: false });
  });

  test('a count of failures of an application is no refusal', () => {
    const before = snapshot([loginForm('Email', 'Password', 'Log in')]);
    const links = ['Jobs', 'Hosts', 'Users', 'Reports'].map((label) => button(label, { tag: 'a' }));
    const after = snapshot([...links, words('3 failed', { classes: 'badge badge-danger' })]);
    const reading = read(after, { ...context, before, submitted: ['identifier', 'password'] });
    expect(reading).toMatchObject({ kind: 'signed_in' });
    expect(reading.error).toBeUndefined();
  });
});
