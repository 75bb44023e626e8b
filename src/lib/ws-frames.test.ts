import { expect, test } from 'vitest';
import { closePayload, isCloseCode, turnMask, unmask } from './ws-frames.ts';

test('unmasks at every offset and length as byte by byte', () => {
  const memory = Buffer.alloc(512);
  for (let offset = 0; offset < 8; offset++) {
    for (let length = 0; length < 200; length++) {
      const payload = memory.subarray(offset, offset + length).fill(0);
      unmask(payload, 0xa1b2c3d4 | 0);
      const mask = [0xd4, 0xc3, 0xb2, 0xa1];
      expect(payload.every((byte, i) => byte === mask[i & 3])).toBe(true);
    }
  }
});

test('unmasks in parts as at once', () => {
  const whole = Buffer.from(Array.from({ length: 300 }, (_, at) => at & 0xff));
  const mask = 0x12345678;
  const expected = Buffer.from(whole);
  unmask(expected, mask);
  for (let cut = 0; cut < whole.length; cut += 7) {
    const parts = Buffer.from(whole);
    unmask(parts.subarray(0, cut), mask);
    unmask(parts.subarray(cut), turnMask(mask, cut));
    expect(parts.equals(expected)).toBe(true);
  }
});

test('a close frame has room for 123 bytes of reason, in whole characters', () => {
  expect(closePayload(1000, '')).toEqual(Buffer.from([3, 232]));
  expect(closePayload(1000, 'x'.repeat(200))).toHaveLength(125);
  for (const character of ['é', '€', '😀']) {
    const size = Buffer.byteLength(character);
    for (let before = 0; before < size; before++) {
      const text = closePayload(1000, 'x'.repeat(before) + character.repeat(100)).toString('utf8', 2);
      const fits = Math.floor((123 - before) / size);
      expect(text).toBe('x'.repeat(before) + character.repeat(fits));
    }
  }
  // What has to be in it is not cut; the reason makes room for it.
  expect(closePayload(1008, 'é'.repeat(100), ' (req_1)').toString('utf8', 2)).toBe(`${'é'.repeat(57)} (req_1)`);
});

test('the codes that may stand in a close frame', () => {
  const ranges: [number, number][] = [];
  for (let code = 0; code < 65_536; code++) {
    if (!isCloseCode(code)) continue;
    if (ranges.at(-1)?.[1] === code - 1) ranges.at(-1)![1] = code;
    else ranges.push([code, code]);
  }
  expect(ranges).toEqual([
    [1000, 1003],
    [1007, 1014],
    [3000, 4999],
  ]);
});
