import { expect, test } from 'vitest';
import { namesAccount } from './signs.ts';

test('an account is recognised by the names that were typed last, of which there are few', () => {
  const typed = Array.from({ length: 40 }, (_, at) => `name-${at}-x@shop.example`);
  expect(namesAccount(['Hello', 'Signed in as Name-39-X'], typed)).toBe(true);
  expect(namesAccount(['Signed in as name-0-x'], typed)).toBe(false);
  expect(namesAccount(['al'], ['al'])).toBe(false); // too short to be a sign
});
