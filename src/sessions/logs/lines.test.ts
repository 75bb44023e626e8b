import { expect, test } from 'vitest';
import { heapUsed } from '../../../test/support/heap.ts';
import { lineReader, longestLine } from './lines.ts';

test('finds lines again however they are cut, letters of several bytes too', () => {
  const text = 'eins\nzwei \u00e4\u4e16\ud83c\udf89\n\ndrei\r\nohne Ende';
  const bytes = Buffer.from(text);
  for (let size = 1; size <= bytes.length; size++) {
    const lines: string[] = [];
    const reader = lineReader((line) => lines.push(line));
    for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
    reader.end();
    expect(lines).toEqual(['eins', 'zwei \u00e4\u4e16\ud83c\udf89', '', 'drei', 'ohne Ende']);
  }
});

test('cuts a line that does not end, and keeps the next one whole', () => {
  const lines: string[] = [];
  const reader = lineReader((line) => lines.push(line));
  for (let i = 0; i < 100; i++) reader.read(Buffer.alloc(10_000, 'x'));
  reader.read(Buffer.from('\nnext\n'));
  expect(lines.map((line) => line.length)).toEqual([longestLine, 4]);
});

test('a line that comes byte by byte takes little more memory than its bytes', () => {
  const reader = lineReader(() => {});
  const before = heapUsed();
  for (let i = 0; i < longestLine; i++) reader.read(Buffer.alloc(1));
  expect(heapUsed() - before).toBeLessThan(16 * longestLine);
  reader.end();
});
