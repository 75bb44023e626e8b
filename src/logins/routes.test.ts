import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { bareServer } from '../../test/support/http-server.ts';
import type { Server } from '../api/server.ts';
import { loginRoutes } from './routes.ts';
import type { LoginService } from './service.ts';

let server: Server;
afterEach(() => server?.close());

test('a connection has 64 event streams, and a place again when a reader leaves', async () => {
  const logins = {
    get: async (_asking: unknown, id: string) => ({ id }),
    async *follow(_asking: unknown, _id: string, gone: AbortSignal) {
      await new Promise((resolve) => gone.addEventListener('abort', resolve, { once: true }));
      yield {};
    },
  };
  server = await bareServer(10);
  await server.register(loginRoutes({ logins: logins as unknown as LoginService }));
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.addresses()[0] as AddressInfo;
  const follow = (id: string) =>
    fetch(`http://127.0.0.1:${port}/auth/connections/${id}/events`, { headers: { authorization: 'Bearer key' } });

  const streams = await Promise.all(Array.from({ length: 64 }, () => follow('one')));
  expect(streams.every(({ status }) => status === 200)).toBe(true);
  const refused = await follow('one');
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({
    code: 'too_many_streams',
    message: 'This auth connection has 64 open event streams, which is the maximum. Close one first.',
  });
  expect((await follow('another')).status).toBe(200);
  await streams[0]!.body!.cancel();
  await expect.poll(async () => (await follow('one')).status).toBe(200);
});
