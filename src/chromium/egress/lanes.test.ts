import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { expect, it } from 'vitest';
import {
  cleanUp,
  cleanUpAfterEach,
  dataFrom,
  echo,
  gatewayTo,
  listen,
  open,
  patience,
  raw,
} from '../../../test/support/gateway.ts';
import type { Dial } from './dial.ts';
import type { GatewayOptions } from './gateway.ts';
import type { Lane } from './lanes.ts';

cleanUpAfterEach();

/** An http proxy that connects to anything, records its requests, and requires this login, if any. */
async function proxy(login?: string) {
  const asked: string[] = [];
  const wanted = login && `Basic ${Buffer.from(login).toString('base64')}`;
  const refuses = ({ headers }: http.IncomingMessage) =>
    wanted !== undefined && headers['proxy-authorization'] !== wanted;
  const server = http.createServer((request, response) => {
    if (refuses(request)) return void response.writeHead(407, { 'Proxy-Authenticate': 'Basic realm="x"' }).end();
    asked.push(`GET ${request.url}`);
    return void response.end('by the proxy');
  });
  server.on('connect', (request: http.IncomingMessage, socket: net.Socket) => {
    socket.on('error', () => {});
    if (refuses(request)) return void socket.end('HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n');
    asked.push(`CONNECT ${request.url}`);
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    return void socket.pipe(socket);
  });
  return { port: await listen(server), asked };
}

async function gatewayWithLane(
  ports: number[],
  proxyServer: string,
  { bypassList, ...options }: Partial<GatewayOptions> & { bypassList?: string } = {},
) {
  const gateway = await gatewayTo(ports, options);
  const lane = gateway.gateway.openLane(proxyServer, bypassList)!;
  // In a session the gateway listens on every address of the loopback.
  const side = net.createServer((socket) => gateway.server.emit('connection', socket));
  await once(side.listen(gateway.port, lane.address), 'listening');
  cleanUp.push(() => side.close());
  return { ...gateway, lane };
}

function at({ address }: Lane, port: number) {
  const socket = net.connect({ port, host: address });
  socket.on('error', () => {});
  cleanUp.push(() => socket.destroy());
  return socket;
}

async function say(lane: Lane, port: number, text: string): Promise<string> {
  const socket = at(lane, port);
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (answer += chunk));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(text);
  await closed; // also after a reset: a gateway that does not let it in may hang up before or after the text has arrived
  return answer;
}

const get = (url: string, more = '') => `GET ${url} HTTP/1.1\r\nConnection: close\r\n${more}\r\n`;
const tunnelTo = (target: string, more = '') => `CONNECT ${target} HTTP/1.1\r\n${more}\r\n`;

it('sends what arrives at its address by its own proxy, and the rest of the session as before', async () => {
  const { port: proxyPort, asked } = await proxy();
  const web = await listen(http.createServer((_, response) => void response.end('straight')));
  const { gateway, port, lane } = await gatewayWithLane([proxyPort, web], `127.0.0.1:${proxyPort}`, {
    bypassList: '127.0.0.1',
  });
  expect(await say(lane, port, get('http://shop.test/'))).toContain('by the proxy');
  const tunnel = at(lane, port);
  tunnel.write(tunnelTo('shop.test:443'));
  expect(String(await dataFrom(tunnel))).toContain('200 Connection Established');
  expect(asked).toEqual(['GET http://shop.test/', 'CONNECT shop.test:443']);
  expect(await say(lane, port, get(`http://127.0.0.1:${web}/`))).toContain('straight');
  expect(await raw(port, get(`http://127.0.0.1:${web}/`))).toContain('straight');
  expect(asked).toHaveLength(2);
  tunnel.destroy();
  await expect.poll(() => gateway.counters.clients, patience).toBe(0);
  lane.close();
  await expect.poll(() => open(gateway), patience).toBe(0);
  expect(gateway.counters.down).toBeGreaterThan(0);
});

it('asks the client for the login of its proxy, and keeps it', async () => {
  const { port: proxyPort, asked } = await proxy('ann:sesame');
  const { port, lane } = await gatewayWithLane([proxyPort], `http://127.0.0.1:${proxyPort}`);
  for (const request of [get('http://shop.test/'), tunnelTo('shop.test:443')]) {
    const answer = await say(lane, port, request);
    expect(answer).toMatch(/^HTTP\/1\.1 407 [\s\S]*Proxy-Authenticate: Basic realm="proxy"\r\n/);
  }
  const wrong = `Proxy-Authorization: Basic ${Buffer.from('ann:other').toString('base64')}\r\n`;
  expect(await say(lane, port, get('http://shop.test/', wrong))).toMatch(/^HTTP\/1\.1 407 /);
  const right = `Proxy-Authorization: Basic ${Buffer.from('ann:sesame').toString('base64')}\r\n`;
  expect(await say(lane, port, get('http://shop.test/', right))).toContain('by the proxy');
  const tunnel = at(lane, port);
  tunnel.write(tunnelTo('shop.test:443', right));
  expect(String(await dataFrom(tunnel))).toContain('200 Connection Established');
  expect(asked).toEqual(['GET http://shop.test/', 'CONNECT shop.test:443']);
});

it('lets nothing out once it is closed, and leaves nothing open', async () => {
  const { port: proxyPort } = await proxy();
  const target = await echo();
  const { gateway, port, lane } = await gatewayWithLane([proxyPort, target], `http://127.0.0.1:${proxyPort}`);
  const tunnel = at(lane, port);
  tunnel.write(tunnelTo('shop.test:443'));
  await dataFrom(tunnel);
  const kept = at(lane, port);
  kept.write('GET http://shop.test/ HTTP/1.1\r\n\r\n');
  await dataFrom(kept);
  const ended = Promise.all([tunnel, kept].map((socket) => once(socket, 'close')));
  lane.close();
  lane.close();
  await ended;
  expect(await say(lane, port, get(`http://127.0.0.1:${target}/`))).toBe('');
  await expect.poll(() => open(gateway), patience).toBe(0);
});

it('ends with the gateway', async () => {
  const { port: proxyPort } = await proxy();
  const { gateway, port, lane } = await gatewayWithLane([proxyPort], `http://127.0.0.1:${proxyPort}`);
  const tunnel = at(lane, port);
  tunnel.write(tunnelTo('shop.test:443'));
  await dataFrom(tunnel);
  await gateway.close();
  expect(open(gateway)).toBe(0);
  lane.close();
});

/** Connects to nothing until it is stopped. It stops answering after some attempts, so that endless retries of a gateway do not hang the test. */
function deadDial() {
  const tried: string[] = [];
  const dial: Dial = ({ host, port }, { signal }) =>
    new Promise((_, reject) => {
      if (tried.push(`${host}:${port}`) > 50) return;
      signal.throwIfAborted();
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  return { dial, tried };
}

it.each(['lane', 'gateway'])('does not retry connections that were being opened when the %s closed', async (closes) => {
  const { dial, tried } = deadDial();
  const proxy = { protocol: 'http', host: '127.0.0.1', port: 9, bypassHosts: [] } as const;
  const { gateway, port, lane } = await gatewayWithLane([9], 'http://127.0.0.1:9', { dial, proxy });
  const asked = [get('http://shop.test/'), tunnelTo('shop.test:443')];
  const ofTheLane = asked.map((text) => say(lane, port, text));
  const ofTheSession = asked.map((text) => raw(port, text));
  await expect.poll(() => tried, patience).toHaveLength(4);
  if (closes === 'lane') {
    lane.close();
    expect(await Promise.all(ofTheLane)).toEqual(['', '']);
    await expect.poll(() => gateway.counters.clients, patience).toBe(2);
  }
  await gateway.close();
  expect(await Promise.all([...ofTheLane, ...ofTheSession])).toEqual(['', '', '', '']);
  expect(tried).toHaveLength(4);
});

it('is refused where its proxy may not be reached, and past their number', async () => {
  const { port: proxyPort } = await proxy();
  const { gateway } = await gatewayTo([proxyPort]);
  expect(() => gateway.openLane('socks5://127.0.0.1:9', undefined)).toThrow(
    /127\.0\.0\.1:9, which is a loopback address/,
  );
  expect(() => gateway.openLane('http://10.0.0.1', undefined)).toThrow(/private/);
  expect(gateway.openLane('direct://', undefined)).toBeUndefined();
  const lanes = Array.from({ length: 256 }, () => gateway.openLane(`127.0.0.1:${proxyPort}`, undefined)!);
  expect(new Set(lanes.map(({ address }) => address)).size).toBe(256);
  expect(() => gateway.openLane(`127.0.0.1:${proxyPort}`, undefined)).toThrow(/256 contexts/);
  lanes[0]!.close();
  expect(lanes).not.toContainEqual({ address: gateway.openLane(`127.0.0.1:${proxyPort}`, undefined)!.address });
});
