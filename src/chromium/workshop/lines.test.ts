import { PassThrough, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { cutLines, LONGEST_LINE } from './lines.ts';

async function linesOf(...pieces: string[]): Promise<string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  cutLines(stream, (line) => lines.push(line));
  for (const piece of pieces) stream.write(piece);
  stream.end();
  await finished(stream);
  await new Promise((resolve) => setImmediate(resolve));
  return lines;
}

test('lines come whole, however they were cut, and the last one without its end', async () => {
  expect(await linesOf('on', 'e\ntwo\r\n\nthr', 'ee')).toEqual(['one', 'two', 'three']);
});

test('a line without end takes no memory beyond its bound', async () => {
  const [first, second] = await linesOf('a'.repeat(LONGEST_LINE), 'b'.repeat(LONGEST_LINE), 'c\nnext\n');
  expect(first).toBe('a'.repeat(LONGEST_LINE));
  expect(second).toBe('next');
});

test('a stream that comes byte by byte is read a window at a time, and to its end', async () => {
  let taken = 0;
  const stream = Readable.from(
    (function* () {
      for (; taken < 4000; taken++) yield taken % 10 === 9 ? '\n' : 'x';
    })(),
    { highWaterMark: 1 },
  );
  const lines: string[] = [];
  cutLines(stream, (line) => lines.push(line));
  await new Promise((resolve) => stream.once('pause', resolve));
  expect(taken).toBeLessThan(3000);
  await finished(stream);
  await expect.poll(() => lines.length).toBe(400);
});
