import { once } from 'node:events';
import net from 'node:net';
import { expect, test } from 'vitest';
import { listenOnLoopback } from '../../../test/support/listen.ts';
import { MOST_AT_DOOR, openDoor } from './cell.ts';

test('a door takes so many connections at once, refuses the rest, and ends all of them with its cell', async () => {
  let reached = 0;
  const service = await listenOnLoopback(net.createServer((socket) => void (reached++, socket.resume())));
  const door = net.createServer();
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  const { port } = door.address() as net.AddressInfo;
  const close = openDoor(door, {
    door: { address: '127.0.0.1', port },
    name: undefined,
    target: { host: '127.0.0.1', port: service.port },
  });
  let ended = 0;
  const clients = Array.from({ length: MOST_AT_DOOR + 20 }, () =>
    net
      .connect(port, '127.0.0.1')
      .on('error', () => {})
      .on('close', () => void ended++)
      .resume(),
  );
  try {
    await expect.poll(() => [reached, ended], { timeout: 60_000 }).toEqual([MOST_AT_DOOR, 20]);
    close();
    await expect.poll(() => ended).toBe(clients.length);
  } finally {
    for (const client of clients) client.destroy();
    await service.close();
  }
}, 120_000);
