import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { credentialHeader, credentials, type Journey } from '../../src/cluster/credential.ts';
import { wayTo } from '../../src/cluster/forward.ts';
import { tokens } from '../../src/lib/tokens.ts';
import { openKeys } from '../../src/store/secrets.ts';
import { listenOnLoopback } from '../support/listen.ts';
import { startService, type Service } from '../support/service.ts';
import type { Passenger } from '../../src/lib/caller.ts';

/** What another node signs for this one, as an eavesdropper between them would see it. */
let service: Service;
let write: (journey: Omit<Journey, 'to'>, body?: string) => string;

beforeAll(async () => {
  service = await startService();
  const keys = await openKeys(service.dataDir, (await readFile(join(service.dataDir, 'secret-key'), 'utf8')).trim());
  const now = () => Date.now();
  const other = credentials({ tokens: tokens(() => keys.ring(), now, 'node to node'), now });
  const caller = { keyId: 'key_of_a_client', keyName: 'client', projectId: null };
  const passenger: Passenger = { requestId: 'req_1', clientIp: '192.0.2.1', caller, project: null };
  write = (journey, body) => other.write({ to: service.app.nodes.id, ...journey }, passenger, body);
});
afterAll(() => service?.close());

const post = async (credential: string, body: string, type = 'application/json') => {
  const headers = { [credentialHeader]: credential, 'content-type': type };
  const answer = await fetch(`${service.url}/org/projects`, { method: 'POST', headers, body });
  return { status: answer.status, text: await answer.text() };
};
const journeyOf = (body: string) => ({
  method: 'POST',
  url: '/org/projects',
  headers: { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) },
});

test('a credential that was seen on its way is good once', async () => {
  const body = JSON.stringify({ name: 'first' });
  const seen = write(journeyOf(body), body);
  expect((await post(seen, body)).status).toBeLessThan(300);
  expect((await post(seen, body)).status).toBe(401);
});

test.each([
  ['another body of the same length', (body: string) => body.replace('wanted', 'stolen')],
  ['a longer body', (body: string) => body.replace('wanted', 'wanted-and-more')],
])('it is worth nothing with %s', async (_what, change) => {
  const body = JSON.stringify({ name: `wanted ${_what.length}` });
  const seen = write(journeyOf(body), body);
  expect((await post(seen, change(body))).status).toBe(401);
  expect((await service.call('GET', '/org/projects')).text).not.toMatch(/stolen|and-more/);
});

test('a body that streams through is bound by its length and its type', async () => {
  const body = JSON.stringify({ name: 'streamed' });
  const seen = write(journeyOf(body));
  expect((await post(seen, `${body} `)).status).toBe(401);
  expect((await post(write(journeyOf(body)), body, 'application/json; charset=utf-8')).status).toBe(401);
  expect((await post(seen, body)).status).toBeLessThan(300);
});

test('requests that a node forwards are accepted: with a body and its length, with chunks, and without a body', async () => {
  const way = wayTo(service.url);
  const relay = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    const note: [string, string] = [credentialHeader, write({ method, url, headers })];
    way.forward(request, note, new AbortController().signal).then(
      (answer) => answer.body.pipe(response.writeHead(answer.status)),
      (error: Error) => response.writeHead(599).end(error.message),
    );
  });
  const { port, close } = await listenOnLoopback(relay);
  const ask = async (method: string, path: string, body?: string | ReadableStream) => {
    const headers: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const init = { method, headers, ...(body === undefined ? {} : { body, duplex: 'half' }) } as RequestInit;
    return (await fetch(`http://127.0.0.1:${port}${path}`, init)).status;
  };
  expect(await ask('GET', '/org/projects?limit=1')).toBe(200);
  expect(await ask('POST', '/org/projects', JSON.stringify({ name: 'with its length' }))).toBe(201);
  expect(await ask('POST', '/org/projects', new Blob([JSON.stringify({ name: 'in chunks' })]).stream())).toBe(201);
  expect(await ask('POST', '/org/projects')).toBe(400); // taken, and found to lack a name
  way.close();
  await close();
});
