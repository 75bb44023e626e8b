import { expect, test } from 'vitest';
import { readSince } from './since.ts';

const now = Date.UTC(2026, 0, 31, 12);

test.each([
  ['5m', '2026-01-31T11:55:00.000Z'],
  ['1h30m', '2026-01-31T10:30:00.000Z'],
  ['90s', '2026-01-31T11:58:30.000Z'],
  ['2d', '2026-01-29T12:00:00.000Z'],
  ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000Z'],
])('since %s is %s', (text, at) => expect(readSince(text, now)?.toISOString()).toBe(at));

test('left out, it is none', () => expect(readSince(undefined)).toBeNull());

test.each(['yesterday', '5', '5x', 'm5', '2026-99-01', '5m '])('since %s is refused', (text) =>
  expect(() => readSince(text)).toThrow(/since is/),
);
