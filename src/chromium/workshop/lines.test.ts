import { PassThrough } from 'node:stream';
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
