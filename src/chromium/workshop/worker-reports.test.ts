import { PassThrough } from 'node:stream';
import { afterEach, expect, test, vi } from 'vitest';
import { readReports } from './worker-reports.ts';

const MIB = 2 ** 20;
afterEach(() => vi.restoreAllMocks());

/** Reads a report in pieces of a pipe. */
function reported(line: string) {
  const pipe = new PassThrough();
  const [taken, refused] = [[] as unknown[], [] as string[]];
  readReports(pipe, { take: (said) => taken.push(said) > 0, refuse: (why) => void refused.push(why) });
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length && refused.length === 0; at += 65_536)
    pipe.emit('data', bytes.subarray(at, at + 65_536));
  return { taken, refused };
}
const done = (output: string) => JSON.stringify({ done: 'x', output });

test('a report with more than an output may have is refused by its bytes, before it is decoded', () => {
  const large = [done('😀'.repeat(1.2 * MIB)), done('"'.repeat(4.6 * MIB)), done('\0'.repeat(4.6 * MIB))];
  const decoded = vi.spyOn(Buffer.prototype, 'toString');
  for (const line of large) {
    expect(reported(line)).toEqual({
      taken: [],
      refused: ['The worker sent a report of more than 4.5 MiB of output.'],
    });
    expect(decoded).not.toHaveBeenCalled();
  }
});

test('the largest outputs are taken, however they are escaped', () => {
  for (const character of ['a', '"', '\\', 'é', '😀']) {
    const output = character.repeat((4.5 * MIB) / Buffer.byteLength(character));
    expect(reported(done(output))).toEqual({ taken: [{ done: 'x', output }], refused: [] });
  }
});

test('a report of many values is refused while it arrives', () => {
  expect(reported('[],'.repeat(MIB)).refused).toEqual(['It reported an invalid result.']);
});
