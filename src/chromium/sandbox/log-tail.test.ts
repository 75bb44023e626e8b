import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { logTail } from './log-tail.ts';

async function tailOf(...parts: string[]): Promise<string[]> {
  const stream = Readable.from(parts);
  const tail = logTail(stream);
  await finished(stream);
  return tail();
}

test('keeps whole lines, however they arrive', async () => {
  expect(await tailOf('one\ntw', 'o\n\nthr', 'ee')).toEqual(['one', 'two', 'three']);
});

test('keeps the last 200 lines, and no line longer than 2000 characters', async () => {
  const tail = await tailOf(...Array.from({ length: 300 }, (_, i) => `line ${i}\n`), 'x'.repeat(5000));
  expect(tail).toHaveLength(200);
  expect(tail[0]).toBe('line 101');
  expect(tail.at(-1)).toHaveLength(2000);
});

test('leaves out what Chromium says about the missing D-Bus', async () => {
  expect(await tailOf('[1:1:ERROR:dbus/bus.cc:405] Failed to connect\n', 'a real error\n')).toEqual(['a real error']);
});

test.each([254, 1])(
  'a process that writes %i bytes without end is read a turn at a time, and to its end',
  async (bytes) => {
    const line = `${'x'.repeat(bytes)}\n`;
    let taken = 0;
    const stream = Readable.from(
      (function* () {
        for (; taken < 4000; taken++) yield line;
      })(),
      { highWaterMark: 1 },
    );
    const tail = logTail(stream);
    await new Promise((resolve) => stream.once('pause', resolve));
    expect(taken).toBeLessThan(3000);
    await finished(stream);
    expect(tail()).toHaveLength(200);
  },
);
