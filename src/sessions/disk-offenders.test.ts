import { expect, test } from 'vitest';
import { diskOffenders } from './disk-offenders.ts';

test('a project waits longer each time its session was ended for the disk, and is forgiven in the end', () => {
  let ms = 0;
  const { add, secondsLeft, waiting } = diskOffenders(() => ms);
  expect(secondsLeft('greedy')).toBe(0);
  const waits = Array.from({ length: 9 }, () => {
    add('greedy');
    const wait = secondsLeft('greedy');
    expect(waiting()).toEqual(['greedy']);
    ms += wait * 1000;
    expect(secondsLeft('greedy')).toBe(0);
    expect(waiting()).toEqual([]);
    return wait;
  });
  expect(waits).toEqual([10, 20, 40, 80, 160, 320, 600, 600, 600]);
  expect(secondsLeft('calm')).toBe(0);
  ms += 10 * 60_000;
  add('greedy');
  expect(secondsLeft('greedy')).toBe(10);
});

test('the project that offended longest ago is forgotten when there are too many', () => {
  const { add, secondsLeft } = diskOffenders(() => 0);
  for (let n = 0; n <= 1000; n++) add(`project-${n}`);
  expect(secondsLeft('project-0')).toBe(0);
  expect(secondsLeft('project-1')).toBe(10);
});
