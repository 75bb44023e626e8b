import { expect, test } from 'vitest';
import { storeIdOf, zipOffset } from './crx.ts';

test('the zip begins after the header of a CRX of each version', () => {
  const head = (...numbers: number[]) => {
    const bytes = Buffer.alloc(16);
    bytes.write('Cr24');
    numbers.forEach((number, index) => bytes.writeUInt32LE(number, 4 + 4 * index));
    return bytes;
  };
  expect(zipOffset(head(3, 100))).toBe(112);
  expect(zipOffset(head(2, 20, 30))).toBe(66);
  expect(zipOffset(head(1, 20))).toBeUndefined();
  expect(zipOffset(Buffer.from('PK\x03\x04 a zip as it is'))).toBeUndefined();
  expect(zipOffset(Buffer.from('Cr24'))).toBeUndefined();
});

const id = 'ddkjiahejlhfcafbddmgiahcphecmpfh';
test.each([
  [`https://chromewebstore.google.com/detail/ublock-origin-lite/${id}`, id],
  [`https://chromewebstore.google.com/detail/${id}?hl=de`, id],
  [`https://chrome.google.com/webstore/detail/ublock-origin-lite/${id}/related`, id],
  [`https://chromewebstore.google.com/detail/ublock/${id.slice(1)}`, undefined],
  [`https://example.com/detail/ublock-origin-lite/${id}`, undefined],
  [`http://chromewebstore.google.com/detail/x/${id}`, undefined],
  ['nonsense', undefined],
])('%s names %s', (url, expected) => {
  expect(storeIdOf(url)).toBe(expected);
});
