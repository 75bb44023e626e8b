import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';

const times = <T>(count: number, one: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => one(at));
const item = (at: number) => ({ id: `${at}`, title: `Item ${at}`, path: `Own/${at}` });
/** Each is another one: the URL parser takes quadratic time for those. */
const letters = String.fromCharCode(...times(2000, (at) => 0x4e00 + at));
const json = (value: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(value));

/** The answers of a store to a request for its items. */
const lists: Record<string, (response: ServerResponse) => void> = {
  'many names beside the items': json({
    items: [item(1)],
    ...Object.fromEntries(times(98_000, (at) => [`k${at}`, 1])),
  }),
  'items with other names each': json({
    items: times(7900, (at) => ({ ...item(at), ...Object.fromEntries(times(9, (of) => [`k${at}.${of}`, 1])) })),
  }),
  'objects in objects': (response) =>
    void response.end(`{"items":[${JSON.stringify(item(1))}],"deep":${'{"a":'.repeat(98_000)}1${'}'.repeat(98_000)}}`),
  'long titles': json({ items: times(1000, (at) => ({ ...item(at), title: '"é'.repeat(2000) })) }),
  'many addresses': json({
    items: times(1700, (at) => ({ ...item(at), urls: times(100, (of) => `*.${of}.example`) })),
  }),
  'long hosts': json({
    items: times(12, (at) => ({ ...item(at), urls: times(100, () => letters) })),
  }),
};

let store: Server;
let list: keyof typeof lists;
let service: Awaited<ReturnType<typeof measuredService>>;
let provider: string;
beforeAll(async () => {
  store = createServer((_, response) => lists[list]!(response));
  await new Promise<void>((listening) => store.listen(0, '127.0.0.1', listening));
  const host = `127.0.0.1:${(store.address() as AddressInfo).port}`;
  service = await measuredService({ CORRAL_ALLOW_PRIVATE_HOSTS: host });
  const request = { provider_type: 'http', name: 'store', token: 'token', server_url: `http://${host}` };
  provider = (await service.call('POST', '/org/credential_providers', request)).body.id;
}, 300_000);
afterAll(async () => {
  await service?.close();
  store?.closeAllConnections();
  await new Promise((closed) => store?.close(closed));
});

test.each(Object.keys(lists))('a list of a credential store with %s does not stop the service', async (name) => {
  list = name;
  const stop = await service.longestStop(() => service.call('GET', `/org/credential_providers/${provider}/items`));
  expect(stop).toBeLessThan(mostStopMs);
});

test('an item with many addresses is found by its site without a stop of the service', async () => {
  list = 'many addresses';
  let number = 0;
  const connect = () =>
    service.call('POST', '/auth/connections', {
      domain: 'www.shop.example',
      profile_name: `profile-${number++}`,
      credential: { provider: 'store', auto: true },
    });
  expect(await connect()).toMatchObject({ status: 201 });
  expect(await service.longestStop(connect)).toBeLessThan(mostStopMs);
});
