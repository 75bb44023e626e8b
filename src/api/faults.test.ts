import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bareServer } from '../../test/support/http-server.ts';
import { errors } from '../errors.ts';
import { NoRoom } from '../lib/memory-share.ts';
import { currentOwner } from '../lib/scope.ts';
import { openLogger } from '../logger.ts';
import type { Server } from './server.ts';

let server: Server;
let url: string;
const logged: string[] = [];

beforeAll(async () => {
  server = await bareServer(10, openLogger('info', { write: (line) => void logged.push(line) }));
  const fail = () => currentOwner()!.end(new Error('a fault'));
  server.post('/waits', () => {
    fail();
    return new Promise(() => {}); // its callback has failed
  });
  server.get('/full', () => Promise.reject(new NoRoom()));
  server.get('/late', () => {
    const details = [{ code: 'stdout', message: 'a secret' }];
    throw errors.process_timed_out({ seconds: 1 }, { details });
  });
  server.get('/sends', (_request, reply) => {
    reply.raw.write('the first half');
    setTimeout(fail, 10);
    return reply.hijack();
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  url = `http://127.0.0.1:${(server.addresses()[0] as AddressInfo).port}`;
});
afterAll(() => server?.close());

test('a request is answered with 500 when the service fails while handling it, also after its body was read', async () => {
  const body = JSON.stringify({ some: 'body' });
  const headers = { authorization: 'Bearer key', 'content-type': 'application/json' };
  const answer = await fetch(`${url}/waits`, { method: 'POST', body, headers });
  expect(answer.status).toBe(500);
  const { code, message } = (await answer.json()) as { code: string; message: string };
  expect(code).toBe('internal');
  expect(message).toContain(answer.headers.get('x-request-id'));
  expect(message).not.toContain('a fault');
});

test('an answer that has begun is cut off when the service fails in its work', async () => {
  const answer = await fetch(`${url}/sends`, { headers: { authorization: 'Bearer key' } });
  await expect(answer.text()).rejects.toThrow('terminated');
});

test('an answer that found no room in memory is refused with 503, and the client decides about another attempt', async () => {
  const answer = await fetch(`${url}/full`, { headers: { authorization: 'Bearer key' } });
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ code: 'memory_full' });
  expect(answer.headers.get('retry-after')).toBe('5');
  expect(answer.headers.get('x-should-retry')).toBe('false');
});

test('the output of a command that takes too long is for the client alone, and no fault of the service', async () => {
  logged.length = 0;
  const answer = await fetch(`${url}/late`, { headers: { authorization: 'Bearer key' } });
  expect(answer.status).toBe(500);
  expect(await answer.json()).toMatchObject({ code: 'process_timed_out', details: [{ message: 'a secret' }] });
  expect(logged.join('')).not.toContain('a secret');
  const failed = logged.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'request.failed');
  expect(failed).toMatchObject({ level: 'warn', code: 'process_timed_out', error: { stack: expect.any(String) } });
});
