import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { seededRandom, trickyValue } from '../../../test/support/random.ts';
import { openPipe, type Message } from './pipe.ts';

test('finds messages again however the pipe cuts them', async () => {
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
  await expect.poll(() => seen.length).toBe(messages.length); // in more than one turn, if they take long
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

test('messages that take long are taken in several turns of the event loop, in their order, and before the end', async () => {
  const stream = new PassThrough();
  const pipe = openPipe(new PassThrough(), stream);
  const seen: string[] = [];
  pipe.onMessage = ([message]) => {
    seen.push(message.toString());
    for (const until = performance.now() + 5; performance.now() < until;);
  };
  const closed = new Promise<void>((resolve) => (pipe.onClose = resolve));
  stream.write('1\x002\x003\x004\x005');
  stream.write('\x006\x007\x00');
  stream.end('8\x009');
  await new Promise((resolve) => stream.once('data', resolve));
  expect(seen.length).toBeLessThan(7);
  stream.resume(); // Node resumes the pipes of a process that has exited
  await closed;
  expect(seen).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
});
