import multipart from '@fastify/multipart';
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bareServer } from '../../test/support/http-server.ts';
import { partsOf } from './body-clock.ts';
import type { Server } from './server.ts';

let server: Server;
let port: number;
const open = new Set<Socket>();
/** Set by the stream's route: how its reader is held up. */
let hold: Promise<void> | undefined;
/** How the last body ended for the route that read it, by the name that its client gave. */
const ends = new Map<unknown, string>();

async function lengthOf(content: AsyncIterable<Buffer>, name: unknown): Promise<number> {
  let length = 0;
  try {
    for await (const chunk of content) length += chunk.length;
    ends.set(name, 'end');
    return length;
  } catch (error) {
    ends.set(name, (error as { code?: string }).code ?? 'none');
    throw error;
  }
}

beforeAll(async () => {
  server = await bareServer(1);
  server.post('/json', { schema: { body: { type: 'object' } } }, ({ body }) => ({
    length: JSON.stringify(body).length,
  }));
  await server.register(async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    app.post('/stream', { config: { body: 'stream' } }, async ({ body, headers }) => {
      await hold;
      return { length: await lengthOf(body as Readable, headers['x-name']) };
    });
  });
  await server.register(async (app) => {
    app.removeAllContentTypeParsers();
    await app.register(multipart);
    app.post('/form', { config: { body: 'form' } }, async (request) => {
      const lengths: number[] = [];
      for await (const part of partsOf(request))
        if (part.type === 'file') lengths.push(await lengthOf(part.file, request.headers['x-name']));
      return { lengths };
    });
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = server.addresses()[0] as AddressInfo);
});
afterAll(async () => {
  for (const socket of open) socket.destroy();
  await server.close();
});

/** A client that has sent the head of a request and the beginning of its body. */
async function sending(path: string, headers: string[], beginning: string) {
  const socket = connect(port, '127.0.0.1');
  open.add(socket);
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const closed = once(socket, 'close');
  await once(socket, 'connect');
  const head = [`POST ${path} HTTP/1.1`, 'Host: x', 'Authorization: Bearer key', ...headers];
  socket.write(`${head.join('\r\n')}\r\n\r\n${beginning}`);
  return {
    socket,
    answered: () => text,
    /** Resolves when the service has closed the connection. */
    closed: closed.then(() => text),
  };
}

const octets = 'Content-Type: application/octet-stream';
const form = 'Content-Type: multipart/form-data; boundary=b';
const json = 'Content-Type: application/json';
const fileOf = (text: string) =>
  `--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\nContent-Type: text/plain\r\n\r\n${text}`;

// Each of these waits for the same second.
test.concurrent.each([
  ['JSON', '/json', [json, 'Content-Length: 100'], '{"half":'],
  ['JSON of unknown length', '/json', [json, 'Transfer-Encoding: chunked'], '8\r\n{"half":\r\n'],
  ['JSON with nothing of it', '/json', [json, 'Content-Length: 100'], ''],
  ['a stream', '/stream', [octets, 'Content-Length: 100'], 'half'],
  ['a form, between its parts', '/form', [form, 'Content-Length: 1000'], `${fileOf('whole')}\r\n--b\r\n`],
  ['a form, in the middle of a file', '/form', [form, 'Content-Length: 1000'], fileOf('half')],
])('%s that stalls is answered with 408, and the connection closed', async (what, path, headers, beginning) => {
  const client = await sending(path, [...headers, `X-Name: ${what}`], beginning);
  const answer = await client.closed;
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(answer).toMatch(/\r\nconnection: close\r\n/i);
  expect(answer).toContain('"code":"body_timeout"');
  if (path !== '/json')
    expect(ends.get(what)).toBe(path === '/form' && !beginning.endsWith('half') ? 'end' : 'body_timeout');
});

test.concurrent('a body that trickles is refused like a body that stalls', async () => {
  const client = await sending('/stream', [octets, 'Content-Length: 100000'], 'x');
  const trickle = setInterval(() => client.socket.write('x'), 20);
  const answer = await client.closed.finally(() => clearInterval(trickle));
  expect(answer).toContain('"code":"body_timeout"');
});

test.concurrent('a body that is read whole may not take for ever, however it flows', async () => {
  const client = await sending('/json', [json, 'Content-Length: 1000000'], '{"a":"');
  const flow = setInterval(() => client.socket.write('x'.repeat(100)), 20);
  const answer = await client.closed.finally(() => clearInterval(flow));
  expect(answer).toContain('"code":"body_timeout"');
});

test('time in which the service does not read is not the client’s', async () => {
  let release!: () => void;
  hold = new Promise((resolve) => (release = resolve));
  const length = 1024 * 1024;
  const client = await sending('/stream', [octets, `Content-Length: ${length}`], 'x'.repeat(length - 1));
  // Longer than the whole deadline, counted by the clock of another body that began later.
  await (
    await sending('/json', [json, 'Content-Length: 10'], '')
  ).closed;
  expect(client.answered()).toBe('');
  release();
  client.socket.write('x');
  await expect.poll(() => client.answered(), { timeout: 60_000 }).toContain(`{"length":${length}}`);
});

test('a connection does not outlive the answer to a body that never comes whole', async () => {
  const client = await sending('/json?x=%00', [json, 'Content-Length: 100'], 'half');
  const answer = await client.closed;
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
});
