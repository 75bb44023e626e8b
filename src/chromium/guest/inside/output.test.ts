import { expect, test } from 'vitest';
import { Output } from './output.ts';

const MIB = 1024 * 1024;

/** The streams and lengths of what is read from a position on. */
function read(output: Output, position = output.droppedBytes): [string, number][] {
  const all: [string, number][] = [];
  for (let chunk; (chunk = output.from(position)); position += chunk.bytes.length)
    all.push([chunk.stream, chunk.bytes.length]);
  return all;
}

test('output that is written byte by byte is read together, each stream by itself and 64 KiB at most', () => {
  const output = new Output();
  const add = (stream: 'stdout' | 'stderr', count: number) => {
    for (let at = 0; at < count; at++) output.add(stream, Buffer.from([at]));
  };
  add('stdout', 70_000);
  add('stderr', 3);
  add('stdout', 2);
  output.add('stdout', Buffer.alloc(100_000));
  const [first, ...rest] = read(output);
  expect([first, ...rest]).toEqual([
    ['stdout', 65_536],
    ['stdout', 70_000 - 65_536],
    ['stderr', 3],
    ['stdout', 2],
    ['stdout', 100_000],
  ]);
  expect(output.from(65_530)!.bytes).toEqual(Buffer.from([250, 251, 252, 253, 254, 255]));
  const end = 170_005;
  expect(output.from(end)).toBeUndefined();
  add('stdout', 1);
  add('stdout', 1);
  expect(read(output, end)).toEqual([['stdout', 2]]);
  expect(output.tail(3)).toEqual(Buffer.from([0, 0, 0]));
  output.forget();
});

test('output is kept as far back as its memory allows, with what small pieces take besides their bytes', () => {
  const output = new Output();
  for (let at = 0; at < 100; at++) output.add('stdout', Buffer.alloc(65_536));
  expect(output.droppedBytes).toBe(37 * 65_536);
  const other = new Output();
  for (let at = 0; at < 12_000; at++) other.add(at % 2 === 0 ? 'stdout' : 'stderr', Buffer.from('x'));
  expect(read(other)).toHaveLength(Math.floor((4 * MIB) / 513));
  output.forget();
  other.forget();
});
