import { expect, test } from 'vitest';
import { field } from '../../../test/support/logins/scripted-site.ts';
import { missingKeys, nameFor, valueFor } from './values.ts';

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

test('what a person types is kept under the name that the credential has for it', () => {
  expect(nameFor(field('identifier', 'username'), { Login: 'a' })).toBe('Login');
  expect(nameFor(field('password', 'new_password'), { pwd: 'a' })).toBe('pwd');
  expect(nameFor(field('text', 'text', { label: 'Mother’s maiden name' }), {})).toBe('mother_s_maiden_name');
});

test('what a login needs is held against the names of the values', () => {
  expect(missingKeys(['username', 'password', 'tenant'], ['E-Mail', 'pwd'])).toEqual(['tenant']);
});
