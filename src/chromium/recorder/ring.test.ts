import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { memory } from '../../lib/byte-budget.ts';
import type { Engine } from '../engine.ts';
import { pictureMemory } from './picture-memory.ts';
import type { record } from './recorder.ts';
import { keepRing } from './ring.ts';

function box(type: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.length);
  head.write(type, 4);
  return Buffer.concat([head, content]);
}

const timescale = Buffer.from([0, 0, 3, 232]);
const moov = box('moov', Buffer.concat([Buffer.from('mdhd'), Buffer.alloc(12), timescale]));
const moof = box('moof', Buffer.concat([Buffer.from('tfdt'), Buffer.alloc(12)]));
const fragment = Buffer.concat([moof, box('mdat', Buffer.alloc(1000))]);

/** A replay buffer of a session, and the output of its encoder. */
async function ringOf(project: ReturnType<typeof memory.group>, budget: ReturnType<typeof pictureMemory>) {
  const session = memory.group();
  memory.join(session, project);
  const output = new PassThrough();
  const ended = Promise.resolve({ how: 'stopped' as const, lastWords: [] });
  const encode: typeof record = async () => ({ output, stop() {}, ended });
  const engine = async () => ({ memory: session }) as Engine;
  const ring = keepRing({ seconds: 60, engine, confinement: {} as never }, encode, budget);
  await new Promise(setImmediate);
  output.write(moov);
  for (let at = 0; at < 20; at++) output.write(fragment);
  await new Promise(setImmediate);
  return ring;
}

test('the replay buffers of a project leave memory to others: they keep fewer seconds, and give memory back', async () => {
  const budget = pictureMemory(40 * fragment.length);
  const [one, other] = [memory.group(), memory.group()];
  const rings = [await ringOf(one, budget), await ringOf(one, budget)];
  const neighbour = await ringOf(other, budget);
  const sizes = await Promise.all(
    [...rings, neighbour].map(async (ring) => Math.floor(((await ring.save(60))?.file.length ?? 0) / fragment.length)),
  );
  expect(sizes).toEqual([20, 10, 7]);
  for (const ring of [...rings, neighbour]) ring.close();
  expect(() => budget.take(one, 30 * fragment.length)()).not.toThrow();
});
