import { expect, test } from 'vitest';
import { isAtPage, isSameAddress, keptAddress } from './addresses.ts';

const at = (rest: string) => `https://shop.example/app${rest}`;

test.each([
  ['#/orders', '#/orders'],
  ['#!/orders/7', '#!/orders/7'],
  ['#/orders?page=2', '#/orders'],
  ['#orders', '#orders'],
  ['#!orders', '#!orders'],
  ['#tab=orders&sort=date', '#tab=orders&sort=date'],
  ['#access_token=abc', ''],
  ['#tab=orders&id_token=abc', ''],
  ['#_=_', ''],
  ['#a8f7d6c5b4a3f2e1d0c9', ''],
  ['#eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0', ''],
])('of the fragment %s is kept: %s', (given, kept) => {
  expect(keptAddress(at(given))).toBe(at(kept));
});

test('an address is at a page with the same words in its query and its fragment', () => {
  expect(isAtPage(at('?page=home&ts=12#orders'), at('?page=home&ts=7#orders'))).toBe(true);
  expect(isAtPage(at('?page=home&more=x'), at('?page=home'))).toBe(true);
  expect(isAtPage(at('?page=login'), at('?page=home'))).toBe(false);
  expect(isAtPage(at('#signin'), at('#orders'))).toBe(false);
  expect(isAtPage(at('#orders'), at(''))).toBe(true);
});

test('pages that differ in their query are two, unless it only handed a login over', () => {
  expect(isSameAddress(at('?page=login'), at('?page=home'))).toBe(false);
  expect(isSameAddress(at('?page=home&code=abc'), at('?page=home'))).toBe(true);
});
