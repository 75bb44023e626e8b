import { Duplex, PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { Pace } from '../../lib/turns.ts';
import { channel, ChannelClosed, Refusal, type Stream } from './channel.ts';

type Handler = (name: string, args: unknown, stream: Stream) => void;

/** Two ends of one wire, in this process. */
function pair(inside: Handler, most = 100, pace?: Pace) {
  const [there, back] = [new PassThrough(), new PassThrough()];
  const near = Duplex.from({ readable: back, writable: there });
  const far = Duplex.from({ readable: there, writable: back });
  const host = channel(near, { host: true, onOpen: (_name, _args, stream) => stream.reset(), most: 0, pace });
  const guest = channel(far, { host: false, onOpen: inside, most });
  return { host, guest, toHost: back };
}

/** The frame of a guest that refuses the first stream of the service. */
function failure(message: string): Buffer {
  const payload = Buffer.from(JSON.stringify({ code: 'internal', message }));
  const head = Buffer.from([0, 0, 0, 0, 4, 1, 0, 0, 0]);
  head.writeUInt32LE(5 + payload.length);
  return Buffer.concat([head, payload]);
}

async function all(stream: Stream): Promise<unknown[]> {
  const items: unknown[] = [];
  for (let item; (item = await stream.next());) items.push(item.json ?? item.bytes?.toString());
  return items;
}

test('a stream carries JSON and bytes both ways, in order', async () => {
  const { host } = pair(async (name, args, stream) => {
    await stream.json({ name, args });
    for (let item; (item = await stream.next());) await stream.bytes(item.bytes!);
    stream.end();
  });
  const stream = host.open('echo', { a: 1 });
  await stream.bytes(Buffer.from('one'));
  await stream.bytes(Buffer.from('two'));
  stream.end();
  const [first, ...rest] = await all(stream);
  expect(first).toEqual({ name: 'echo', args: { a: 1 } });
  expect(rest.join('')).toBe('onetwo');
});

test('a reader that does not read delays the sender of that stream, and no other', async () => {
  let sent = 0;
  const { host } = pair(async (name, _args, stream) => {
    if (name === 'quick') return void stream.json('here').then(() => stream.end());
    for (; sent < 64 && !stream.gone.aborted; sent++) await stream.bytes(Buffer.alloc(65_536));
    stream.end();
  });
  const slow = host.open('slow');
  expect(await all(host.open('quick'))).toEqual(['here']);
  expect(sent).toBeLessThan(20); // a window of 1 MiB, of the 4 MiB it has
  let bytes = 0;
  for (let item; (item = await slow.next());) bytes += item.bytes!.length;
  expect(bytes).toBe(64 * 65_536);
});

test('a refusal has the code and the message of the other end', async () => {
  const { host } = pair((_name, _args, stream) => stream.fail('ENOENT', 'It is not there.'));
  await expect(host.open('any').next()).rejects.toMatchObject({ code: 'ENOENT', message: 'It is not there.' });
});

test.each(['x', '\0', '\u{d800}', '€'])(
  'a refusal has at most 2000 characters of a long code and message of %j',
  async (sign) => {
    const long = sign.repeat(100_000);
    const { host } = pair((_name, _args, stream) => stream.fail(long, long));
    const shown = sign.repeat(2000);
    await expect(host.open('any').next()).rejects.toMatchObject({ code: shown, message: shown });
  },
);

test('a message that the guest did not cut is cut where it arrives', async () => {
  const { host, toHost } = pair(() => {});
  const stream = host.open('any');
  toHost.write(failure('x'.repeat(20_000)));
  await expect(stream.next()).rejects.toMatchObject({ name: 'Refusal', message: 'x'.repeat(2000) });
});

test('a refusal that is too large to be honest ends the channel', async () => {
  const { host, toHost } = pair(() => {});
  const stream = host.open('any');
  toHost.write(failure('x'.repeat(1024 * 1024)));
  await expect(stream.next()).rejects.toThrow(ChannelClosed);
});

test('the other end sees a cancelled stream', async () => {
  let gone: AbortSignal | undefined;
  const { host } = pair((_name, _args, stream) => void (gone = stream.gone));
  const stream = host.open('any');
  await expect.poll(() => gone).toBeDefined();
  stream.reset();
  await expect.poll(() => gone!.aborted).toBe(true);
  await expect(stream.next()).rejects.toThrow(ChannelClosed);
});

test('more streams than allowed are refused', async () => {
  const { host } = pair(() => {}, 2);
  host.open('one');
  host.open('two');
  await expect(host.open('three').next()).rejects.toThrow(Refusal);
});

test.each([
  ['an unknown kind', Buffer.from([5, 0, 0, 0, 99, 2, 0, 0, 0])],
  ['an impossible size', Buffer.from([255, 255, 255, 255, 1, 2, 0, 0, 0])],
  ['a size below nothing', Buffer.from([1, 0, 0, 0, 1, 2, 0, 0, 0])],
  ['a stream of our own numbers', Buffer.from([7, 0, 0, 0, 0, 1, 0, 0, 0, 0x7b, 0x7d])],
  ['invalid JSON', Buffer.from([6, 0, 0, 0, 1, 1, 0, 0, 0, 0x7b])],
])('%s ends the channel, and everything on it', async (_what, frame) => {
  const { host, toHost } = pair(() => {});
  const stream = host.open('any');
  toHost.write(frame);
  await expect(stream.next()).rejects.toThrow(ChannelClosed);
  await host.closed;
});

test('more than the window ends the channel: the service never keeps it', async () => {
  const { host, toHost } = pair(() => {});
  const stream = host.open('any');
  const chunk = Buffer.alloc(9 + 65_536);
  chunk.writeUInt32LE(5 + 65_536, 0);
  chunk.writeUInt8(2, 4);
  chunk.writeUInt32LE(1, 5);
  for (let sent = 0; sent < 200; sent++) toHost.write(chunk);
  await host.closed;
  await expect(async () => {
    for (;;) await stream.next();
  }).rejects.toThrow(ChannelClosed);
});

test('the service reads no frames while the turn of the event loop is over', async () => {
  let resume: (() => void) | undefined;
  const pace = { isOver: () => true, next: () => new Promise<void>((resolve) => (resume = resolve)) };
  const { host, toHost } = pair(() => {}, 100, pace);
  const [first, second] = [host.open('first'), host.open('second')];
  let ended = 0;
  for (const stream of [first, second]) void stream.next().then(() => ended++);
  toHost.write(Buffer.from([5, 0, 0, 0, 3, 1, 0, 0, 0]));
  await expect.poll(() => ended).toBe(1);
  toHost.write(Buffer.from([5, 0, 0, 0, 3, 3, 0, 0, 0]));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(ended).toBe(1);
  resume!();
  await expect.poll(() => ended).toBe(2);
});

/** An end that reads nothing until the test says so. */
function stopped() {
  let read: (() => void) | undefined;
  const near = new Duplex({ read() {}, write: (_chunk, _encoding, done) => void (read = done) });
  const counted = {
    bytes: 0,
    set: (bytes: number) => void (counted.bytes = bytes),
    close: () => void (counted.bytes = 0),
  };
  const host = channel(near, { host: true, onOpen: () => {}, most: 0, share: counted });
  /** Reads all that was sent, and what is sent then. */
  async function readAll() {
    for (let done = read; done; done = read) {
      read = undefined;
      done();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return { host, counted, readAll };
}

const large = { code: 'x'.repeat(2 * 1024 * 1024) };

test('requests wait while the other end does not read, and leave nothing when they are given up', async () => {
  const { host, counted, readAll } = stopped();
  const first = await host.ask('execute', large);
  first.reset();
  const before = counted.bytes;
  expect(before).toBeGreaterThan(large.code.length);
  const leave = new AbortController();
  const given = Array.from({ length: 100 }, () => host.ask('execute', large, AbortSignal.any([leave.signal])));
  await expect(host.ask('execute', large)).rejects.toMatchObject({ code: 'busy' });
  leave.abort(new Error('gone'));
  for (const one of await Promise.allSettled(given)) expect(one).toMatchObject({ reason: { message: 'gone' } });
  expect(counted.bytes).toBe(before);
  const kept = [host.ask('list', {}), host.ask('list', {})];
  await readAll();
  await Promise.all(kept);
  expect(counted.bytes).toBe(0);
  expect(host.count).toBe(2);
});

test('requests that wait for an end that does not read end with the channel', async () => {
  const { host, counted } = stopped();
  await host.ask('execute', large);
  const waits = host.ask('list', {});
  host.close('it does not answer.');
  await expect((await waits).next()).rejects.toThrow('it does not answer');
  expect(counted.bytes).toBe(0);
});

test('uploads together send a bounded part to an end that does not read', async () => {
  const { host, counted, readAll } = stopped();
  const streams = Array.from({ length: 40 }, () => host.open('upload'));
  const sent = streams.map((stream) => stream.bytes(Buffer.alloc(256 * 1024)));
  await new Promise((resolve) => setImmediate(resolve));
  expect(counted.bytes).toBeLessThan(1.2 * 1024 * 1024);
  for (const stream of streams.slice(1)) stream.reset();
  const ends = await Promise.allSettled(sent.slice(1));
  expect(ends.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(30);
  await readAll();
  await sent[0];
});

test('many small items that wait for their reader are taken in several turns of the event loop', async () => {
  let turns = 0;
  const nextTurn = () => new Promise<void>((resolve) => setImmediate(() => ((turns += 1), resolve())));
  const { host, guest } = pair(
    async (_name, _args, stream) => {
      for (let at = 0; at < 1000; at++) await stream.json({ at });
      stream.end();
    },
    100,
    { isOver: () => true, next: nextTurn },
  );
  const stream = host.open('output');
  await expect.poll(() => guest.count).toBe(0);
  const before = turns;
  expect(await all(stream)).toHaveLength(1000);
  expect(turns - before).toBeGreaterThanOrEqual(1000);
});
