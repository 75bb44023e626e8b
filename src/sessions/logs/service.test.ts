import { expect, test } from 'vitest';
import { heapUsed } from '../../../test/support/heap.ts';
import type { Hold } from '../holds.ts';
import { lineLogs } from './line-logs.ts';
import { openLog } from './service.ts';

const never = new Promise<never>(() => {});
const held = { engine: { browser: { exited: never } } } as unknown as Hold;

test('a reader that does not read has a megabyte of lines, or a thousand, and then their number', async () => {
  for (const [length, most] of [
    [100_000, 11],
    [10, 1000],
  ] as const) {
    const pageConsole = lineLogs();
    pageConsole.say('s', 'first');
    const logs = { recorder: lineLogs(), pageConsole };
    const follow = await openLog(held, 's', { source: 'supervisor', supervisor_process: 'console' }, logs);
    const over = new AbortController();
    const sent: string[] = [];
    let read!: () => void;
    const reads = new Promise<void>((resolve) => (read = resolve));
    const done = follow({
      closed: over.signal,
      async send(line) {
        sent.push(line);
        await reads;
        return true;
      },
    });
    for (let count = 0; count < 2000; count++) pageConsole.say('s', 'x'.repeat(length));
    read();
    await expect.poll(() => sent.at(-1)).toMatch(/more lines came/);
    expect(sent.slice(0, 2)).toEqual(['first', 'x'.repeat(length)]);
    const lines = sent.length - 2;
    expect(lines).toBeLessThanOrEqual(most);
    expect(sent.at(-1)).toBe(`… ${2000 - lines} more lines came while they were not read.`);
    over.abort();
    await done;
  }
});

test('the kept beginning of a long line does not keep the whole line in memory', () => {
  const logs = lineLogs();
  const before = heapUsed();
  for (let count = 0; count < 200; count++) logs.say('s', Buffer.alloc(400_000, 'x').toString());
  expect(heapUsed() - before).toBeLessThan(20e6);
  expect(logs.lines('s')).toHaveLength(200);
});
