import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { readReports } from './worker-reports.ts';

const MIB = 2 ** 20;
afterEach(() => vi.restoreAllMocks());

/** Reads a report in pieces of a pipe. Resolves when it was taken or refused. */
async function reported(line: string) {
  const pipe = new PassThrough();
  const [taken, refused] = [[] as unknown[], [] as string[]];
  await new Promise<void>((resolve) => {
    const over = <T>(list: T[], item: T) => (resolve(), list.push(item) > 0);
    readReports(pipe, { take: (said) => over(taken, said), refuse: (why) => over(refused, why) });
    piped(line, pipe);
  });
  return { taken, refused };
}

function piped(line: string, pipe: PassThrough) {
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length; at += 65_536) pipe.write(bytes.subarray(at, at + 65_536));
}

const done = (output: string) => JSON.stringify({ done: 'x', output });

test('a report with more than an output may have is refused by its bytes, before it is decoded', async () => {
  const large = [done('😀'.repeat(1.2 * MIB)), done('"'.repeat(4.6 * MIB)), done('\0'.repeat(4.6 * MIB))];
  const decoded = vi.spyOn(Buffer.prototype, 'toString');
  for (const line of large) {
    expect(await reported(line)).toEqual({
      taken: [],
      refused: ['The worker sent a report of more than 4.5 MiB of output.'],
    });
    expect(decoded).not.toHaveBeenCalled();
  }
});

test('the largest outputs are taken, however they are escaped', async () => {
  for (const character of ['a', '"', '\\', 'é', '😀']) {
    const output = character.repeat((4.5 * MIB) / Buffer.byteLength(character));
    expect(await reported(done(output))).toEqual({ taken: [{ done: 'x', output }], refused: [] });
  }
});

test('a report of many values is refused while it arrives', async () => {
  expect((await reported('[],'.repeat(MIB))).refused).toEqual(['It reported an invalid result.']);
});

test('large reports that arrive at once are parsed in turns of their own', async () => {
  let turn = 0;
  const count = () => {
    turn++;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const turns = await Promise.all(
    Array.from({ length: 6 }, () => {
      const pipe = new PassThrough();
      return new Promise<number>((resolve, reject) => {
        readReports(pipe, { take: () => (resolve(turn), true), refuse: (why) => reject(new Error(why)) });
        piped(done('x'.repeat(MIB)), pipe);
      });
    }),
  );
  clearImmediate(counting);
  expect(new Set(turns).size).toBe(6);
});

test('a report that comes byte by byte is refused after some thousand of them', async () => {
  const pipe = new PassThrough();
  const refused = new Promise((resolve) => readReports(pipe, { take: () => true, refuse: resolve }));
  for (let at = 0; at < 20_001; at++) pipe.write('"');
  expect(await refused).toBe('It reported an invalid result.');
});
