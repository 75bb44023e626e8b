import { expect, test } from 'vitest';
import { canHide, redactor } from './redact.ts';

test('values are hidden wherever they stand, the longer one first', () => {
  const redact = redactor(['secret', 'secret-and-more', 'secret']);
  expect(redact('a secret-and-more, a secret')).toBe('a [redacted], a [redacted]');
});

test('a value of several lines is hidden line by line, and as JSON has it', () => {
  const key = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n';
  const redact = redactor([key]);
  expect(key.split('\n').map(redact).join('|')).toBe('[redacted]|[redacted]|[redacted]|');
  expect(redact(JSON.stringify({ key }))).toBe('{"key":"[redacted]"}');
});

test('a long value that is cut is hidden as far as it is there', () => {
  const long = Array.from({ length: 80 }, (_, at) => `${at}-`).join('');
  expect(redactor([long])(`it is ${long.slice(0, 150)}`)).toBe('it is [redacted]');
  expect(redactor([long])(`${long}, ${long}!`)).toBe('[redacted], [redacted]!');
});

test('short values stay, since they are no secrets', () => {
  expect(redactor(['1', 'true', ''])('1 is true')).toBe('1 is true');
});

test('values that overlap are hidden together, and none hides the end of another', () => {
  expect(redactor(['abcdef', 'defghi'])('-abcdefghi-')).toBe('-[redacted]-');
  expect(redactor(['abcdef', 'xxabcdefxx'])('xxabcdefxx abcdef')).toBe('[redacted] [redacted]');
});

test('of long values with the same beginning, the value that occurs is hidden as far as it goes', () => {
  const head = 'abcdefgh'.repeat(8);
  const redact = redactor([`${head}-one-`, `${head}-other`, `${head}-one-more`]);
  expect(redact(`${head}-one-more|${head}-other|${head}-on|${head}`)).toBe(
    '[redacted]|[redacted]|[redacted]|[redacted]',
  );
});

test('a long value that begins like another value is hidden to its end', () => {
  const common = Array.from({ length: 30 }, (_, at) => `${at}.`).join('');
  const redact = redactor([`Bearer ${common}-of-the-first-token`, `${common}-of-the-second-token`]);
  expect(redact(`Authorization: Bearer ${common}-of-the-second-token; more`)).toBe('Authorization: [redacted]; more');
});

test('every line of values that can be hidden is hidden, and values with more lines hide everything', () => {
  const lines = (count: number) =>
    Array.from({ length: count }, (_, at) => `line ${at} of a certificate`.padEnd(64, '.'));
  const values = [lines(400).join('\n'), 'last "secret"'];
  expect(canHide(values)).toBe(true);
  const redact = redactor(values);
  expect(lines(400).filter((line) => redact(line) !== '[redacted]')).toEqual([]);
  expect(redact(JSON.stringify('last "secret"'))).toBe('"[redacted]"');
  const more = [lines(600).join('\n')];
  expect(canHide(more)).toBe(false);
  expect(redactor(more)('anything')).toBe('[redacted]');
});

test('as many values as a deployment has can be hidden, of any length', () => {
  expect(canHide(Array.from({ length: 200 }, (_, at) => `"${at}"`.repeat(200)))).toBe(true);
});
