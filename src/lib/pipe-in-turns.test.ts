import { PassThrough, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { pipeInTurns } from './pipe-in-turns.ts';

test('small chunks that arrive together are passed on as one piece', async () => {
  const from = new PassThrough({ highWaterMark: 100_000 });
  const pieces: number[] = [];
  const to = new Writable({
    write(chunk: Buffer, _, done) {
      pieces.push(chunk.length);
      done();
    },
  });
  pipeInTurns(from, to, 'a', () => false);
  for (let at = 0; at < 10_000; at++) from.write('x');
  await expect.poll(() => pieces).toEqual([10_000]);
  from.end('y');
  await expect.poll(() => to.writableFinished).toBe(true);
  expect(pieces).toEqual([10_000, 1]);
});

test.each([false, true])('a body is passed on whole to a slow reader, complete: %s', async (complete) => {
  const from = new PassThrough();
  const to = new PassThrough({ highWaterMark: 10 });
  pipeInTurns(from, to, 'a', () => complete && from.writableEnded);
  const all = buffer(to);
  const sent = Buffer.alloc(300_000, 'abc');
  for (let at = 0; at < sent.length; at += 50_000) from.write(sent.subarray(at, at + 50_000));
  from.end();
  expect((await all).equals(sent)).toBe(true);
});

test('a complete body is passed on although its connection is closed meanwhile', async () => {
  const from = new PassThrough();
  const to = new PassThrough();
  pipeInTurns(from, to, 'a', () => from.writableEnded);
  from.write('x');
  await new Promise((resolve) => from.once('readable', resolve));
  from.end('y').destroy();
  expect((await buffer(to)).toString()).toBe('xy');
});

test('nothing is passed on any more once it is stopped', async () => {
  const from = new PassThrough();
  const to = new PassThrough();
  const stop = pipeInTurns(from, to, 'a', () => false);
  from.write('x');
  stop();
  from.resume().end('y');
  await expect.poll(() => from.readableEnded).toBe(true);
  expect(to.read()).toBeNull();
  expect(to.writableEnded).toBe(false);
});

test('bodies that are complete at once are passed on in several turns of the event loop', async () => {
  let busy = 0;
  let most = 0;
  const ends = Array.from({ length: 10 }, (_, at) => {
    const from = new PassThrough();
    from.end('x');
    const to = new Writable({
      write(_chunk, _encoding, done) {
        for (const until = performance.now() + 10; performance.now() < until;);
        most = Math.max(most, ++busy);
        setImmediate(() => (busy = 0));
        done();
      },
    });
    pipeInTurns(from, to, at % 2, () => true);
    return new Promise((resolve) => to.once('finish', resolve));
  });
  await Promise.all(ends);
  expect(most).toBeLessThan(4);
});
