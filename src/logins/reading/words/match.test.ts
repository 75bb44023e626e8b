import { expect, test } from 'vitest';
import { plain } from './match.ts';

test('a plain text is little longer than the text, also if each letter becomes eighteen', () => {
  const letter = '\uFDFA';
  for (const length of [1, 100, 2000]) expect(plain(letter.repeat(length)).length).toBeLessThanOrEqual(length + 32);
  expect(plain(letter)).toBe(letter.normalize('NFKC'));
});

test('a text in letters that are written as several is plain to its end', () => {
  expect(plain('각'.repeat(300))).toBe('각'.repeat(300));
  expect(plain('Ệ'.repeat(300))).toBe('e'.repeat(300));
  expect(plain(`${'…'.repeat(200)} Ｐａｓｓｗｏｒｄ`)).toBe('password');
});
