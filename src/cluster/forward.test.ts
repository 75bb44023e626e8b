import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { httpServer } from '../api/server.ts';
import { errors } from '../errors.ts';
import { openLogger } from '../logger.ts';
import { credentialHeader } from './credential.ts';
import { wayTo } from './forward.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A node that returns the test's answers, and the server of another node that forwards everything to it. */
async function twoNodes(answer: (request: IncomingMessage, response: ServerResponse) => unknown, bodySeconds = 60) {
  const owner = createServer((request, response) => void answer(request, response));
  owner.listen(0, '127.0.0.1');
  await once(owner, 'listening');
  open.push(() => owner.close() && owner.closeAllConnections());
  const way = wayTo(`http://127.0.0.1:${(owner.address() as AddressInfo).port}`);
  open.push(() => way.close());
  const audited: number[] = [];
  const caller = { keyId: 'key', keyName: 'key', projectId: null };
  const front = await httpServer({
    gate: { authenticate: async () => caller, resolveProject: async () => ({ id: 'project', name: 'Default' }) },
    audit: { record: async (_request, status) => void audited.push(status) },
    logger: openLogger('silent'),
    trustProxy: [],
    bodySeconds,
    elsewhere: {
      ready: () => undefined,
      passengerOf: () => undefined,
      nodeFor: async () => 'there',
      forward: (_node, request, _passenger, over) =>
        way.forward(request, [credentialHeader, 'note'], over).catch((error: Error) => {
          throw over.aborted ? over.reason : errors.node_unreachable({ node: 'there', detail: error.message });
        }),
    },
  });
  front.all('/*', () => 'not sent on');
  const url = await front.listen({ host: '127.0.0.1', port: 0 });
  open.push(() => front.close());
  return { url, way, audited, headers: { authorization: 'Bearer key' } };
}

const MIB = 2 ** 20;
const chunk = Buffer.alloc(64 * 1024, 'x');
const large = (bytes: number) =>
  Readable.from(
    (function* () {
      for (let sent = 0; sent < bytes; sent += chunk.length) yield chunk;
    })(),
  );

/** The peak memory of this process, which is both nodes and the client, during `work`. */
async function mostMemory(work: Promise<unknown>): Promise<number> {
  const before = process.memoryUsage().rss;
  let most = before;
  const look = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20);
  await work.finally(() => clearInterval(look));
  return most - before;
}

test('half a gigabyte goes through in each direction, in a fixed amount of memory', async () => {
  const bytes = 512 * MIB;
  let received = 0;
  const { url, headers } = await twoNodes(async (request, response) => {
    for await (const part of request) received += (part as Buffer).length;
    await pipeline(large(bytes), response.writeHead(200, { 'content-length': bytes }));
  });
  let answered = 0;
  const exchange = async () => {
    const response = await fetch(`${url}/up-and-down`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/octet-stream' },
      body: Readable.toWeb(large(bytes)),
      duplex: 'half',
    });
    for await (const part of response.body!) answered += (part as Uint8Array).length;
  };
  const growth = await mostMemory(exchange());
  expect([received, answered]).toEqual([bytes, bytes]);
  expect(growth).toBeLessThan(250 * MIB); // what piles up would be all of it
});

test('stops reading from the node while the client does not read', async () => {
  let sent = 0;
  const { url, headers } = await twoNodes(async (_request, response) => {
    const endless = Readable.from(
      (function* () {
        for (; ; sent += chunk.length) yield chunk;
      })(),
    );
    await pipeline(endless, response.writeHead(200)).catch(() => {});
  });
  const request = httpRequest(`${url}/down`, { headers }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let before = -1;
  while (sent !== before) {
    before = sent;
    await sleep(200);
  }
  expect(sent).toBeLessThan(64 * MIB);
  response.destroy();
});

test('an answer begins before its first byte of body: events may be long in coming', async () => {
  const { url, headers } = await twoNodes((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-several': ['a', 'b'] }).flushHeaders();
  });
  const response = await fetch(`${url}/events`, { headers });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  expect(response.headers.get('x-several')).toBe('a, b');
  await response.body!.cancel();
});

test('a client that hangs up, in the middle of a request or of an answer, is disconnected for the other node too', async () => {
  let came = 0;
  let left = 0;
  const { url, headers } = await twoNodes((request, response) => {
    came++;
    response.on('close', () => left++);
    if (request.method === 'GET') response.writeHead(200).write('some');
    else request.resume();
  });
  const reading = await fetch(`${url}/answer`, { headers });
  await reading.body!.cancel();
  const sending = httpRequest(`${url}/request`, { method: 'POST', headers: { ...headers, 'content-length': 1000 } });
  sending.on('error', () => {}).write('half');
  await expect.poll(() => came).toBe(2);
  sending.destroy();
  await expect.poll(() => left).toBe(2);
});

test('a body that stalls on its way to another node is a 408, and the other node sees the request aborted', async () => {
  let resolveAborted!: () => void;
  const aborted = new Promise<void>((resolve) => (resolveAborted = resolve));
  const { url, headers, audited } = await twoNodes((request) => request.resume().once('error', resolveAborted), 1);
  const sending = httpRequest(`${url}/request`, { method: 'POST', headers: { ...headers, 'content-length': 1000 } });
  sending.on('error', () => {}).write('half');
  const [response] = (await once(sending, 'response')) as [IncomingMessage];
  const answer = JSON.parse(Buffer.concat(await response.toArray()).toString()) as { code: string };
  expect([response.statusCode, answer.code, response.headers.connection]).toEqual([408, 'body_timeout', 'close']);
  await aborted;
  expect(audited).toEqual([408]);
});

test('an answer that the owner breaks off is broken off, and an unreachable owner is a 502', async () => {
  const { url, headers, way } = await twoNodes((request, response) => {
    if (request.url === '/half')
      response.writeHead(200, { 'content-length': 100 }).write('half', () => response.destroy());
    else if (request.url === '/none') response.destroy();
  });
  const half = await fetch(`${url}/half`, { headers });
  await expect(half.text()).rejects.toThrow('terminated');
  const none = await fetch(`${url}/none`, { headers });
  expect([none.status, ((await none.json()) as { code: string }).code]).toEqual([502, 'node_unreachable']);
  const waiting = fetch(`${url}/for-ever`, { headers });
  await sleep(100);
  way.close(); // it was declared dead
  expect((await waiting).status).toBe(502);
});

test('a client that is refused while it sends can read the error, and its next request works', async () => {
  const { url, headers, audited } = await twoNodes((request, response) => {
    if (request.method === 'GET') return response.end('fine');
    response.writeHead(507, { connection: 'close' }).end('no room');
  });
  for (let round = 0; round < 5; round++) {
    const refused = await fetch(`${url}/upload`, {
      method: 'PUT',
      headers: { ...headers, 'content-type': 'application/octet-stream' },
      body: Readable.toWeb(large(4 * MIB)),
      duplex: 'half',
    });
    expect([507, 502]).toContain(refused.status); // its connection may break before the answer is read
    await refused.text();
    expect(await (await fetch(`${url}/after`, { headers })).text()).toBe('fine');
  }
  expect(audited).toHaveLength(5);
});
