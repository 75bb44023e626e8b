import { once } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { cleanUp, cleanUpAfterEach, connect, gatewayTo, open, openTunnel, raw } from '../../test/support/gateway.ts';
import { destinations, parseAllowList } from '../chromium/egress/destinations.ts';
import { ownEndpoints, type InsideUpgrade } from './own-endpoint.ts';

cleanUpAfterEach();

const service = { host: '127.0.0.1', port: 9 };
const asWebSocket = 'Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';

/** A gateway for a session that may enter a service that listens nowhere: only the endpoint answers. */
async function house({ allowed = '' } = {}) {
  const upgrades: InsideUpgrade[] = [];
  const endpoints = ownEndpoints((upgrade) => void upgrades.push(upgrade));
  cleanUp.push(() => endpoints.close());
  const { gateway, port } = await gatewayTo([], {
    allow: destinations({ service: [service], allow: parseAllowList(allowed) }),
    ownEndpoint: {
      isAt: (host, port) => host === service.host && port === service.port,
      enter: (socket, head) => endpoints.enter('mine', socket, head),
    },
  });
  return { gateway, port, upgrades };
}

async function read(socket: Socket): Promise<string> {
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
  socket.once('end', () => socket.end());
  await once(socket, 'end');
  return answer;
}

test('a tunnel to the service enters the endpoint with its session, also when the request came along with CONNECT', async () => {
  const { port, upgrades } = await house();
  const later = await openTunnel(port, '127.0.0.1:9');
  later.write(`GET /browser/cdp?jwt=1 HTTP/1.1\r\n${asWebSocket}`);
  const early = connect(port);
  early.write(`CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\nGET /browser/cdp?jwt=1 HTTP/1.1\r\n${asWebSocket}`);
  await expect.poll(() => upgrades.length).toBe(2);
  expect(upgrades.map(({ sessionId, request }) => [sessionId, request.url])).toEqual([
    ['mine', '/browser/cdp?jwt=1'],
    ['mine', '/browser/cdp?jwt=1'],
  ]);
});

test('requests other than websockets are refused there, and other addresses are refused before', async () => {
  const { port, upgrades } = await house();
  const socket = await openTunnel(port, '127.0.0.1:9');
  socket.write('GET /browsers HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await read(socket)).toMatch(/^HTTP\/1\.1 403 [\s\S]*its own cdp_ws_url/);
  const nested = await openTunnel(port, '127.0.0.1:9');
  nested.write('CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: x\r\n\r\n');
  expect(await read(nested)).toBe('');
  for (const target of ['localhost:9', '[::1]:9', '127.0.0.1:10'])
    expect(await raw(port, `CONNECT ${target} HTTP/1.1\r\n\r\n`), target).toMatch(/^HTTP\/1\.1 403 /);
  expect(await raw(port, 'GET http://127.0.0.1:9/health HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1\.1 403 /,
  );
  expect(upgrades).toEqual([]);
});

test('listing the service in the settings opens all of it, not the endpoint', async () => {
  const { port, upgrades } = await house({ allowed: '127.0.0.1:9' });
  expect(await raw(port, 'CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1\.1 502 /); // it listens nowhere
  expect(upgrades).toEqual([]);
});

test('the gateway closes with connections in the endpoint: silent ones, open ones and closed ones', async () => {
  const { gateway, port, upgrades } = await house();
  await openTunnel(port, '127.0.0.1:9');
  const over = await openTunnel(port, '127.0.0.1:9');
  over.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await read(over);
  const used = await openTunnel(port, '127.0.0.1:9');
  used.write(`GET /browser/cdp HTTP/1.1\r\n${asWebSocket}`);
  await expect.poll(() => upgrades.length).toBe(1);
  upgrades[0]!.socket.on('error', () => {});
  await gateway.close();
  await expect.poll(() => open(gateway)).toBe(0);
  expect(upgrades[0]!.socket.destroyed).toBe(true);
});
