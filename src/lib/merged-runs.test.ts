import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { mergedRuns } from './merged-runs.ts';

/** Work with runs that end when the test says so. */
function gated() {
  const runs: { key: string; end: (error?: Error) => void }[] = [];
  const work = (key: string) =>
    new Promise<void>((resolve, reject) => {
      runs.push({ key, end: (error) => (error ? reject(error) : resolve()) });
    });
  return { runs, work };
}

test('calls during a run become one more run', async () => {
  const { runs, work } = gated();
  const run = mergedRuns(work);
  const calls = [run('a'), run('a'), run('a')];
  expect(runs).toHaveLength(1);
  runs[0]!.end();
  await turn();
  expect(runs).toHaveLength(2);
  runs[1]!.end();
  await Promise.all(calls);
  expect(runs).toHaveLength(2);
});

test('other keys do not wait', () => {
  const { runs, work } = gated();
  const run = mergedRuns(work);
  void run('a');
  void run('b');
  expect(runs.map(({ key }) => key)).toEqual(['a', 'b']);
});

test('a call in any turn after the last look starts a run', async () => {
  for (let turns = 0; turns < 8; turns++) {
    const { runs, work } = gated();
    const run = mergedRuns(work);
    const first = run('a');
    runs[0]!.end();
    for (let passed = 0; passed < turns; passed++) await Promise.resolve();
    void run('a');
    await turn();
    expect(runs, `after ${turns} turns`).toHaveLength(2);
    runs[1]!.end();
    await first;
  }
});

test('a failure reaches every caller, and the next call runs again', async () => {
  const { runs, work } = gated();
  const run = mergedRuns(work);
  const calls = [run('a'), run('a')];
  runs[0]!.end(new Error('no database'));
  for (const call of calls) await expect(call).rejects.toThrow('no database');
  void run('a');
  expect(runs).toHaveLength(2);
});

test('a call while the work begins is merged, too', async () => {
  let runs = 0;
  let inner: Promise<void> | undefined;
  const run: () => Promise<void> = mergedRuns(async () => {
    if (++runs === 1) inner = run();
    await turn();
  });
  const over: string[] = [];
  const outer = run().then(() => over.push('outer'));
  await inner!.then(() => over.push('inner'));
  await outer;
  expect(runs).toBe(2);
  expect(over).toHaveLength(2);
});
