import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { silent } from '../lib/log.ts';
import { sessionStandby } from './standby.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

function house({ mayStandBy = true, beforeSleep }: { mayStandBy?: boolean; beforeSleep?: () => Promise<void> } = {}) {
  const fake = fakeEngine();
  const state = { inUse: false, ended: false, awoken: 0, clock: [] as string[] };
  const standby = sessionStandby({
    id: 's',
    engine: async () => fake.engine,
    mayStandBy,
    beforeSleep,
    inUse: () => state.inUse,
    ended: () => state.ended,
    onAwake: () => void state.awoken++,
    onClock: ({ uptimeMs, awake }) => void state.clock.push(`${uptimeMs} ${awake ? 'awake' : 'asleep'}`),
    log: silent,
  });
  return { standby, state, ...fake };
}

test('a browser that is not used is frozen after a while, and thawed once for however many need it', async () => {
  const { standby, state, done } = house();
  standby.dozeOff();
  await pass(4999);
  expect(standby.frozen).toBe(false);
  await pass(1);
  expect(standby.frozen).toBe(true);
  await Promise.all([standby.wake(), standby.wake()]);
  expect(standby.frozen).toBe(false);
  expect(done).toEqual(['freeze', 'thaw']);
  expect(state.awoken).toBe(1);
  expect(state.clock).toEqual(['5000 asleep', '5000 awake']);
});

test('a client that comes while the browser is looked at before its sleep does not wait for that', async () => {
  const { standby, state, done } = house({ beforeSleep: () => new Promise(() => {}) });
  standby.dozeOff();
  await pass(6000);
  expect(done).toEqual([]);
  state.inUse = true;
  await standby.wake();
  expect(done).toEqual([]);
  expect(standby.frozen).toBe(false);
});

test('a session that is in use by then, has ended or uses a GPU is not frozen', async () => {
  for (const change of ['inUse', 'ended'] as const) {
    const { standby, state, done } = house();
    standby.dozeOff();
    state[change] = true;
    await pass(6000);
    expect(done).toEqual([]);
  }
  const crashed = house();
  crashed.standby.dozeOff();
  crashed.crash();
  const gpu = house({ mayStandBy: false });
  gpu.standby.dozeOff();
  await pass(6000);
  expect([...crashed.done, ...gpu.done]).toEqual([]);
});

test('a browser that cannot be frozen in time runs on, and is tried again', async () => {
  const { standby, engine, done } = house();
  const freeze = engine.browser.freeze.bind(engine.browser);
  engine.browser.freeze = () => Promise.reject(new Error('not frozen within 10 s'));
  standby.dozeOff();
  await pass(5000);
  expect([standby.frozen, ...done]).toEqual([false, 'thaw']);
  engine.browser.freeze = freeze;
  standby.dozeOff();
  await pass(5000);
  expect([standby.frozen, ...done]).toEqual([true, 'thaw', 'freeze']);
});

test('it is asleep when it is frozen, and not while it is being frozen', async () => {
  const { standby, engine } = house();
  let freeze!: () => void;
  engine.browser.freeze = () => new Promise((resolve) => (freeze = resolve));
  standby.dozeOff();
  await pass(7000);
  expect([standby.frozen, standby.asleep, standby.uptimeMs()]).toEqual([true, false, 7000]);
  freeze();
  await pass(1000);
  expect([standby.frozen, standby.asleep, standby.uptimeMs()]).toEqual([true, true, 7000]);
  await standby.wake();
  expect([standby.frozen, standby.asleep]).toEqual([false, false]);
});

test('time asleep does not count, and a crash in the sleep is the end of it', async () => {
  const { standby, done } = house();
  standby.dozeOff();
  await pass(5000);
  const before = standby.uptimeMs();
  await pass(60_000);
  expect(standby.uptimeMs()).toBe(before);
  standby.crashed();
  await pass(1000);
  expect(standby.uptimeMs()).toBe(before + 1000);
  expect(standby.frozen).toBe(false);
  standby.stopClock();
  await pass(1000);
  expect(standby.uptimeMs()).toBe(before + 1000);
  expect(done).toEqual(['freeze']);
});

test('work that needs stillness freezes what runs, and lets it run on also when the work fails', async () => {
  const { standby, done } = house();
  expect(await standby.still(async () => (done.push('work'), 7))).toBe(7);
  await expect(standby.still(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(done).toEqual(['freeze', 'work', 'thaw', 'freeze', 'thaw']);

  standby.dozeOff();
  await pass(5000);
  done.length = 0;
  await standby.still(async () => {});
  expect(done).toEqual([]); // it sleeps, and sleeps on
  expect(standby.frozen).toBe(true);
});
