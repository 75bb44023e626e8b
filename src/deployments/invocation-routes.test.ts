import { connect, type AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { bareServer } from '../../test/support/http-server.ts';
import type { Server } from '../api/server.ts';
import { memory } from '../lib/byte-budget.ts';
import { invocationRoutes } from './invocation-routes.ts';
import type { InvocationService } from './invocation-service.ts';

const MIB = 2 ** 20;
const text = `"${'é'.repeat(2 * MIB)}\\"`;
const about = {
  app_name: 'a',
  version: '1',
  action_name: 'b',
  started_at: '2026-01-01T00:00:00.000Z',
  finished_at: null,
};
const invocation = { id: 'i', ...about, status: 'succeeded', payload: text, output: text };

let server: Server;
afterEach(() => server?.close());

async function portOf(invocations: Partial<InvocationService>): Promise<number> {
  server = await bareServer(20);
  const room = { invocations: invocations as InvocationService, closing: new AbortController().signal };
  await server.register(invocationRoutes({ ...room, following: undefined as never, browsers: undefined as never }));
  await server.listen({ host: '127.0.0.1', port: 0 });
  return (server.addresses()[0] as AddressInfo).port;
}

test('large texts are sent as they are, in one invocation and in a list', async () => {
  const port = await portOf({
    get: async () => invocation as never,
    list: async () => ({ rows: [invocation, { ...invocation, payload: '1' }] as never, cut: true }),
  });
  const read = async (path: string) =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: 'Bearer key' } })).json();
  expect(await read('/invocations/i')).toEqual(invocation);
  expect(await read('/invocations')).toEqual([invocation, { ...invocation, payload: '1' }]);
  await expect.poll(() => memory.used).toBe(0);
});

test('large invocations are not read while the answers before them are not', async () => {
  let asked = 0;
  const port = await portOf({
    async get(_project, _id, room) {
      asked++;
      await room?.add(2 * (text.length + text.length));
      return invocation as never;
    },
  });
  const clients = Array.from({ length: 12 }, () => connect(port, '127.0.0.1').pause());
  for (const client of clients)
    client.write('GET /invocations/i HTTP/1.1\r\nhost: x\r\nauthorization: Bearer key\r\n\r\n');
  await expect.poll(() => asked).toBe(clients.length);
  expect(memory.waiting).toBeGreaterThan(0);
  expect(memory.used).toBeLessThan(88 * MIB);
  for (const client of clients) client.destroy();
  await expect.poll(() => [memory.used, memory.waiting], { timeout: 20_000 }).toEqual([0, 0]);
});
