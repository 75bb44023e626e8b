import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { box, moov } from '../../../test/support/mp4.ts';
import { memory } from '../../lib/byte-budget.ts';
import type { Engine } from '../engine.ts';
import { pictureMemory } from './picture-memory.ts';
import type { Recording } from './recorder.ts';
import { keepRing } from './ring.ts';

/** A fragment that begins at this millisecond. The time has 64 bits. */
function fragment(time: number | bigint, bytes = 1): Buffer {
  const tfdt = Buffer.from('tfdt\x01\0\0\0\0\0\0\0\0\0\0\0', 'latin1');
  tfdt.writeBigUInt64BE(BigInt(time), 8);
  return Buffer.concat([box('moof', tfdt), box('mdat', Buffer.alloc(bytes))]);
}

/** A ring with encoders that write the test's data. */
async function ringOf({ project = memory.group(), budget = pictureMemory(2 ** 30) } = {}) {
  const session = memory.group();
  memory.join(session, project);
  const outputs: PassThrough[] = [];
  const encode = async (): Promise<Recording> => {
    const output = new PassThrough();
    outputs.push(output);
    let stop = () => {};
    const stopped = new Promise<void>((resolve) => (stop = resolve));
    return { output, stop, ended: stopped.then(() => ({ how: 'stopped', lastWords: [] })) };
  };
  const engine = async () => ({ memory: session }) as Engine;
  const ring = keepRing({ seconds: 60, engine, confinement: {} as never }, encode, budget);
  await expect.poll(() => outputs).toHaveLength(1);
  return { ring, write: (bytes: Buffer) => outputs.at(-1)!.write(bytes) };
}

const count = (file: Buffer) => file.toString('latin1').split('tfdt').length - 1;

test('a ring gives its fragments as one video that begins at zero', async () => {
  const { ring, write } = await ringOf();
  write(Buffer.concat([moov, fragment(0)]));
  const saved = await ring.save(60);
  expect(saved?.file).toEqual(Buffer.concat([moov, fragment(0)]));
  ring.close();
});

test('nothing is saved before the first fragment', async () => {
  const { ring, write } = await ringOf();
  write(moov);
  expect(await ring.save(60)).toBeUndefined();
  ring.close();
});

test('a ring keeps at most 2000 fragments and 32 MiB of any output of the encoder', async () => {
  const small = await ringOf();
  small.write(Buffer.concat([moov, ...Array.from({ length: 5000 }, (_, i) => fragment(i))]));
  expect(count((await small.ring.save(60))!.file)).toBe(2000);
  small.ring.close();

  const large = await ringOf();
  large.write(moov);
  for (let i = 0; i < 40; i++) large.write(fragment(i, 2 ** 20));
  expect((await large.ring.save(60))!.file.length).toBeLessThan(32 * 2 ** 20 + moov.length);
  large.ring.close();
});

test('a fragment with a time in the far future is saved as one of now', async () => {
  const { ring, write } = await ringOf();
  write(Buffer.concat([moov, fragment(2n ** 64n - 1n)]));
  const saved = await ring.save(60);
  expect(Math.abs(saved!.startedAt.getTime() - Date.now())).toBeLessThan(60_000);
  ring.close();
});

test('the replay buffers of a project leave memory to others: they keep fewer seconds, and give memory back', async () => {
  const one = fragment(0, 1000);
  const budget = pictureMemory(40 * (moov.length + one.length));
  const [project, other] = [memory.group(), memory.group()];
  const rings = [];
  for (const owner of [project, project, other]) {
    const { ring, write } = await ringOf({ project: owner, budget });
    write(Buffer.concat([moov, ...Array.from({ length: 20 }, () => one)]));
    await new Promise(setImmediate);
    rings.push(ring);
  }
  const sizes = await Promise.all(rings.map(async (ring) => count((await ring.save(60))!.file)));
  expect(sizes).toEqual([20, 10, 7]);
  for (const ring of rings) ring.close();
  expect(() => budget.take(project, 30 * (moov.length + one.length))()).not.toThrow();
});

test('a ring that is closed during a save gives nothing', async () => {
  const { ring, write } = await ringOf();
  write(Buffer.concat([moov, fragment(0)]));
  const saved = ring.save(60);
  ring.close();
  write(fragment(1));
  expect(await saved).toBeUndefined();
});
