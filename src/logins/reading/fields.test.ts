import { expect, test } from 'vitest';
import { button, form, input, password, snapshot } from '../../../test/support/logins/snapshot.ts';
import { read } from './read.ts';

test('a field is named by the text beside it, and not by its tooltip', () => {
  const server = input('hostname[:port]', {
    labels: [],
    title: 'hostname[:port]',
    placeholder: 'localhost',
    near: 'Server',
  });
  const { fields } = read(
    snapshot([form([server, input('Username'), password('Password'), button('Login')])], {
      url: 'https://shop.example/login',
    }),
    { domain: 'shop.example' },
  );
  expect(fields.map(({ label }) => label)).toEqual(['Server', 'Username', 'Password']);
});
