import { expect, test } from 'vitest';
import { seededRandom } from '../../../test/support/random.ts';
import { naturalMs, smoothWay, straightWay } from './motion.ts';

test('every way ends exactly at its goal, in whole pixels', () => {
  const random = seededRandom(5);
  const real = () => random(1_000_000) / 1_000_000;
  for (let round = 0; round < 500; round++) {
    const from = { x: random(2000), y: random(1200) };
    const to = { x: random(2000), y: random(1200) };
    for (const way of [smoothWay(from, to, 50 + random(1000), real), straightWay(from, to, 1 + random(50))]) {
      expect(way.at(-1)).toEqual(to);
      expect(way.every(({ x, y }) => Number.isInteger(x) && Number.isInteger(y))).toBe(true);
    }
  }
});

test('a hand never moves along a ruler', () => {
  const [from, to] = [
    { x: 0, y: 300 },
    { x: 300, y: 300 },
  ];
  for (const chance of [0, 0.5, 0.999_999]) {
    const off = smoothWay(from, to, 300, () => chance).map(({ y }) => Math.abs(y - 300));
    expect(Math.max(...off)).toBeGreaterThan(1);
  }
});

test('a hand takes longer for a longer way, but never long', () => {
  const start = { x: 0, y: 0 };
  const times = [0, 10, 100, 1000, 10_000].map((x) => naturalMs(start, { x, y: 0 }));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(times.at(-1)).toBeLessThanOrEqual(900);
});
