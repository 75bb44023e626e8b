import { connect, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bareServer } from '../../test/support/http-server.ts';
import { memory } from '../lib/byte-budget.ts';
import type { Server } from './server.ts';

const SIZE = 500_000;
let server: Server;
let port: number;
let started = 0;
let end: (() => void)[] = [];

beforeAll(async () => {
  server = await bareServer(10);
  server.post('/waits', async () => {
    started += 1;
    await new Promise<void>((resolve) => void end.push(resolve));
  });
  server.post('/fails', async () => {
    started += 1;
    await new Promise<void>((_, reject) => void end.push(() => reject(new Error('The handler failed.'))));
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = server.addresses()[0] as AddressInfo);
});
afterAll(() => server?.close());

/** Sends a request and disconnects as soon as all of it is sent. */
async function left(path: string, body: string): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key\r\nContent-Type: application/json\r\n`;
  await new Promise<void>((resolve) =>
    socket.write(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, () => resolve()),
  );
  socket.end();
  await new Promise((resolve) => socket.on('close', resolve).resume());
}

test.each(['/waits', '/fails'])(
  'the body of a client that has left is counted until its handler is over: %s',
  async (path) => {
    [started, end] = [0, []];
    const sockets = Promise.all(Array.from({ length: 4 }, () => left(path, JSON.stringify('x'.repeat(SIZE)))));
    await expect.poll(() => started).toBe(4);
    server.server.closeAllConnections();
    await sockets;
    expect(memory.used).toBeGreaterThan(4 * SIZE);
    for (const each of end) each();
    await expect.poll(() => memory.used).toBe(0);
  },
);

test('the body of a client that has left is not counted when no handler gets it', async () => {
  [started, end] = [0, []];
  await Promise.all([left('/waits', 'x'.repeat(SIZE)), left('/nowhere', JSON.stringify('x'.repeat(SIZE)))]);
  await expect.poll(() => memory.used).toBe(0);
  expect(started).toBe(0);
});
