import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { seededRandom, trickyValue } from '../../../test/support/random.ts';
import { openPipe, type Message } from './pipe.ts';

test('finds messages again however the pipe cuts them', () => {
  const random = seededRandom(11);
  const messages = Array.from({ length: 500 }, (_, i) =>
    JSON.stringify({ i, text: 'x'.repeat(random(2000)), v: trickyValue(random) }),
  );
  const bytes = Buffer.from(`${messages.join('\0')}\0`);
  const stream = new PassThrough();
  const pipe = openPipe(new PassThrough(), stream);
  const seen: string[] = [];
  pipe.onMessage = (message: Message) => {
    expect(message.length === 1 || (message[0].length >= 256 && message.at(-1)!.length >= 256)).toBe(true);
    seen.push(Buffer.concat(message).toString());
  };
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + random(random(2) ? 10 : 3000);
    stream.emit('data', bytes.subarray(at, end));
    at = end;
  }
  expect(seen).toEqual(messages);
});

test('keeps few pieces of a message that comes byte by byte', () => {
  const stream = new PassThrough();
  const pipe = openPipe(new PassThrough(), stream);
  const seen: Message[] = [];
  pipe.onMessage = (message) => void seen.push(message);
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, at) => 1 + (at % 255)));
  for (let at = 0; at < bytes.length; at++) stream.emit('data', bytes.subarray(at, at + 1));
  stream.emit('data', Buffer.from('\0'));
  expect(seen).toHaveLength(1);
  expect(seen[0]!.length).toBeLessThan(20);
  expect(Buffer.concat(seen[0]!).equals(bytes)).toBe(true);
});
