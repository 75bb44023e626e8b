import { once } from 'node:events';
import net from 'node:net';
import { expect, test } from 'vitest';
import { listenOnLoopback } from '../../../test/support/listen.ts';
import { MOST_CONNECTIONS, openListener } from './cell.ts';

test('a listener takes so many connections at once, refuses the rest, and ends all of them with its cell', async () => {
  let reached = 0;
  const service = await listenOnLoopback(net.createServer((socket) => void (reached++, socket.resume())));
  const listener = net.createServer();
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as net.AddressInfo;
  const close = openListener(listener, {
    listener: { address: '127.0.0.1', port },
    name: undefined,
    target: { host: '127.0.0.1', port: service.port },
  });
  let ended = 0;
  const clients = Array.from({ length: MOST_CONNECTIONS + 20 }, () =>
    net
      .connect(port, '127.0.0.1')
      .on('error', () => {})
      .on('close', () => void ended++)
      .resume(),
  );
  try {
    await expect.poll(() => [reached, ended], { timeout: 60_000 }).toEqual([MOST_CONNECTIONS, 20]);
    close();
    await expect.poll(() => ended).toBe(clients.length);
  } finally {
    for (const client of clients) client.destroy();
    await service.close();
  }
}, 120_000);
