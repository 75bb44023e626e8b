import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Listens on a free port of loopback. Closing it ends its connections, so that it closes at once. */
export async function listenOnLoopback(server: Server): Promise<{ port: number; close: () => Promise<unknown> }> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)));
  });
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * For programs that need a port number before they listen. It is below the range from which the kernel assigns ports to connections, so no
 * connection takes it before the program listens.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    if (!(await once(server, 'listening').catch(() => undefined))) continue; // it is taken
    server.close();
    await once(server, 'close');
    return port;
  }
}
