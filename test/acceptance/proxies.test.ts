import type Kernel from '@onkernel/sdk';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  makeCertificate,
  provideProxies,
  startDante,
  startMicrosocks,
  startSquid,
  startTinyproxy,
  type RunningProxy,
} from '../support/proxies.ts';
import { startService, type Service } from '../support/service.ts';

const here = await provideProxies();
const login = { username: 'ann', password: 'open-sesame' };

/** Each proxy has an address of its own on loopback, and the site answers with the address that it was asked from. */
describe.runIf(here)('proxies', () => {
  let dir: string;
  let web: http.Server;
  let secureWeb: https.Server;
  let url: string;
  let secureUrl: string;
  let service: Service;
  let sdk: Kernel;
  const running: Record<string, RunningProxy> = {};
  const ids: Record<string, string> = {};
  const clients: Browser[] = [];
  const sessions: string[] = [];

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'corral-proxies-'));
    makeCertificate(dir, '127.0.0.1');
    const answer: http.RequestListener = (request, response) => {
      if (request.url === '/endless') drip(response);
      else response.setHeader('content-type', 'text/html').end(request.socket.remoteAddress);
    };
    web = http.createServer(answer).listen(0, '127.0.0.1');
    const pair = { key: readFileSync(join(dir, 'key.pem')), cert: readFileSync(join(dir, 'cert.pem')) };
    secureWeb = https.createServer(pair, answer).listen(0, '127.0.0.1');
    await Promise.all([once(web, 'listening'), once(secureWeb, 'listening')]);
    const [port, securePort] = [web, secureWeb].map((server) => (server.address() as AddressInfo).port);
    url = `http://127.0.0.1:${port}/`;
    secureUrl = `https://127.0.0.1:${securePort}/`;

    const connectTo = [securePort!];
    const started = await Promise.all([
      startSquid({ exit: '127.0.0.2', connectTo, hosts: { 'shop.test': '127.0.0.1' } }),
      startSquid({ exit: '127.0.0.3', connectTo, login, tls: true }),
      startTinyproxy({ exit: '127.0.0.4', login }),
      startDante({ exit: '127.0.0.5' }),
      startMicrosocks({ exit: '127.0.0.6', login }),
    ]);
    for (const [i, name] of ['squid', 'squid-tls', 'tinyproxy', 'dante', 'microsocks'].entries())
      running[name] = started[i]!;

    const { port: upstreamPort } = running['tinyproxy']!;
    const upstreams = {
      isp: { protocol: 'http', host: '127.0.0.1', port: upstreamPort, ...login },
      residential: {
        host: '127.0.0.1',
        port: upstreamPort,
        username: 'ann[-cc-{country}][-city-{city}]',
        password: login.password,
        cities: ['berlin', 'bern', 'paris'],
      },
    };
    writeFileSync(join(dir, 'upstreams.json'), JSON.stringify(upstreams));
    service = await startService({
      CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1/32',
      CORRAL_PROXY_CHECK_URL: url,
      CORRAL_PROXY_UPSTREAMS: join(dir, 'upstreams.json'),
      CORRAL_WARM_SPARES: 'headless:1',
    });
    sdk = service.sdk();
    for (const name of Object.keys(running)) ids[name] = await createProxy(name);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await Promise.all(sessions.splice(0).map((id) => service.call('DELETE', `/browsers/${id}`)));
  });

  afterAll(async () => {
    await Promise.allSettled([service?.close(), ...Object.values(running).map((proxy) => proxy.kill())]);
    for (const server of [web, secureWeb]) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(dir, { recursive: true, force: true });
  });

  const custom = ({ host, port, username, password, ca }: Partial<RunningProxy>) =>
    ({ host, port, username, password, ca_bundle: ca }) as Kernel.ProxyCreateParams.CreateCustomProxyConfig;

  async function createProxy(name: string, changes: Partial<RunningProxy> = {}): Promise<string> {
    const proxy = { ...running[name]!, ...changes };
    const created = await sdk.proxies.create({
      type: 'custom',
      name,
      protocol: proxy.protocol as 'http',
      config: custom(proxy),
    });
    return created.id!;
  }

  async function open(params: Kernel.BrowserCreateParams): Promise<{ id: string; page: Page; client: Browser }> {
    const session = await sdk.browsers.create({ headless: true, ...params });
    sessions.push(session.session_id);
    return { id: session.session_id, ...(await attach(session)) };
  }

  async function attach({ cdp_ws_url }: { cdp_ws_url: string }) {
    const client = await chromium.connectOverCDP(cdp_ws_url);
    clients.push(client);
    const context = await client.newContext({ ignoreHTTPSErrors: true });
    return { client, page: await context.newPage() };
  }

  /** Where the web sees a page come from, by plain http and through TLS. */
  async function exits(page: Page): Promise<string[]> {
    const seen: string[] = [];
    for (const address of [url, secureUrl]) {
      await page.goto(address);
      seen.push(await page.locator('body').innerText());
    }
    return seen;
  }
  const exitOf = (name: string) => [running[name]!.exit, running[name]!.exit];
  const straight = ['127.0.0.1', '127.0.0.1'];

  test.each(['squid', 'squid-tls', 'tinyproxy', 'dante', 'microsocks'])(
    'a session leaves by %s, and so does its check',
    async (name) => {
      const checked = await sdk.proxies.check(ids[name]!);
      expect(checked).toMatchObject({ status: 'available', ip_address: running[name]!.exit });
      expect(checked).toHaveProperty('latency_ms', expect.any(Number));
      const { id, page } = await open({ proxy_id: ids[name]! });
      expect(await sdk.browsers.retrieve(id)).toMatchObject({ proxy_id: ids[name] });
      expect(await exits(page)).toEqual(exitOf(name));
    },
  );

  test('a context leaves by the proxy that its client named, and nothing else of the session does', async () => {
    const { id, client, page } = await open({});
    const server = (name: string) => `${running[name]!.protocol}://${running[name]!.host}:${running[name]!.port}`;
    const contextBy = (proxy: { server: string; bypass?: string; username?: string; password?: string }) =>
      client.newContext({ ignoreHTTPSErrors: true, proxy });
    const [byLogin, bySquid] = await Promise.all([
      contextBy({ server: server('tinyproxy'), ...login }),
      contextBy({ server: server('squid') }),
    ]);
    expect(await exits(await byLogin.newPage())).toEqual(exitOf('tinyproxy'));
    expect(await exits(await bySquid.newPage())).toEqual(exitOf('squid'));
    expect(await exits(page)).toEqual(straight);
    const without = await contextBy({ server: server('squid'), bypass: '127.0.0.1' });
    expect(await exits(await without.newPage())).toEqual(straight);

    const { cdp_ws_url } = await sdk.browsers.retrieve(id);
    const puppeteer = await connectPuppeteer({ browserWSEndpoint: cdp_ws_url, acceptInsecureCerts: true });
    const socks = await puppeteer.createBrowserContext({
      proxyServer: server('dante'),
      proxyBypassList: ['<-loopback>'],
    });
    const driven = await socks.newPage();
    for (const address of [url, secureUrl]) {
      await driven.goto(address);
      expect(await driven.evaluate('document.body.innerText')).toBe(running['dante']!.exit);
    }
    await socks.close();
    await puppeteer.disconnect();

    await expect(contextBy({ server: 'http://127.0.0.9:3128' })).rejects.toThrow(
      '127.0.0.9:3128, which is a loopback address',
    );
    await expect(contextBy({ server: 'socks4://127.0.0.1:1' })).rejects.toThrow('its scheme is http, https or socks5');
  });

  test('a swap takes the next request the new way, on the same page, and no client is dropped', async () => {
    const { id, page, client } = await open({});
    expect(await exits(page)).toEqual(straight);
    let dropped = false;
    client.once('disconnected', () => (dropped = true));
    for (const name of ['squid', 'dante', 'squid-tls', 'microsocks', 'tinyproxy']) {
      expect(await sdk.browsers.update(id, { proxy_id: ids[name]! })).toMatchObject({ proxy_id: ids[name] });
      expect([name, ...(await exits(page))]).toEqual([name, ...exitOf(name)]);
      const listed = await sdk.browsers.list({ query: ids[name]! });
      expect(listed.items.map(({ session_id }) => session_id)).toEqual([id]);
    }
    const cleared = await sdk.browsers.update(id, { proxy_id: '' });
    expect(cleared).not.toHaveProperty('proxy_id');
    expect(await exits(page)).toEqual(straight);
    expect(dropped).toBe(false);
  });

  test('names are resolved by the proxy, and hosts that bypass it are not sent to it', async () => {
    const named = url.replace('127.0.0.1', 'shop.test');
    const { id, page } = await open({ proxy_id: ids['squid']! });
    await page.goto(named);
    expect(await page.locator('body').innerText()).toBe(running['squid']!.exit);
    const bypassing = await service.call('POST', '/proxies', {
      type: 'custom',
      protocol: 'http',
      bypass_hosts: ['LOCALHOST'],
      config: custom(running['squid']!),
    });
    await sdk.browsers.update(id, { proxy_id: bypassing.body.id });
    await page.goto(url.replace('127.0.0.1', 'localhost'));
    expect(await page.locator('body').innerText()).toBe('127.0.0.1');
    await page.goto(named);
    expect(await page.locator('body').innerText()).toBe(running['squid']!.exit);
  });

  test('a browser that crashes comes back with the proxy it had', async () => {
    const { id, client } = await open({ proxy_id: ids['dante']! });
    await sdk.browsers.update(id, { proxy_id: ids['microsocks']! });
    const disconnected = new Promise((resolve) => client.once('disconnected', resolve));
    const held = await service.app.sessions.hold(id);
    process.kill(held.engine.browser.init!, 'SIGKILL');
    held.release();
    await disconnected;
    const { page } = await attach(await sdk.browsers.retrieve(id));
    expect(await exits(page)).toEqual(exitOf('microsocks'));
  });

  test('a proxy that is deleted stays with the sessions that have it, and takes no new ones', async () => {
    const proxy = await createProxy('tinyproxy');
    const { page } = await open({ proxy_id: proxy });
    await sdk.proxies.delete(proxy);
    expect(await exits(page)).toEqual(exitOf('tinyproxy'));
    expect(await service.call('GET', `/proxies/${proxy}`)).toMatchObject({ status: 404 });
    for (const [method, path, body] of [
      ['POST', '/browsers', { headless: true, proxy_id: proxy }],
      ['POST', '/browser_pools', { size: 1, headless: true, proxy_id: proxy }],
    ] as const) {
      expect(await service.call(method, path, body)).toMatchObject({
        status: 400,
        body: { code: 'invalid_input', message: expect.stringContaining(proxy) },
      });
    }
  });

  describe('faults', () => {
    test('fails the request with the reason, and is a log line with a code', async () => {
      const wrong = await createProxy('squid-tls', { password: 'close-sesame' });
      const dead = await createProxy('squid', { port: 9 });
      const { id, page } = await open({ proxy_id: wrong });
      for (const [proxy, code, name] of [
        [wrong, 'proxy_auth_failed', 'net::ERR_INVALID_AUTH_CREDENTIALS'],
        [dead, 'proxy_unreachable', 'net::ERR_PROXY_CONNECTION_FAILED'],
      ] as const) {
        await sdk.browsers.update(id, { proxy_id: proxy });
        const before = service.log.length;
        // Each on a page of its own: the error page of a navigation that failed may come later than its error.
        for (const address of [url, secureUrl]) {
          const other = await page.context().newPage();
          await expect(other.goto(address)).rejects.toThrow(name);
        }
        const lines = service.log.slice(before).filter((line) => line.includes('egress.refused'));
        expect(lines.filter((line) => line.includes(`"code":"${code}"`)).length).toBeGreaterThanOrEqual(2);
      }
    });

    test('a proxy that dies in the middle of a download ends the download, and the session continues', async () => {
      const own = await startTinyproxy({ exit: '127.0.0.8' });
      const proxy = await sdk.proxies.create({ type: 'custom', protocol: 'http', config: custom(own) });
      const { id, page } = await open({ proxy_id: proxy.id! });
      await page.goto(url);
      const fetched = page.evaluate(async (from) => {
        const { body } = await fetch(from);
        let bytes = 0;
        try {
          for await (const part of body as unknown as AsyncIterable<Uint8Array>) {
            bytes += part.length;
            Object.assign((globalThis as { document?: object }).document!, { title: 'it has begun' });
          }
        } catch (error) {
          return { bytes, error: String(error) };
        }
        return { bytes, error: '' };
      }, `${url}endless`);
      await expect.poll(() => page.title()).toBe('it has begun'); // a proxy that dies before is refused with a page of ours
      await own.kill();
      expect(await fetched).toMatchObject({ bytes: expect.any(Number), error: expect.stringContaining('TypeError') });
      await sdk.browsers.update(id, { proxy_id: '' });
      expect(await exits(page)).toEqual(straight);
      await sdk.proxies.delete(proxy.id!);
    });

    test('a check that fails is a 422 that names the reason, and the status says so', async () => {
      const wrong = await createProxy('microsocks', { password: 'close-sesame' });
      const refused = await service.call('POST', `/proxies/${wrong}/check`, {});
      expect(refused).toMatchObject({
        status: 422,
        body: { code: 'proxy_check_failed', details: [{ code: 'proxy_auth_failed' }] },
      });
      const after = await sdk.proxies.retrieve(wrong);
      expect(after).toMatchObject({ status: 'unavailable', last_checked: expect.any(String) });
      // A url says something about a site, and leaves the status alone.
      const elsewhere = await service.call('POST', `/proxies/${ids['dante']}/check`, { url: 'http://127.0.0.1:9/' });
      expect(elsewhere).toMatchObject({ status: 422, body: { details: [{ code: 'proxy_connect_failed' }] } });
      expect(await sdk.proxies.retrieve(ids['dante']!)).toMatchObject({ status: 'available' });
      const site = await service.call('POST', `/proxies/${ids['dante']}/check`, { url });
      expect(site).toMatchObject({ status: 200, body: { latency_ms: expect.any(Number) } });
      for (const bad of ['ftp://127.0.0.1/', 'http://10.0.0.1/', 'http://user@127.0.0.1/', 'nonsense']) {
        expect(await service.call('POST', `/proxies/${ids['dante']}/check`, { url: bad })).toMatchObject({
          status: 400,
        });
      }
    });

    test('an https proxy is trusted only with a certificate that vouches for it', async () => {
      const { ca: _, ...stranger } = running['squid-tls']!;
      const created = await sdk.proxies.create({ type: 'custom', config: custom(stranger) });
      expect(created).toMatchObject({ protocol: 'https' });
      expect(await service.call('POST', `/proxies/${created.id}/check`)).toMatchObject({
        status: 422,
        body: { message: expect.stringMatching(/certificate is not trusted.*ca_bundle/) },
      });
    });
  });

  test('new proxies are checked automatically', async () => {
    const proxy = await createProxy('dante');
    const status = async () => (await sdk.proxies.retrieve(proxy)).status;
    await expect.poll(status, { timeout: 60_000 }).toBe('available');
    expect(await sdk.proxies.retrieve(proxy)).toMatchObject({
      ip_address: running['dante']!.exit,
      last_checked: expect.any(String),
    });
  });

  describe('in pools', () => {
    test('a pool’s browsers leave by its proxy, and a proxy change of a lease ends with the lease', async () => {
      const pool = await sdk.browserPools.create({
        size: 1,
        headless: true,
        proxy_id: ids['squid']!,
        reset_on_release: false,
      } as Kernel.BrowserPoolCreateParams);
      expect(pool.browser_pool_config).toMatchObject({ proxy_id: ids['squid'] });
      const first = await sdk.browserPools.acquire(pool.id, {});
      expect(first).toMatchObject({ proxy_id: ids['squid'] });
      const { page, client } = await attach(first);
      expect(await exits(page)).toEqual(exitOf('squid'));
      await sdk.browsers.update(first.session_id, { proxy_id: ids['dante']! });
      expect(await exits(page)).toEqual(exitOf('dante'));
      await client.close();
      await sdk.browserPools.release(pool.id, { session_id: first.session_id });
      const second = await sdk.browserPools.acquire(pool.id, {});
      expect(second).toMatchObject({ session_id: first.session_id, proxy_id: ids['squid'] });
      const next = await attach(second);
      expect(await exits(next.page)).toEqual(exitOf('squid'));
      const cleared = await sdk.browserPools.update(pool.id, { proxy_id: '' });
      expect(cleared.browser_pool_config).not.toHaveProperty('proxy_id');
      await sdk.browserPools.delete(pool.id, { force: true });
    });
  });

  describe('of the operator’s upstreams', () => {
    test('are configured as requested; options that an upstream does not have are refused', async () => {
      const proxy = await sdk.proxies.create({ type: 'residential' });
      expect(proxy).toMatchObject({ type: 'residential', protocol: 'http', config: {} });
      expect(await sdk.proxies.check(proxy.id!)).toMatchObject({ ip_address: running['tinyproxy']!.exit });
      const { page } = await open({ proxy_id: proxy.id! });
      expect(await exits(page)).toEqual(exitOf('tinyproxy'));
      // The template makes another user name of it, which this upstream does not know.
      const berlin = await sdk.proxies.create({ type: 'residential', config: { country: 'de', city: 'Berlin' } });
      expect(berlin).toMatchObject({ config: { country: 'DE', city: 'berlin' } });
      expect(await service.call('POST', `/proxies/${berlin.id}/check`)).toMatchObject({ status: 422 });

      const refusal = (type: string, config: object) => service.call('POST', '/proxies', { type, config });
      expect(await refusal('mobile', {})).toMatchObject({
        status: 400,
        body: { code: 'proxy_type_unavailable', message: expect.stringContaining('CORRAL_PROXY_UPSTREAMS') },
      });
      expect(await refusal('residential', { country: 'de', city: 'berlinn' })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining('Near: berlin, bern') },
      });
      expect(await refusal('residential', { zip: '94107' })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining('config.zip cannot be chosen') },
      });
    });

    test('stealth uses the ISP’s, unless this is disabled or another proxy is set', async () => {
      const { id, page } = await open({ stealth: true });
      expect(await exits(page)).toEqual(exitOf('tinyproxy'));
      const patch = (body: object) => service.call('PATCH', `/browsers/${id}`, body);
      expect(await patch({ disable_default_proxy: true, proxy_id: ids['dante'] })).toMatchObject({ status: 400 });
      await sdk.browsers.update(id, { disable_default_proxy: true });
      expect(await exits(page)).toEqual(straight);
      await sdk.browsers.update(id, { proxy_id: ids['dante']! });
      expect(await exits(page)).toEqual(exitOf('dante'));
      await sdk.browsers.update(id, { proxy_id: '' });
      expect(await exits(page)).toEqual(straight);
      await sdk.browsers.update(id, { disable_default_proxy: false });
      expect(await exits(page)).toEqual(exitOf('tinyproxy'));
      const plain = await open({});
      expect(await service.call('PATCH', `/browsers/${plain.id}`, { disable_default_proxy: true })).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining('stealth') },
      });
    });
  });

  test('no password was ever written to the log or to the database', async () => {
    expect(service.log.join('\n')).not.toContain(login.password);
    const rows = await service.app.store.db.rows<{ text: string }>({
      name: 'everything',
      text: 'select p::text as text from proxies p union all select s::text from secrets s union all select a::text from audit_log a',
      values: [],
    });
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.filter(({ text }) => text.includes(login.password))).toEqual([]);
  });

  /** A download that has begun and does not end by itself. */
  function drip(response: http.ServerResponse) {
    response.write('x'.repeat(100_000));
    const timer = setInterval(() => response.write('x'.repeat(1000)), 50);
    response.once('close', () => clearInterval(timer));
  }
});
