import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { serveWebSocket, type WebSocketSink } from './ws-sink.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function connection(): Promise<{ sink: WebSocketSink; far: WebSocket }> {
  const websockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  const http = createServer();
  const attached = new Promise<WebSocketSink>((resolve) =>
    http.on('upgrade', (request, socket, head) =>
      serveWebSocket(websockets, { request, socket, head }, (sink) => {
        resolve(sink);
        return { receive() {}, closed() {} };
      }),
    ),
  );
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const far = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`);
  cleanUp.push(
    () => http.close(),
    () => far.terminate(),
  );
  const [sink] = await Promise.all([attached, once(far, 'open')]);
  return { sink, far };
}

it('keeps text and binary messages apart and in order, of every size', async () => {
  const { sink, far } = await connection();
  const seen: [number, boolean][] = [];
  far.on('message', (data: Buffer, isBinary) => seen.push([data.length, isBinary]));
  const sizes = [0, 125, 126, 65_535, 65_536, 300_000];
  for (const size of sizes) {
    sink.send([Buffer.alloc(size, 'a')]);
    sink.sendBinary([Buffer.alloc(size), Buffer.alloc(1)]);
  }
  await expect.poll(() => seen.length).toBe(2 * sizes.length);
  expect(seen).toEqual(sizes.flatMap((size) => [[size, false], [size + 1, true]])); // prettier-ignore
});

it('says when a binary message has left, and not before', async () => {
  const { sink, far } = await connection();
  const written: string[] = [];
  sink.sendBinary([Buffer.from('a')], () => written.push('a'));
  sink.sendBinary([Buffer.from('b')], () => written.push('b'));
  expect(written).toEqual([]);
  await expect.poll(() => written).toEqual(['a', 'b']);

  far.pause();
  let sent = 0;
  let left = 0;
  while (sink.bufferedAmount < 4 * 1024 * 1024 && sent < 200) {
    sink.sendBinary([Buffer.alloc(1024 * 1024)], () => (left += 1));
    sent += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(left).toBeLessThan(sent);
  far.resume();
  await expect.poll(() => left, { timeout: 20_000 }).toBe(sent);
  expect(sink.bufferedAmount).toBe(0);
});
