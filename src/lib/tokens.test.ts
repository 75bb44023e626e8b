import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { keyring } from './seal.ts';
import { tokens } from './tokens.ts';

const [older, newer] = [randomBytes(32), randomBytes(32)];
const claims = { sub: 'session', aud: 'cdp', exp: 1000 };
const at = (seconds: number, ...keys: Buffer[]) =>
  tokens(
    () => keyring(keys),
    () => seconds * 1000,
  );

test('a token returns its signed content, until it expires', () => {
  const token = at(0, older).sign(claims);
  expect(at(999, older).verify(token)).toEqual(claims);
  expect(at(1000, older).verify(token)).toBe('expired');
});

test('a token signed with an older key is good for as long as that key is kept', () => {
  const token = at(0, older).sign(claims);
  expect(at(1, newer, older).verify(token)).toEqual(claims);
  expect(at(1, newer).verify(token)).toBe('forged');
});

test('nothing else is a token', () => {
  const [header, payload, signature] = at(0, older).sign(claims).split('.') as [string, string, string];
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const verify = (...parts: string[]) => at(1, older).verify(parts.join('.'));
  expect(verify(header, encode({ ...claims, aud: 'live' }), signature)).toBe('forged');
  expect(verify(encode({ alg: 'none' }), payload, '')).toBe('malformed');
  expect(verify(encode({ alg: 'none', typ: 'JWT' }), payload, signature)).toBe('forged');
  expect(verify(header, payload, signature.slice(0, -2))).toBe('forged');
  for (const text of ['', '.', '..', 'a.b', 'a.b.c.d', '...']) expect(at(1, older).verify(text)).toBe('malformed');
});
