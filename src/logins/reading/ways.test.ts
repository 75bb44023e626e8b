import { expect, test } from 'vitest';
import { brief } from '../../../test/support/logins/brief.ts';
import { button, heading, input, link, snapshot, words, type Part } from '../../../test/support/logins/snapshot.ts';
import { read } from './read.ts';

const big = (label: string, at: number): Part =>
  button(label, { type: 'button', box: { x: 100 + at * 240, y: 200, width: 220, height: 60 } });
const reading = (...parts: (Part | Part[])[]) => read(snapshot(parts), { domain: 'shop.example' });

test.each([
  ['Guest access', 'Staff account'],
  ['Gastzugang', 'Mitarbeiterkonto'],
  ['Accès étudiants', 'Accès personnel'],
  ['ゲスト用アカウント', '職員用アカウント'],
])('two ways in are a choice: %s, %s', (one, other) => {
  const { kind, choices, next } = reading(heading('Reading room'), big(one, 0), big(other, 1));
  expect([kind, choices.map(({ label }) => label), next]).toEqual(['choice', [one, other], []]);
});

test.each<[string, Part[]]>([
  ['one way', [big('Staff account', 0)]],
  ['links of a shop', [link('Business', '/business'), link('Customers', '/customers'), link('Prices', '/prices')]],
])('%s is no choice', (_name, parts) => {
  expect(reading(heading('Orchard'), parts).kind).not.toBe('choice');
});

test.each<[string, Part[], string]>([
  ['a notice', [words('Initializing…')], 'blank'],
  [
    'a notice below a logo, with a button to load the page again',
    [link('Kiln', '/'), words('Initializing…'), button('Reload')],
    'blank',
  ],
  ['a way out above a notice', [button('Logout'), words('Loading…')], 'blank'],
  ['a shop with the word for it', [button('Logout'), words('Unser Laden')], 'signed_in'],
  ['a notice beside a link to the login', [link('Log in', '/login'), words('Loading…')], 'entry'],
  ['a notice beside a field', [input('Search'), words('Loading…')], 'unknown'],
  [
    'a page that waits for a phone',
    [heading('Sign in'), words('Approve the request on your phone. Please wait.'), button('Resend')],
    'external',
  ],
])('%s: its kind', (_name, parts, kind) => {
  const found = reading(parts);
  expect(found.kind, brief(found)).toBe(kind);
});

test('the way out of an account is named', () => {
  expect(reading(heading('Hello'), button('Log out')).wayOut).toBe('Log out');
});
