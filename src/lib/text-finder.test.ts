import { expect, test } from 'vitest';
import { textFinder, withoutPlaces } from './text-finder.ts';

const without = (wanted: string[], text: string, headLength = 8) =>
  withoutPlaces(text, textFinder(wanted, headLength)(text), '_');

test('every text is found wherever it is, also at both ends', () => {
  expect(without(['one', 'three'], 'one, two, three')).toBe('_, two, _');
  expect(without(['one'], 'on')).toBe('on');
  expect(without([], 'one')).toBe('one');
});

test('texts that overlap are one place', () => {
  expect(textFinder(['abcd', 'cdef', 'bc'], 8)('-abcdef-')).toEqual([[1, 7]]);
});

test('a text that is longer than its head is found as far as it is there', () => {
  expect(without(['0123456789abc'], '0123456789abd 01234567 0123456')).toBe('_d _ 0123456');
});

test('a long text that begins in another long one is found to its end', () => {
  const [first, second] = ['>>0123456789-first', '0123456789-second'];
  expect(without([first, second], `a >>${second} b`)).toBe('a _ b');
});

test('a result is the same as that of a search for each text by itself', () => {
  let seed = 20_270_131;
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const word = (length: number) => Array.from({ length }, () => 'ab'[random(2)]).join('');
  for (let run = 0; run < 300; run++) {
    const wanted = Array.from({ length: 1 + random(5) }, () => word(2 + random(6)));
    const text = word(60);
    const covered = new Set<number>();
    for (const one of wanted)
      for (let at = text.indexOf(one); at !== -1; at = text.indexOf(one, at + 1))
        for (let place = at; place < at + one.length; place++) covered.add(place);
    const found = textFinder(
      wanted,
      8,
    )(text).flatMap(([from, to]) => Array.from({ length: to - from }, (_, more) => from + more));
    expect(found, `${wanted.join(' ')} in ${text}`).toEqual([...covered].sort((a, b) => a - b));
  }
});

test('every character of a long text is found, also beside other texts', () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const word = (length: number) => Array.from({ length }, () => 'ab'[random(2)]).join('');
  for (let run = 0; run < 300; run++) {
    const wanted = Array.from({ length: 1 + random(5) }, () => word(3 + random(20)));
    const text = word(20) + wanted[0] + word(5) + wanted.at(-1) + word(20);
    const places = textFinder(wanted, 4)(text);
    for (const one of wanted)
      for (let at = text.indexOf(one); at !== -1; at = text.indexOf(one, at + 1)) {
        const parts = places.filter(([from, to]) => from < at + one.length && to > at);
        const left =
          one.length - parts.reduce((sum, [from, to]) => sum + Math.min(to, at + one.length) - Math.max(from, at), 0);
        expect(left, `${wanted.join(' ')} in ${text}`).toBe(0);
      }
  }
});
