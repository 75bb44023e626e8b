import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silent } from '../lib/log.ts';
import { currentOwner, onBehalfOf, type Owner } from '../lib/scope.ts';
import type { TelemetryCategory } from '../lib/telemetry.ts';
import { unpack } from './chunks.ts';
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

test('a round leaves the event loop to others while it writes incomplete events, and makes the line of each once', async () => {
  const written: OwnedChunk[][] = [];
  const store = {
    insert: async (chunks: OwnedChunk[]) => void written.push(chunks),
    projectBytes: async () => 0,
  } as unknown as TelemetryStore;
  const writer = telemetryWriter({ store, sessionBytes: 1e9, projectBytes: 1e9, short: () => false, log: silent });
  let turn = 0;
  const madeIn = new Map<number, number>();
  const sessions = Array.from({ length: 3 }, (_, id) => {
    const { onLines } = writer;
    const kept = journal({ sessionId: `${id}`, projectId: 'p', onLines, archived: async () => [], onLost: () => {} });
    kept.capture = new Set<TelemetryCategory>(['console']);
    const text = {
      toJSON() {
        vi.advanceTimersByTime(5); // of the test's clock
        madeIn.set(turn, (madeIn.get(turn) ?? 0) + 1);
        return '';
      },
    };
    for (let at = 0; at < 4; at++)
      kept.draft({
        ts: 1,
        type: 'console_log',
        category: 'console',
        source: { kind: 'cdp' },
        data: { text, more: 'the secret' },
      });
    return kept;
  });
  const made = () => [...madeIn.values()].reduce((sum, lines) => sum + lines, 0);
  async function flush() {
    let over = false;
    void writer.flush().then(() => (over = true));
    for (; !over; turn++) await setImmediate();
    return (await Promise.all(written.at(-1)!.map(({ packed }) => unpack(packed)))).flat();
  }

  const lines = await flush();
  expect(made()).toBe(12);
  expect(Math.max(...madeIn.values())).toBeLessThan(8);
  expect(lines.map((line) => JSON.parse(line).seq)).toEqual([1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
  const add = () =>
    sessions[0]!.add({ ts: 1, type: 'console_log', category: 'console', source: { kind: 'cdp' }, data: { text: '' } });
  add();
  expect((await flush()).map((line) => JSON.parse(line).seq)).toEqual([1, 2, 3, 4, 5]);
  expect(made()).toBe(12);
  sessions[0]!.secrets.add([{ password: 'the secret' }]);
  add();
  expect((await flush()).join()).not.toContain('the secret');
  await writer.close();
});
