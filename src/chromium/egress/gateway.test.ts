import { once } from 'node:events';
import net, { type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  cleanUp,
  connect,
  echo,
  gatewayTo,
  listen,
  open,
  openTunnel,
  patience,
  raw,
  cleanUpAfterEach,
} from '../../../test/support/gateway.ts';
import type { Dial } from './dial.ts';

cleanUpAfterEach();

describe('tunnels', () => {
  it('carry bytes both ways, half-closes too, and count them', async () => {
    const target = await echo();
    const { gateway, port } = await gatewayTo([target]);
    const socket = await openTunnel(port, `127.0.0.1:${target}`);
    expect(gateway.counters).toMatchObject({ clients: 1, upstreams: 1, refused: 0 });
    const sent = Buffer.alloc(5_000_000, 'corral');
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    socket.end(sent);
    await once(socket, 'end');
    expect(Buffer.concat(received).equals(sent)).toBe(true);
    await expect.poll(() => open(gateway), patience).toBe(0);
    expect(gateway.counters).toMatchObject({ up: sent.length, down: sent.length });
  });

  it('pass on bytes that the client sent together with its CONNECT', async () => {
    const target = await echo();
    const { port } = await gatewayTo([target]);
    const socket = connect(port);
    socket.end(`CONNECT 127.0.0.1:${target} HTTP/1.1\r\n\r\nearly bird`);
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    await once(socket, 'end');
    expect(answer).toBe('HTTP/1.1 200 Connection Established\r\n\r\nearly bird');
  });

  it('wait for a slow reader instead of filling memory', async () => {
    let written = 0;
    const chunk = Buffer.alloc(65_536);
    const target = await listen(
      net.createServer((socket) => {
        const pump = () => {
          while (written < 200_000_000 && socket.write(chunk)) written += chunk.length;
        };
        socket.on('drain', pump);
        pump();
      }),
    );
    const { gateway, port } = await gatewayTo([target]);
    const socket = await openTunnel(port, `127.0.0.1:${target}`);
    socket.pause();
    let before = -1;
    await expect.poll(() => before === (before = gateway.counters.down), { interval: 200, timeout: 60_000 }).toBe(true);
    expect(gateway.counters.down).toBeLessThan(50_000_000);
    socket.destroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it.each(['client ends', 'client resets', 'upstream ends', 'upstream resets', 'both reset', 'the gateway closes'])(
    'leave nothing open when %s in the middle',
    async (exit) => {
      const accepted: Socket[] = [];
      const target = await listen(
        net.createServer((socket) => {
          accepted.push(socket);
          socket.resume();
        }),
      );
      const { gateway, port } = await gatewayTo([target]);
      const sockets = await Promise.all(Array.from({ length: 8 }, () => openTunnel(port, `127.0.0.1:${target}`)));
      await expect.poll(() => accepted.length).toBe(sockets.length); // the kernel connects before the server accepts
      for (const socket of [...sockets, ...accepted]) socket.resume().write(Buffer.alloc(100_000));
      if (exit === 'client ends') for (const socket of sockets) socket.end();
      if (exit === 'client resets' || exit === 'both reset') for (const socket of sockets) socket.resetAndDestroy();
      if (exit === 'upstream ends') for (const socket of accepted) socket.end();
      if (exit === 'upstream resets' || exit === 'both reset') for (const socket of accepted) socket.resetAndDestroy();
      if (exit === 'upstream ends') for (const socket of sockets) socket.on('end', () => socket.end());
      if (exit === 'the gateway closes') {
        await gateway.close();
      }
      await expect.poll(() => open(gateway), patience).toBe(0);
    },
  );

  it('do not outlive a peer that has said its last word and then keeps still', async () => {
    const target = await listen(net.createServer({ allowHalfOpen: true }, (socket) => socket.resume()));
    const { gateway, port } = await gatewayTo([target], { limits: { halfOpenMs: 100 } });
    const socket = await openTunnel(port, `127.0.0.1:${target}`);
    socket.end('last word');
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('are let go of when the client leaves while they are being dialled', async () => {
    const signals: AbortSignal[] = [];
    const dial: Dial = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signals.push(signal);
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const { gateway, port } = await gatewayTo([9], { dial });
    const socket = connect(port);
    socket.write('CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n');
    await expect.poll(() => signals.length).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
    expect(signals[0]?.aborted).toBe(true);
    expect(gateway.counters.refused).toBe(0);
  });
});

describe('a client', () => {
  it('a client that sends its headers byte by byte, or none, is disconnected', async () => {
    const { gateway, port } = await gatewayTo([], { limits: { headersMs: 200 } });
    const silent = connect(port);
    const dripping = connect(port);
    dripping.write('GET http://127.0.0.1:9/ HTTP/1.1\r\nX-');
    const drip = setInterval(() => dripping.write('Y'), 20);
    cleanUp.push(() => clearInterval(drip));
    const closed = [silent, dripping].map((socket) => {
      // A byte that arrives after the connection was closed resets it.
      socket
        .resume()
        .on('error', () => {})
        .on('end', () => socket.end());
      return new Promise((resolve) => socket.on('close', resolve));
    });
    await Promise.all(closed);
    expect(gateway.counters.refused).toBe(0);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('cannot open more connections than a session may have', async () => {
    const target = await echo();
    const { gateway, port } = await gatewayTo([target], { limits: { clients: 3 } });
    const tunnels = await Promise.all([1, 2, 3].map(() => openTunnel(port, `127.0.0.1:${target}`)));
    const answer = await raw(port, '');
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(answer).toContain('X-Corral-Egress: too_many_connections');
    for (const tunnel of tunnels) tunnel.destroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
    (await openTunnel(port, `127.0.0.1:${target}`)).destroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
  });
});

it('closing twice is fine, and no connection is taken afterwards', async () => {
  const { gateway, server } = await gatewayTo([]);
  await Promise.all([gateway.close(), gateway.close()]);
  expect(open(gateway)).toBe(0);
  expect(server.listening).toBe(false); // another process may have its port by now
});
