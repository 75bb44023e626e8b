import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Placed } from './nodes/anywhere.ts';
import { spreading } from './placement.ts';
import type { PoolToFill } from './store.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const pool = (warmingOn: Record<string, number> = {}, last_error: string | null = null) =>
  ({ id: 'p', warmingOn, last_error }) as unknown as PoolToFill;
const open = () => false;

/** Two nodes with room, `here` first. */
function pair(answers: { here?: Placed; there?: Placed } = {}) {
  const made: string[] = [];
  const failures: string[] = [];
  const state = { nodes: ['here', 'there'], pausedUntil: 0, placed: 0 };
  const spread = spreading({
    store: { recordFailure: async (_, message) => void failures.push(message) },
    nodeId: 'here',
    place: (except) => state.nodes.find((node) => !except.has(node)),
    async makeHere() {
      made.push('here');
      return answers.here ?? 'placed';
    },
    async makeAt(target) {
      made.push(target);
      return answers.there ?? 'placed';
    },
    pausedUntil: () => state.pausedUntil,
    onPlaced: () => void state.placed++,
  });
  return { spread, state, made, failures, answers };
}

test('a node gets two browsers of a pool at once, those under way included, and the rest is looked at again soon', async () => {
  const { spread, made, state } = pair();
  expect(await spread.launch(pool({ here: 1 }), 5, open)).toBe(250);
  expect(made).toEqual(['here', 'there', 'there']);
  expect(state.placed).toBe(3);
});

test('the requested browsers are placed, and none are left', async () => {
  const { spread, made } = pair();
  expect(await spread.launch(pool(), 1, open)).toBeUndefined();
  expect(made).toEqual(['here']);
});

test('a node that refuses is not asked again for a while', async () => {
  const { spread, made, state } = pair({ there: 'refused' });
  state.nodes.reverse();
  await spread.launch(pool(), 1, open);
  expect(made).toEqual(['there', 'here']);
  expect(spread.unfit('p')).toEqual(['there']);
  vi.advanceTimersByTime(15_000);
  expect(spread.unfit('p')).toEqual([]);
});

test('a full node is tried again the next time', async () => {
  const { spread, made } = pair({ here: 'node_full' });
  await spread.launch(pool(), 1, open);
  expect(made).toEqual(['here', 'there']);
  expect(spread.unfit('p')).toEqual([]);
});

test('while launches fail here, the pool is looked at again when the pause is over', async () => {
  const { spread, made, state } = pair();
  state.nodes = ['here'];
  state.pausedUntil = performance.now() + 700;
  expect(spread.unfit('p')).toEqual(['here']);
  expect(await spread.launch(pool(), 1, open)).toBe(700);
  expect(made).toEqual([]);
});

test.each([
  ['pool_full', undefined],
  ['project_full', 2000],
] as const)('%s ends the round', async (placed, pause) => {
  const { spread, made } = pair({ here: placed });
  expect(await spread.launch(pool(), 3, open)).toBe(pause);
  expect(made).toEqual(['here']);
});

test('a lack of room is reported when it lasts, and once', async () => {
  const { spread, state, failures } = pair();
  state.nodes = [];
  expect(await spread.launch(pool(), 1, open)).toBe(2000);
  vi.advanceTimersByTime(9000);
  await spread.launch(pool(), 1, open);
  expect(failures).toEqual([]);
  vi.advanceTimersByTime(1000);
  await spread.launch(pool(), 1, open);
  await spread.launch(pool({}, 'reported'), 1, open);
  expect(failures).toEqual([expect.stringContaining('No node has room')]);
});

test('nothing more is placed once the service closes', async () => {
  const { spread, made } = pair();
  await spread.launch(pool(), 3, () => made.length > 0);
  expect(made).toEqual(['here']);
});
