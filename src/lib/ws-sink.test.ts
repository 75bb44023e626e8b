import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { close, frame, hears } from '../../test/support/frames.ts';
import { portOf } from '../../test/support/mux-server.ts';
import { serveWebSocket, type WebSocketSink } from './ws-sink.ts';

/** Says back what it hears. */
const server = createServer();
let sink: WebSocketSink;
let closed = 0;

beforeAll(async () => {
  server.on('upgrade', (request, socket, head) =>
    serveWebSocket(
      { request, socket, head },
      (opened) => {
        sink = opened;
        return {
          receive: (data) => opened.send([data]),
          flush: () => opened.flush(),
          closed: () => void (closed += 1),
        };
      },
      { maxPayload: 5_000_000 },
    ),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterAll(() => void server.close());

async function open(): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${portOf(server)}`, { perMessageDeflate: false });
  await once(socket, 'open');
  return socket;
}

async function rawSocket(): Promise<Socket> {
  const socket = connect(portOf(server), '127.0.0.1');
  socket.write(
    `GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`,
  );
  await once(socket, 'data');
  return socket;
}

test.each([0, 1, 125, 126, 127, 16_383, 65_535, 65_536, 1_000_003, 5_000_000])(
  'a message of %i bytes comes back whole',
  async (size) => {
    const socket = await open();
    const sent = Buffer.alloc(size, 'abcdefg');
    socket.send(sent);
    const [got] = await once(socket, 'message');
    expect(sent.equals(got)).toBe(true);
    socket.close();
  },
);

test('fragments are put together, with a ping answered in between', async () => {
  const socket = await open();
  socket.send('one ', { fin: false });
  socket.ping('still there?');
  const [pong] = await once(socket, 'pong');
  socket.send('two', { fin: true });
  const [got] = await once(socket, 'message');
  expect([String(pong), String(got)]).toEqual(['still there?', 'one two']);
  socket.close();
});

test('frames may arrive a byte at a time', async () => {
  const socket = await rawSocket();
  socket.setNoDelay(true);
  for (const byte of frame('hello')) {
    socket.write(Buffer.from([byte]));
    await new Promise(setImmediate);
  }
  const [got] = await once(socket, 'data');
  expect(got.toString('latin1')).toBe('\x81\x05hello');
  socket.destroy();
});

test.each([
  ['not masked', [0x81, 0x01, 0x61, 0, 0, 0], 1002],
  ['of an unknown kind', [0x83, 0x80, 0, 0, 0, 0], 1002],
  ['compressed without agreement', [0xc1, 0x80, 0, 0, 0, 0], 1002],
  ['continuing nothing', [0x80, 0x80, 0, 0, 0, 0], 1002],
  ['a ping in pieces', [0x09, 0x80, 0, 0, 0, 0], 1002],
  ['too large', [0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1009],
])('a frame that is %s ends the connection', async (_what, bytes, code) => {
  const socket = await rawSocket();
  socket.write(Buffer.from(bytes));
  const [got] = await once(socket, 'data');
  expect([got[0], got.readUInt16BE(2)]).toEqual([0x88, code]);
  await once(socket, 'end');
  socket.destroy();
});

test('a close from either end is answered, and the receiver hears of it', async () => {
  const [first, before] = [await open(), closed];
  first.close(1000);
  expect((await once(first, 'close'))[0]).toBe(1000);
  const second = await open();
  sink.send([Buffer.from('last words')]);
  sink.close(1011, 'why');
  const [[words], [code, reason]] = await Promise.all([once(second, 'message'), once(second, 'close')]);
  expect([String(words), code, String(reason)]).toEqual(['last words', 1011, 'why']);
  await expect.poll(() => closed).toBe(before + 2);
});

test('a request that is no websocket upgrade is refused', async () => {
  const socket = connect(portOf(server), '127.0.0.1');
  socket.write(
    'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n',
  );
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 400 /);
  socket.destroy();
});

test('binary messages come as such, in order with the others, and say when they have left', async () => {
  const socket = await open();
  const seen: [number, boolean][] = [];
  socket.on('message', (data: Buffer, isBinary) => seen.push([data.length, isBinary]));
  const written: number[] = [];
  const sizes = [0, 125, 126, 65_535, 65_536, 300_000];
  for (const size of sizes) {
    sink.send([Buffer.alloc(size, 'a')]);
    sink.sendBinary([Buffer.alloc(size), Buffer.alloc(1)], () => written.push(size));
  }
  expect(written).toEqual([]);
  await expect.poll(() => seen.length).toBe(2 * sizes.length);
  expect(seen.filter(([, isBinary]) => isBinary)).toEqual(sizes.map((size) => [size + 1, true]));
  expect(seen.filter((_, i) => i % 2 === 0)).toEqual(sizes.map((size) => [size, false]));
  expect(written).toEqual(sizes);
  socket.close();
});

test('a reason that is too long is cut between characters', async () => {
  const socket = await open();
  sink.close(1011, 'é'.repeat(100));
  const [code, reason] = await once(socket, 'close');
  expect([code, String(reason)]).toEqual([1011, 'é'.repeat(61)]);
});

test('a receiver that does not want to read hears the end all the same, once', async () => {
  const [socket, before] = [await rawSocket(), closed];
  sink.pause();
  sink.close(1001, 'over');
  const server = hears(socket);
  expect(await server.close()).toEqual({ code: 1001, reason: 'over' });
  socket.write(Buffer.concat([frame('late'), close(1001)]));
  expect((await server.end()).length).toBe(0);
  socket.end();
  await expect.poll(() => closed).toBe(before + 1);
});

test('a fault is reported to the receiver once, and at once', async () => {
  const [socket, before] = [await rawSocket(), closed];
  socket.write(frame('a', { rsv: 0x40 }));
  const server = hears(socket);
  expect(await server.close()).toMatchObject({ code: 1002 });
  expect(closed).toBe(before + 1);
  socket.end();
  await once(socket, 'close');
  expect(closed).toBe(before + 1);
});

test('a heartbeat reaches the far end, and a silent far end is dropped', async () => {
  const heartbeat = { text: 'alive', everyMs: 5, dropAfter: 20 };
  const ended: string[] = [];
  const beating = createServer().on('upgrade', (request, socket, head) =>
    serveWebSocket(
      { request, socket, head },
      () => ({ receive() {}, flush() {}, closed: () => void ended.push(request.url!) }),
      { heartbeat },
    ),
  );
  beating.listen(0, '127.0.0.1');
  await once(beating, 'listening');
  const answering = new WebSocket(`ws://127.0.0.1:${portOf(beating)}/answering`);
  const [text] = await once(answering, 'message');
  expect(String(text)).toBe('alive');
  answering.close();
  await once(answering, 'close');

  const silent = new WebSocket(`ws://127.0.0.1:${portOf(beating)}/silent`, { autoPong: false });
  const [code] = await once(silent, 'close');
  expect(code).toBe(1006); // cut: a close would not reach it either
  await expect.poll(() => ended, { timeout: 20_000 }).toEqual(['/answering', '/silent']);
  beating.close();
});
