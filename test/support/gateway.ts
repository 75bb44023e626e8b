import { once } from 'node:events';
import http from 'node:http';
import net, { type Server, type Socket } from 'node:net';
import { afterEach, expect } from 'vitest';
import { destinations, parseAllowList } from '../../src/chromium/egress/destinations.ts';
import { startGateway, type Gateway, type GatewayOptions } from '../../src/chromium/egress/gateway.ts';
import type { Log } from '../../src/lib/log.ts';
import { listenOnLoopback } from './listen.ts';

// Every address here is a loopback address: a guard that fails sends no packet anywhere.

/** What each test leaves behind, undone after it in reverse order. */
export const cleanUp: (() => unknown)[] = [];

/** Each test file calls this. Files share this module, so a hook that it set by itself would only be the first file's. */
export const cleanUpAfterEach = () =>
  afterEach(async () => {
    for (const step of cleanUp.splice(0).reverse()) await step();
  });

export async function listen(server: Server): Promise<number> {
  const { port, close } = await listenOnLoopback(server);
  cleanUp.push(close);
  return port;
}

/** A gateway that lets browsers reach `ports` of 127.0.0.1, and nothing else on this machine. */
export async function gatewayTo(ports: number[], options: Partial<GatewayOptions> = {}) {
  const server = net.createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  const lines: { facts: Record<string, unknown>; event: string }[] = [];
  const write = (facts: object, event: string) => void lines.push({ facts: { ...facts }, event });
  const log: Log = { debug: write, info: write, warn: write, error: write };
  const allow = destinations({ allow: parseAllowList(ports.map((each) => `127.0.0.1:${each}`).join(',')) });
  const gateway = startGateway(server, { allow, log, ...options });
  cleanUp.push(() => gateway.close());
  return { gateway, port, lines, server };
}

/** A server that counts its connections, for tests in which there must be none. */
export async function offLimits() {
  const visits: string[] = [];
  const server = http.createServer((request, response) => {
    visits.push(request.url ?? '');
    response.end('you should not see this');
  });
  server.on('connection', () => visits.push('connection'));
  return { port: await listen(server), visits };
}

export function connect(port: number): Socket {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  cleanUp.push(() => socket.destroy());
  return socket;
}

/** Sends bytes as they are, and reads until the gateway hangs up. */
export async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port);
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk) => (answer += chunk));
  socket.on('end', () => socket.end());
  socket.write(text, 'latin1');
  await once(socket, 'end').catch(() => {});
  return answer;
}

export async function openTunnel(port: number, target: string): Promise<Socket> {
  const socket = connect(port);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const established = 'HTTP/1.1 200 Connection Established\r\n\r\n';
  const head = await dataFrom(socket);
  expect(head.toString('latin1', 0, established.length)).toBe(established);
  return socket;
}

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export function request(
  port: number,
  url: string,
  options: http.RequestOptions = {},
  body?: string | Buffer,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({ port, host: '127.0.0.1', path: url, agent: false, ...options }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      incoming.on('end', () =>
        resolve({ status: incoming.statusCode!, headers: incoming.headers, body: Buffer.concat(chunks).toString() }),
      );
    });
    outgoing.on('error', reject).end(body);
  });
}

/** The invariant of every test that ends connections: this count returns to 0. */
export function open({ counters }: Gateway): number {
  return counters.clients + counters.upstreams;
}
export const patience = { timeout: 20_000 };

export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a port');
  return address.port;
}

export function responseTo(outgoing: http.ClientRequest): Promise<http.IncomingMessage> {
  return new Promise((resolve) => outgoing.once('response', resolve));
}

export function dataFrom(stream: Socket | http.IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => stream.once('data', resolve));
}

export function get(port: number, path: string, headers = ''): string {
  return `GET http://127.0.0.1:${port}${path} HTTP/1.1\r\n${headers}\r\n`;
}

export async function echo() {
  return listen(net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket)));
}
