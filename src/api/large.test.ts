import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import { memory } from '../lib/byte-budget.ts';
import { countedBody, refuseHeavy } from './large.ts';

const limit = 1024 * 1024;
const asked = (type: string) =>
  ({
    headers: { 'content-type': type },
    raw: { complete: false },
    routeOptions: { config: {}, bodyLimit: limit },
  }) as unknown as FastifyRequest;
const reply = () => ({ raw: new EventEmitter() }) as unknown as FastifyReply;
/** Reads as Fastify does: it stops to listen when the body is too large. */
async function readUntilTooLarge(body: NodeJS.ReadableStream) {
  let size = 0;
  await new Promise<void>((resolve) => {
    body.on('data', function read(chunk: Buffer) {
      size += chunk.length;
      if (size <= limit) return;
      body.removeListener('data', read);
      resolve();
    });
  });
}

test.each(['too heavy', 'broken off'])(
  'a body that is refused, and then is %s, does not count as a fault',
  async (then) => {
    const payload = new PassThrough();
    payload.on('error', () => {});
    const before = memory.used;
    const answer = reply();
    const counted = countedBody(asked('application/json'), answer, payload);
    const refused = readUntilTooLarge(counted);
    payload.write(Buffer.alloc(1.2 * limit, ' '));
    await refused;
    expect(counted.listenerCount('error')).toBeGreaterThan(1); // that of the pipe throws when it is alone
    payload.write(Buffer.alloc(200 * 1024, ','));
    if (then === 'broken off') payload.destroy(new Error('The client hung up.'));
    else payload.end();
    await new Promise((resolve) => counted.once('close', resolve)); // `once` of events would listen for errors
    answer.raw.emit('close');
    expect(memory.used).toBe(before);
  },
);

test('a body with an unusual content type is weighed when it is parsed', () => {
  const refuse = (json: string) => refuseHeavy(asked('Application/JSON'), Buffer.from(json));
  expect(() => refuse(`[${'{},'.repeat(60_000)}{}]`)).toThrow('more than 100000 names and values');
  expect(() => refuse(JSON.stringify(','.repeat(200_000)))).not.toThrow();
  expect(() => refuse(`"${'\\n'.repeat(3_000_001)}"`)).toThrow('more than 3000000 escapes');
});
