import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silent } from '../lib/log.ts';
import { currentOwner, onBehalfOf, type Owner } from '../lib/scope.ts';
import type { TelemetryCategory } from '../lib/telemetry.ts';
import { journal } from './journal.ts';
import type { OwnedChunk, TelemetryStore } from './store.ts';
import { telemetryWriter } from './writer.ts';

// The clock is the test's, so that a busy machine makes no difference.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** A journal with its writer, on a disk that takes so long for each write. */
function archive(writeMs: number) {
  /** The number of the last event that would be found after kill -9. */
  let onDisk = 0;
  let [sealed, handed] = [0, 0];
  let tidying = false;
  const store = {
    async insert(chunks: readonly OwnedChunk[]) {
      handed += chunks.length;
      await new Promise<void>((resolve) => setTimeout(resolve, writeMs));
      for (const { firstSeq, lastSeq } of chunks) {
        expect(firstSeq).toBe(onDisk + 1);
        onDisk = lastSeq;
      }
      tidying = true;
    },
    replace: async () => true,
    async projectBytes() {
      tidying = false; // the last step of a round
      return 0;
    },
  } as unknown as TelemetryStore;
  const writer = telemetryWriter({
    store,
    sessionBytes: 1e9,
    projectBytes: 1e9,
    countMs: 0,
    short: () => false,
    log: silent,
  });
  const kept = journal({
    sessionId: 's',
    projectId: 'p',
    onLines: writer.onLines,
    archived: async () => [],
    onLost: (events) => expect(events).toBe(0),
  });
  kept.capture = new Set<TelemetryCategory>(['console']);
  const { seal } = kept;
  kept.seal = () => {
    const chunks = seal();
    sealed += chunks.length;
    return chunks;
  };
  return {
    add: (text: string) =>
      kept.add({ ts: 0, type: 'console_log', category: 'console', source: { kind: 'cdp' }, data: { text } }),
    onDisk: () => onDisk,
    /** Moves the clock, in small steps. Packing and merging take real time, and no time of this clock. */
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 5) {
        await vi.advanceTimersByTimeAsync(5);
        while (sealed > handed || tidying) await setImmediate();
      }
    },
  };
}

test.each([
  ['few events', 100, 10],
  ['many events', 5, 10],
  ['large events', 20, 100_000],
])('at every moment, %s that are older than a second are on disk', async (_, everyMs, size) => {
  const { add, onDisk, pass } = archive(250);
  const text = 'x'.repeat(size);
  const addedAt: number[] = [];
  for (let now = 0; now < 6000; now += everyMs) {
    add(text);
    addedAt.push(now);
    await pass(everyMs);
    const older = addedAt.filter((at) => at <= now + everyMs - 1000).length;
    expect(onDisk(), `after ${now + everyMs} ms`).toBeGreaterThanOrEqual(older);
  }
  expect(onDisk()).toBeGreaterThan(0);
});

test('a round of the writer runs without an owner, also after a flush by a request', async () => {
  const owners: unknown[] = [];
  const store = {
    async insert() {
      owners.push(currentOwner());
      if (owners.length === 1) throw new Error('The database is away.');
    },
    projectBytes: async () => 0,
  } as unknown as TelemetryStore;
  const writer = telemetryWriter({ store, sessionBytes: 1e9, projectBytes: 1e9, short: () => false, log: silent });
  const kept = journal({
    sessionId: 's',
    projectId: 'p',
    onLines: writer.onLines,
    archived: async () => [],
    onLost: () => {},
  });
  kept.capture = new Set<TelemetryCategory>(['console']);
  kept.add({ ts: 0, type: 'console_log', category: 'console', source: { kind: 'cdp' } });
  const owner: Owner = { kind: 'request', id: 'r', end() {} };
  await onBehalfOf(owner, () => writer.flush());
  while (owners.length < 2) {
    await vi.advanceTimersByTimeAsync(500);
    await setImmediate();
  }
  expect(owners).toEqual([undefined, undefined]);
  await writer.close();
});
