import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { watchLoop, type LoopWatch } from './loop-stops.ts';

let watch: LoopWatch | undefined;
afterEach(() => watch?.close());

function stopFor(ms: number) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test('a stop is reported with its length, and is the longest until a longer one comes', async () => {
  const stops: number[] = [];
  watch = watchLoop((ms) => stops.push(ms));
  stopFor(150);
  await sleep(110);
  expect(stops).toEqual([]); // it has not started
  watch.start();
  for (const ms of [150, 300, 200]) {
    await sleep(110);
    stopFor(ms);
    await sleep(30);
  }
  await expect.poll(() => stops.length).toBeGreaterThanOrEqual(3);
  expect(watch.longest()!.ms).toBeGreaterThanOrEqual(300);
  expect(watch.longest()!.ms).toBe(Math.max(...stops));
  expect(watch.longestMs()).toBe(watch.longest()!.ms);
  expect(Date.now() - watch.longest()!.at.getTime()).toBeLessThan(60_000);
});

test('the time that a loop waits is no stop', async () => {
  watch = watchLoop();
  watch.start();
  const before = performance.eventLoopUtilization();
  await sleep(300);
  // Other tests share this process, so it may have had work.
  expect(watch.longestMs()).toBeLessThanOrEqual(performance.eventLoopUtilization(before).active);
});
