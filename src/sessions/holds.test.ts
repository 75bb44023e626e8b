import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { sessionHolds } from './holds.ts';
import type { Ending } from './state.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

function house() {
  const { engine } = fakeEngine();
  const state = {
    seen: [] as string[],
    ending: undefined as Ending | undefined,
    timeoutSeconds: 60 as number | undefined,
    wake: async () => engine,
  };
  const holds = sessionHolds({
    wake: () => state.wake(),
    dozeOff: () => void state.seen.push('doze off'),
    stayUp: () => void state.seen.push('stay up'),
    timeoutSeconds: () => state.timeoutSeconds,
    until: () => new AbortController().signal,
    ending: () => state.ending,
    onHold: () => void state.seen.push('held'),
    onIdle: () => void state.seen.push('idle'),
  });
  holds.restartTimers();
  return { holds, state };
}

test('a session idles out after its timeout without a use, and not while there is one', async () => {
  const { holds, state } = house();
  expect(holds.endsAt).toEqual(new Date(Date.now() + 60_000));
  await pass(59_000);
  const [first, second] = [await holds.hold(), await holds.hold()];
  await pass(120_000);
  expect([holds.endsAt, holds.count]).toEqual([undefined, 2]);
  first.release();
  first.release(); // giving back twice is giving back once
  await pass(120_000);
  expect(state.seen).not.toContain('idle');
  second.release();
  expect(holds.inUse).toBe(false);
  await pass(60_000);
  expect(state.seen.at(-1)).toBe('idle');
});

test('activity in it keeps it awake, but it may idle out', async () => {
  const { holds, state } = house();
  const held = await holds.hold();
  const over = held.stayAwake();
  held.release();
  expect([holds.any, holds.inUse]).toEqual([false, true]);
  await pass(60_000);
  expect(state.seen.at(-1)).toBe('idle');
  over();
  over();
  expect(holds.inUse).toBe(false);
  expect(state.seen.at(-1)).toBe('doze off');
});

test('a wake that fails holds nothing; a session that has ended says so', async () => {
  const { holds, state } = house();
  state.wake = () => Promise.reject(new Error('It does not wake.'));
  await expect(holds.hold()).rejects.toThrow('It does not wake.');
  expect(holds.any).toBe(false);
  state.wake = async () => {
    state.ending = 'crashed';
    throw new Error('It does not wake.');
  };
  await expect(holds.hold()).rejects.toMatchObject({ name: 'SessionEnded', reason: 'crashed' });
  state.seen.length = 0;
  await expect(holds.hold()).rejects.toMatchObject({ name: 'SessionEnded' });
  expect(state.seen).toEqual([]); // nothing was begun
});

test('without a timeout it waits for as long as it takes', async () => {
  const { holds, state } = house();
  state.timeoutSeconds = undefined;
  holds.restartTimers();
  await pass(24 * 3600_000);
  expect(state.seen).not.toContain('idle');
});
