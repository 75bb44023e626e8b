import { expect, test } from 'vitest';
import { slowClock } from '../../test/support/slow-clock.ts';
import type { TelemetryCategory } from '../lib/telemetry.ts';
import { journal } from './journal.ts';

function opened() {
  const lost: number[] = [];
  const kept = journal({
    sessionId: 's',
    projectId: 'p',
    onLines() {},
    archived: async () => [],
    onLost: (events) => void lost.push(events),
  });
  kept.capture = new Set<TelemetryCategory>(['console']);
  const text = 'x'.repeat(10_000);
  const add = (count: number) => {
    for (let n = 0; n < count; n++)
      kept.add({ ts: 0, type: 'console_log', category: 'console', source: { kind: 'cdp' }, data: { text } });
  };
  return { kept, add, lost };
}

test('lines added during a long write become chunks of a quarter of a megabyte', () => {
  const { kept, add, lost } = opened();
  add(1);
  kept.seal();
  add(300);
  const chunks = kept.seal();
  expect(Math.max(...chunks.map(({ rawBytes }) => rawBytes))).toBeLessThan(300_000);
  expect(chunks.flatMap(({ lines }) => lines)).toHaveLength(301);
  expect(chunks.slice(1).map(({ firstSeq }) => firstSeq)).toEqual(
    chunks.slice(0, -1).map(({ lastSeq }) => lastSeq + 1),
  );
  expect(lost).toEqual([]);
});

test('of the lines that wait for a long write, the oldest beyond 4 MiB are lost, and never those being written', async () => {
  const { kept, add, lost } = opened();
  add(5);
  const [first] = kept.seal();
  add(1000);
  expect(lost).toEqual([]); // reported once, with the next write
  const [again, ...later] = kept.seal();
  expect(again).toBe(first);
  const bytes = later.reduce((sum, { rawBytes }) => sum + rawBytes, 0);
  expect(bytes).toBeLessThan(4.5 * 2 ** 20);
  expect(bytes).toBeGreaterThan(3.5 * 2 ** 20);
  const left = later.reduce((sum, { lines }) => sum + lines.length, 0);
  expect(lost).toEqual([1000 - left]);

  await kept.end();
  const seqs: number[] = [];
  for await (const { seq } of kept.follow(0, new AbortController().signal)) seqs.push(seq);
  expect(seqs.slice(0, 6)).toEqual([1, 2, 3, 4, 5, 1006 - left]);
  expect(seqs.at(-1)).toBe(1005);

  for (const { lastSeq } of [first!, ...later]) kept.written({ lastSeq });
  expect(kept.clean).toBe(true);
});

test('what a write that failed leaves is kept up to 4 MiB', () => {
  const { kept, add, lost } = opened();
  add(300);
  kept.seal();
  add(300);
  expect(kept.seal().flatMap(({ lines }) => lines)).toHaveLength(600); // half of it was being written
  kept.refused();
  const left = kept.seal().flatMap(({ lines }) => lines).length;
  expect(left).toBeLessThan(450);
  expect(lost).toEqual([600 - left]);
});

test('a session that ends with many incomplete events leaves the event loop to others, and readers get all of them', async () => {
  const { kept } = opened();
  for (let n = 0; n < 200; n++)
    kept.draft({ ts: 0, type: 'console_log', category: 'console', source: { kind: 'cdp' } });
  slowClock();
  const read = kept.follow(0, new AbortController().signal);
  const over = kept.end();
  expect(kept.lastSeq).toBeLessThan(20);
  const seqs: number[] = [];
  for await (const { seq } of read) seqs.push(seq);
  expect(seqs).toHaveLength(200);
  await over;
  kept.add({ ts: 0, type: 'console_log', category: 'console', source: { kind: 'cdp' } });
  expect(kept.lastSeq).toBe(200);
});

test('an incomplete event of a category that is switched off is given up, also if it is switched on again', () => {
  const { kept } = opened();
  const finish = kept.draft({ ts: 0, type: 'console_log', category: 'console', source: { kind: 'cdp' } });
  kept.capture = new Set();
  kept.capture = new Set<TelemetryCategory>(['console']);
  finish({ ts: 0, type: 'console_log', category: 'console', source: { kind: 'cdp' } });
  expect(kept.lastSeq).toBe(0);
  expect(kept.hasDrafts).toBe(false);
});
