import { expect, test } from 'vitest';
import { hasCertificates } from './pem.ts';
import { commaList, withoutEnd, withoutStart } from './text.ts';

test('a text loses what it has of a character at its ends', () => {
  expect(withoutEnd('/a//b///', '/')).toBe('/a//b');
  expect(withoutEnd('///', '/')).toBe('');
  expect(withoutEnd('E-mail: * ', /[\s:*]/)).toBe('E-mail');
  expect(withoutStart('//a/', '/')).toBe('a/');
});

test('a list with commas is split at them, without blanks', () => {
  expect(commaList(' close,  X-A ,, \t')).toEqual(['close', 'X-A']);
});

test('certificates are those that begin, end and can be read', () => {
  const block = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  for (const text of ['', 'text', '-----BEGIN CERTIFICATE-----', block]) expect(hasCertificates(text)).toBe(false);
});
