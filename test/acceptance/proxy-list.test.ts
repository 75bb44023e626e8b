import type Kernel from '@onkernel/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type Service } from '../support/service.ts';

let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1:9' });
  sdk = service.sdk();
});
afterAll(() => service?.close());

const config = { host: '127.0.0.1', port: 9 };
const post = (body: object) => service.call('POST', '/proxies', { type: 'custom', config, ...body });
const names = async (query: Kernel.ProxyListParams) => {
  const found: (string | undefined)[] = [];
  for await (const { name } of sdk.proxies.list(query)) found.push(name);
  return found;
};

describe('a proxy', () => {
  test('is answered as it was made, but for its password', async () => {
    const created = await sdk.proxies.create({
      type: 'custom',
      name: '  My proxy ',
      protocol: 'http',
      bypass_hosts: ['*.Shop.example'],
      config: { ...config, username: 'ann', password: 'open-sesame' },
    });
    expect(created).toEqual({
      id: expect.any(String),
      name: 'My proxy',
      type: 'custom',
      protocol: 'http',
      bypass_hosts: ['*.shop.example'],
      config: { ...config, username: 'ann', has_password: true },
    });
    expect(await sdk.proxies.retrieve(created.id!)).toEqual(created);
    expect(await sdk.proxies.update(created.id!, { name: ' Renamed ' })).toEqual({ ...created, name: 'Renamed' });
    await sdk.proxies.delete(created.id!);
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['DELETE', '', undefined],
      ['PATCH', '', { name: 'x' }],
      ['POST', '/check', {}],
    ] as const)
      expect(await service.call(method, `/proxies/${created.id}${path}`, body)).toMatchObject({
        status: 404,
        body: { code: 'proxy_not_found' },
      });
    expect(await sdk.proxies.list({ query: created.id! }).then(({ items }) => items)).toEqual([]);
  });

  test('belongs to its project, which is not empty while it has one', async () => {
    const project = await sdk.projects.create({ name: 'Elsewhere' });
    const there = service.sdk(service.key, { projectID: project.id });
    const { id } = await there.proxies.create({ type: 'custom', config });
    expect(await service.call('GET', `/proxies/${id}`)).toMatchObject({ status: 404 });
    expect(await service.call('POST', '/browsers', { headless: true, proxy_id: id })).toMatchObject({ status: 400 });
    expect(await service.call('DELETE', `/org/projects/${project.id}`)).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining('1 proxy') },
    });
    await there.proxies.delete(id!);
    await sdk.projects.delete(project.id);
  });

  test.each<[string, object, RegExp]>([
    ['no config', { config: undefined }, /config is missing/],
    ['no host', { config: { port: 9 } }, /config.host is missing/],
    ['port 0', { config: { ...config, port: 0 } }, /config.port must be at least 1/],
    ['port 65536', { config: { ...config, port: 65_536 } }, /config.port must be at most 65535/],
    ['a short password', { config: { ...config, username: 'a', password: '1234' } }, /config.password/],
    ['a password without a username', { config: { ...config, password: '12345' } }, /needs config.username/],
    ['a colon in the user name', { config: { ...config, username: 'a:b' } }, /config.username/],
    ['a line break in the password', { config: { ...config, username: 'a', password: 'ab\r\ncd' } }, /config.password/],
    ['a field of another type', { config: { ...config, country: 'US' } }, /config.country is not a field of custom/],
    ['a host that is none', { config: { ...config, host: 'http://x/' } }, /config.host/],
    ['a private host', { config: { ...config, host: '10.1.2.3' } }, /10.1.2.3 is on a private network.*CORRAL_ALLOW/],
    ['this machine in disguise', { config: { ...config, host: '0x7f.2' } }, /127.0.0.2 is on a private network/],
    ['a protocol that is none', { protocol: 'ftp' }, /protocol must be one of http, https, socks5/],
    ['a type that is none', { type: 'other' }, /type must be one of/],
    ['101 bypasses', { bypass_hosts: Array.from({ length: 101 }, (_, i) => `h${i}.example`) }, /bypass_hosts/],
    ['a bypass too long', { bypass_hosts: ['x'.repeat(254)] }, /bypass_hosts/],
    ['an address to bypass', { bypass_hosts: ['10.0.0.1'] }, /bypass_hosts\[0\] is an address/],
    ['a name too long', { name: 'x'.repeat(256) }, /name/],
    ['certificates that are none', { config: { ...config, ca_bundle: 'x' } }, /ca_bundle is not a list of PEM/],
    ['certificates for nothing', { protocol: 'http', config: { ...config, ca_bundle: 'x' } }, /protocol https/],
    ['no upstream', { type: 'isp', config: {} }, /no upstream for isp proxies/],
    ['a bad country', { type: 'isp', config: { country: 'USA' } }, /config.country/],
    ['a bad zip', { type: 'residential', config: { zip: '123' } }, /config.zip/],
  ])('is not made with %s', async (_, body, message) => {
    expect(await post(body)).toMatchObject({ status: 400, body: { message: expect.stringMatching(message) } });
  });

  test.each([{}, { name: '' }, { name: '  ' }, { name: 'x'.repeat(256) }, { name: 5 }, { name: null }])(
    'is not renamed by %j',
    async (body) => {
      const { body: proxy } = await post({ name: 'kept' });
      expect(await service.call('PATCH', `/proxies/${proxy.id}`, body)).toMatchObject({ status: 400 });
      expect((await sdk.proxies.retrieve(proxy.id)).name).toBe('kept');
      await sdk.proxies.delete(proxy.id);
    },
  );

  test('without an address to check it with says so', async () => {
    const { body: proxy } = await post({});
    expect(await service.call('POST', `/proxies/${proxy.id}/check`)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('CORRAL_PROXY_CHECK_URL') },
    });
  });
});

describe('the list', () => {
  let ids: string[];
  beforeAll(async () => {
    for await (const { id } of sdk.proxies.list()) await sdk.proxies.delete(id!);
    ids = [];
    for (const name of ['café', 'Café au lait', 'cafe', 'tea', 'tea', 'per%cent'])
      ids.push((await sdk.proxies.create({ type: 'custom', name, protocol: 'http', config })).id!);
    await service.app.store.db.rows({
      name: 'seen',
      text: 'update proxies set ip_address = \'203.0.113.7\', config = config || \'{"host": "Gate.Example"}\' where id = $1',
      values: [ids[3]],
    });
  });

  test('finds a whole name without regard to case and accents, and several of the same', async () => {
    expect(await names({ name: 'CAFÉ' })).toEqual(['café', 'cafe']);
    expect(await names({ name: 'TEA' })).toEqual(['tea', 'tea']);
    expect(await names({ name: 'te' })).toEqual([]);
  });

  test('finds a part of the name, the host or the address without regard to case, and only whole ids', async () => {
    expect(await names({ query: 'CAFÉ' })).toEqual(['café', 'Café au lait']);
    expect(await names({ query: 'au LAIT' })).toEqual(['Café au lait']);
    expect(await names({ query: 'gate.EX' })).toEqual(['tea']);
    expect(await names({ query: '113.7' })).toEqual(['tea']);
    expect(await names({ query: '%' })).toEqual(['per%cent']);
    expect(await names({ query: ids[4]! })).toEqual(['tea']);
    expect(await names({ query: ids[4]!.slice(0, 12) })).toEqual([]);
    expect(await names({ query: ids[4]!.toUpperCase() })).toEqual([]);
    expect(await names({ query: 'tea', name: 'café' })).toEqual([]);
  });

  test('comes in pages', async () => {
    const page = await sdk.proxies.list({ limit: 2, offset: 1 });
    expect(page.items.map(({ name }) => name)).toEqual(['Café au lait', 'cafe']);
    expect(await names({ limit: 2 })).toHaveLength(6);
    for (const query of ['limit=0', 'limit=101', 'offset=-1', 'limit=x'])
      expect(await service.call('GET', `/proxies?${query}`)).toMatchObject({ status: 400 });
  });
});

test('settings that make no sense are refused at the start', async () => {
  await expect(startService({ CORRAL_PROXY_UPSTREAMS: '/nowhere' })).rejects.toThrow('/nowhere, which cannot be read');
  await expect(startService({ CORRAL_PROXY_CHECK_URL: 'nonsense' })).rejects.toThrow('CORRAL_PROXY_CHECK_URL');
});
