import { expect, test, vi } from 'vitest';
import { field } from '../../../test/support/logins/scripted-site.ts';
import { leftFor, nameFor, namesFor, valueFor } from './values.ts';

test.each([
  ['the same name', field('identifier', 'username'), { username: 'a' }, 'a'],
  ['another name for it', field('identifier', 'username'), { Login: 'a' }, 'a'],
  ['a mail address for a user name', field('identifier', 'username'), { 'E-Mail': 'a@b.example' }, 'a@b.example'],
  ['the mail address before the user name', field('identifier', 'email'), { user: 'a', email: 'b' }, 'b'],
  ['a password', field('password', 'password'), { pwd: 'a', username: 'b' }, 'a'],
  ['a tenant', field('text', 'tenant'), { Workspace: 'a' }, 'a'],
  ['a label', field('text', 'text', { label: 'Mother’s maiden name' }), { mothers_maiden_name: 'a' }, 'a'],
  [
    'an option by its label',
    field('text', 'account_type', { options: [option('2', 'LDAP')] }),
    { account_type: 'ldap' },
    '2',
  ],
  ['no option', field('text', 'account_type', { options: [option('2', 'LDAP')] }), { account_type: 'x' }, undefined],
  ['an empty value', field('password', 'password'), { password: '' }, undefined],
  ['a new password', field('password', 'new_password'), { password: 'a' }, undefined],
  ['a code', field('code', 'code'), { code: '123456' }, undefined],
  [
    'no password outside of a password field',
    field('text', 'text', { label: 'Password' }),
    { password: 'a' },
    undefined,
  ],
  ['nothing that fits', field('identifier', 'username'), { password: 'a' }, undefined],
])('a field takes %s', (_name, asked, values, found) => {
  expect(valueFor(asked, values)?.value).toBe(found);
});

function option(value: string, label: string) {
  return { value, label, selected: false };
}

test('a person’s value is kept under the name that the credential has for it', () => {
  expect(nameFor(field('identifier', 'username'), { Login: 'a' })).toBe('Login');
  expect(nameFor(field('password', 'new_password'), { pwd: 'a' })).toBe('pwd');
  expect(nameFor(field('text', 'text', { label: 'Mother’s maiden name' }), {})).toBe('mother_s_maiden_name');
});

test('the needs of a login are compared with the names of the values', () => {
  expect(['username', 'password', 'tenant'].map(namesFor(['E-Mail', 'pwd']))).toEqual([true, true, false]);
});

test('a word of the language is no name that people use for a value', () => {
  expect(['constructor', '__proto__'].map(namesFor(['password']))).toEqual([false, false]);
  expect(valueFor(field('text', 'constructor' as 'text', { label: 'A' }), { password: 'a' })).toBeUndefined();
});

test('the values of a credential are read once for all fields of a page', () => {
  const values = Object.fromEntries(
    Array.from({ length: 100 }, (_, at) => [`value ${at}`, `${at}${'X'.repeat(9_990)}`]),
  );
  const selects = Array.from({ length: 20 }, (_, at) =>
    field('text', 'text', {
      label: `Select ${at}`,
      options: Array.from({ length: 100 }, (__, one) => option(`o${one}`, `Option ${one} ${'x'.repeat(280)}`)),
    }),
  );
  let characters = 0;
  for (const name of ['toLowerCase', 'trim', 'normalize', 'replace'] as const) {
    const original = String.prototype[name] as (...args: unknown[]) => string;
    vi.spyOn(String.prototype, name).mockImplementation(function (this: string, ...args: unknown[]) {
      characters += this.length;
      return original.apply(this, args);
    } as never);
  }
  try {
    for (const select of selects) {
      expect(valueFor(select, values)).toBeUndefined();
      expect(leftFor(select, values, new Set())).toBeUndefined();
    }
  } finally {
    vi.restoreAllMocks();
  }
  const given = 100 * 10_000 + 20 * 100 * 300;
  expect(characters).toBeLessThan(6 * given);
});

test('a value that is the label of one option, or within one, is taken for it', () => {
  const select = field('text', 'text', {
    label: 'Office',
    options: [option('1', 'Acme (Berlin)'), option('2', 'Other')],
  });
  for (const value of ['acme', ' ACME (berlin) ', '1'])
    expect(leftFor(select, { place: value, password: 'secret-one' }, new Set())).toEqual({ name: 'place', value: '1' });
});
