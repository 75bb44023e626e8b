import { expect, test } from 'vitest';
import { heapUsed } from '../../test/support/heap.ts';
import { gather, pack } from './chunks.ts';
import { telemetryReading } from './event-pages.ts';
import type { EventsQuery } from './schema.ts';
import type { ChunkFilter, ChunkRow } from './store.ts';

const lineOf = (seq: number, category: string, text: string) =>
  JSON.stringify({
    seq,
    event: { ts: Date.now() * 1000, type: 'console_log', category, source: { kind: 'cdp' }, data: { text } },
  });

/** An archive whose chunks have a short line of the console, and a long one of the network. */
async function archive(count: number, long: number) {
  const rows: ChunkRow[] = [];
  for (let chunk = 0; chunk < count; chunk++) {
    const first = 2 * chunk + 1;
    const lines = [lineOf(first, 'console', 'short'), lineOf(first + 1, 'network', 'x'.repeat(long))];
    const { packed } = await pack(gather(lines, 0));
    rows.push({ first_seq: String(first), last_seq: String(first + 1), packed });
  }
  const after = async (_filter: ChunkFilter, seq: number, most: number) =>
    rows.filter(({ last_seq }) => Number(last_seq) > seq).slice(0, most);
  return telemetryReading({ after, before: () => Promise.reject(new Error('not asked for')) });
}

const query: EventsQuery = { limit: 100, category: ['console'] };

test('a page keeps the lines that are asked for, and not the chunks that have them', async () => {
  const reading = await archive(60, 250_000);
  const before = heapUsed();
  const { lines, next } = await reading.page('session', query);
  const kept = heapUsed() - before;
  expect(lines).toHaveLength(60);
  expect(next).toBeUndefined();
  expect(kept).toBeLessThan(2 * 2 ** 20);
});

test('a page ends after 16 MiB of searched text, the next page begins there, and one chunk at a time is counted', async () => {
  const reading = await archive(40, 900_000);
  let counted = 0;
  const room = { add: async (bytes: number) => void (counted += bytes) };
  const first = await reading.page('session', query, room);
  expect(first.lines).toHaveLength(19);
  expect(counted).toBeGreaterThan(900_000);
  expect(counted).toBeLessThan(1_000_000); // one chunk at a time
  const second = await reading.page('session', { ...query, offset: first.next! }, room);
  const third = await reading.page('session', { ...query, offset: second.next! }, room);
  const seqs = [first, second, third].flatMap(({ lines }) => lines.map((line) => Number(JSON.parse(line).seq)));
  expect(seqs).toEqual(Array.from({ length: 40 }, (_, chunk) => 2 * chunk + 1));
  expect(third.next).toBeUndefined();
});

test('a page that finds no room is refused', async () => {
  const reading = await archive(1, 1000);
  const full = new Error('There is no room.');
  await expect(reading.page('session', query, { add: () => Promise.reject(full) })).rejects.toThrow(full);
});
