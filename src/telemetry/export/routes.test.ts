import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { bareServer } from '../../../test/support/http-server.ts';
import { eventList, tab } from '../../../test/support/telemetry-events.ts';
import type { Server } from '../../api/server.ts';
import { memory } from '../../lib/byte-budget.ts';
import { exportRoutes } from './routes.ts';
import type { EventSource } from './source.ts';

let server: Server;
afterEach(() => server?.close());

test.each(['har', 'trace'])('what a %s keeps in memory counts until its download is closed', async (kind) => {
  const { list } = eventList();
  const events = eventList();
  for (let id = 0; id < 10; id++)
    events.add('network_request', {
      ...tab('T', 'L'),
      request_id: `${id}`,
      url: 'http://a.test/',
      resource_type: 'Fetch',
      post_data: 'x'.repeat(500_000),
    });
  let read = () => {};
  const allRead = new Promise<void>((resolve) => (read = resolve));
  const over = new AbortController();
  const before = memory.used; // other tests use the same budget
  const telemetry: EventSource = {
    async *read(_session, { categories }) {
      if (!categories?.includes('network')) return yield* list;
      yield* events.list;
      read();
      await new Promise((resolve) => over.signal.addEventListener('abort', resolve, { once: true }));
    },
  };
  server = await bareServer(10);
  await server.register(exportRoutes({ telemetry, sessions: { idOf: async (_project, id) => id }, version: '1' }));
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.addresses()[0] as AddressInfo;
  const client = connect(port, '127.0.0.1');
  client.write(`GET /browsers/s/telemetry/${kind} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer key\r\n\r\n`);
  await allRead;
  expect(memory.used - before).toBeGreaterThan(5_000_000);
  client.destroy();
  await expect.poll(() => memory.used - before).toBeLessThan(1_000_000);
  over.abort();
});
