import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { errors } from '../errors.ts';
import { silent } from '../lib/log.ts';
import { poolLaunches } from './launches.ts';
import type { PoolRow } from './store.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const pool = (last_error: string | null = null) => ({ id: 'p', last_error }) as PoolRow;

function launching(make: (onPlaced: () => void) => Promise<string>) {
  const calls: string[] = [];
  const state = { shelved: 'shelved' as 'shelved' | 'expelled' };
  const launches = poolLaunches({
    store: {
      shelve: async () => state.shelved,
      recordSuccess: async () => void calls.push('success'),
      recordFailure: async (_, message) => void calls.push(`failure: ${message}`),
    },
    make: (_, onPlaced) => make(onPlaced),
    retire: (_, ids) => void calls.push(`retired ${ids.join()}`),
    onShelved: () => void calls.push('shelved'),
    onLaunched: (outcome) => void calls.push(outcome),
    onFailed: () => void calls.push('missing'),
    onOver: () => void calls.push('over'),
    log: silent,
  });
  return { launches, calls, state };
}

test('a launch is placed before it is over', async () => {
  let up = (_id: string) => {};
  const { launches, calls } = launching((onPlaced) => {
    onPlaced();
    return new Promise((resolve) => (up = resolve));
  });
  expect(await launches.start(pool('no room'))).toBe('placed');
  expect(calls).toEqual([]);
  up('s1');
  await launches.settled();
  expect(calls).toEqual(['launched', 'success', 'shelved', 'over']);
});

test('a launch that fails after it was placed leaves its browser missing, and one that is refused does not', async () => {
  let places = true;
  const { launches, calls } = launching(async (onPlaced) => {
    if (places) onPlaced();
    throw new Error('Chromium does not start.');
  });
  expect(await launches.start(pool())).toBe('placed');
  await launches.settled();
  expect(calls).toEqual(['failed', 'failure: Chromium does not start.', 'missing', 'over']);
  places = false;
  expect(await launches.start(pool())).toBe('refused');
  await launches.settled();
  expect(calls.slice(4)).toEqual(['failed', 'failure: Chromium does not start.', 'over']);
});

test('a browser is retired if its pool changed during the launch', async () => {
  const { launches, calls, state } = launching(async () => 's1');
  state.shelved = 'expelled';
  await launches.start(pool());
  await launches.settled();
  expect(calls).toEqual(['launched', 'retired s1', 'over']);
});

test('launches that fail pause the pool here, longer each time and at most a minute', async () => {
  let fails = true;
  const { launches } = launching(async () => {
    if (fails) throw new Error('Chromium does not start.');
    return 's1';
  });
  const pauses = [];
  for (let count = 0; count < 9; count++) {
    expect(await launches.start(pool())).toBe('refused');
    pauses.push((launches.pausedUntil('p') - performance.now()) / 1000);
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  fails = false;
  await launches.start(pool());
  expect(launches.pausedUntil('p')).toBe(0);
});

test.each([
  [errors.pool_full({ pool: 'p' }), 'pool_full', []],
  [errors.shutting_down(), 'node_full', []],
  [errors.capacity_exhausted({ running: 1, most: 1 }), 'node_full', []],
  [errors.session_limit_reached({ active: 1, kept: 0, cap: 1 }), 'project_full', [expect.stringMatching(/^failure: /)]],
])('%s pauses nothing', async (error, placed, recorded) => {
  const { launches, calls } = launching(async () => {
    throw error;
  });
  expect(await launches.start(pool())).toBe(placed);
  expect(launches.pausedUntil('p')).toBe(0);
  await launches.settled();
  expect(calls).toEqual([...recorded, 'over']);
});
