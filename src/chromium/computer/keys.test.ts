import { expect, test } from 'vitest';
import { chord, keyNamed, type Key } from './keys.ts';

const keysyms = (text: string) => {
  const keys = chord(text);
  return typeof keys === 'string' ? `no key: ${keys}` : keys.map(({ keysym }: Key) => keysym);
};

test('knows keys by the names that X11 and people give them', () => {
  expect(keysyms('Ctrl+t')).toEqual([0xffe3, 0x74]);
  expect(keysyms('ctrl+shift+TAB')).toEqual([0xffe3, 0xffe1, 0xff09]);
  expect(keysyms('Ctrl++')).toEqual([0xffe3, 0x2b]);
  expect(keysyms('+')).toEqual([0x2b]);
  expect(keysyms('plus')).toEqual([0x2b]);
  expect(keysyms('A')).toEqual([0x41]);
  expect(keysyms('Enter')).toEqual(keysyms('Return'));
  expect(keysyms('PageDown')).toEqual(keysyms('Next'));
  expect(keysyms('F12')).toEqual([0xffc9]);
  expect(keysyms('ä')).toEqual([0xe4]);
  expect(keysyms('€')).toEqual([0x10020ac]);
  expect(keysyms('U+20AC')).toEqual([0x10020ac]);
  expect(keysyms('😀')).toEqual([0x101f600]);
});

test('names the part of a chord that is not a key', () => {
  expect(keysyms('Ctrl+Nothing')).toBe('no key: Nothing');
  expect(keysyms('')).toBe('no key: ');
  expect(keysyms('Ctrl+')).toBe('no key: ');
  expect(keysyms('U+D800')).toMatch(/^no key/);
  expect(keyNamed('\u0007')).toBeUndefined();
  expect(keyNamed('constructor')).toBeUndefined();
});
