import { expect, test } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { launchTrial } from './launch-trial.ts';

function setUp(starts: (Error | 'works')[]) {
  let time = 1_000_000;
  let startedAt: number | undefined;
  const seen: string[] = [];
  const trial = launchTrial(
    {
      startedAt: () => startedAt,
      async start() {
        seen.push('start');
        const how = starts.shift() ?? 'works';
        if (how !== 'works') throw how;
        startedAt = time;
        return { ...fakeEngine().engine, close: async () => void seen.push('close') };
      },
      remove: async () => void seen.push('remove'),
    },
    () => time,
  );
  return { trial, seen, pass: (ms: number) => void (time += ms) };
}

test('the first question launches a browser and leaves nothing of it; the next ones rest on that for a minute', async () => {
  const { trial, seen, pass } = setUp([]);
  expect(await Promise.all([trial.check(), trial.check()])).toEqual([undefined, undefined]);
  expect(seen).toEqual(['start', 'close', 'remove']);
  pass(59_000);
  expect(await trial.check()).toBeUndefined();
  expect(seen).toHaveLength(3);
  pass(2000);
  expect(await trial.check()).toBeUndefined();
  expect(seen).toHaveLength(6);
});

test('a failed launch is reported, and not repeated for every caller', async () => {
  const { trial, seen, pass } = setUp([new Error('no memory')]);
  expect(await trial.check()).toBe('A browser could not be launched: no memory');
  expect(await trial.check()).toBe('A browser could not be launched: no memory');
  expect(seen).toEqual(['start', 'remove']);
  pass(11_000);
  expect(await trial.check()).toBeUndefined();
});
