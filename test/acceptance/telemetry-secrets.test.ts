import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { inflateRawSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import yauzl from 'yauzl';
import { sql } from '../../src/store/sql.ts';
import { startService, type Service } from '../support/service.ts';

/** Each is planted in one place. None may be found anywhere afterwards. */
const secrets = {
  password: 'hunter2-typed-password',
  oneTimeCode: '731904-otp',
  authorization: 'bearer-planted-token',
  cookie: 'cookie-planted-by-page',
  setCookie: 'cookie-planted-by-server',
  proxyPassword: 'proxy-planted-password',
};

const page = `<!doctype html><title>Login</title>
<form id=form method=post action=/login>
<input id=user name=user><input id=password type=password name=password>
<input id=code autocomplete="one-time-code" name=code><button>Go</button></form>`;

const server = createServer((request, response) => {
  request.resume();
  response.setHeader('set-cookie', `session=${secrets.setCookie}`);
  response.setHeader('content-type', 'text/html');
  response.end(page);
});
let service: Service;
let url: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  url = `http://${host}/`;
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: host });
});
afterAll(async () => {
  await service?.close();
  server.closeAllConnections();
  server.close();
});

test('secrets in every place are in no stream, archive, export, log or row', async () => {
  const { status, body: proxy } = await service.call('POST', '/proxies', {
    type: 'custom',
    protocol: 'http', // the page's own server, which answers every request
    config: { host: '127.0.0.1', port: Number(new URL(url).port), username: 'me', password: secrets.proxyPassword },
  });
  expect(status, JSON.stringify(proxy)).toBe(201);
  const on = { enabled: true };
  const browserCategories = { console: on, page: on, interaction: on, network: on };
  const { body: session } = await service.call('POST', '/browsers', {
    headless: true,
    timeout_seconds: 300,
    proxy_id: proxy.id,
    telemetry: { enabled: true, browser: browserCategories },
  });
  expect(session.proxy_id).toBe(proxy.id);
  const path = `/browsers/${session.session_id}`;
  const stream = await fetch(`${service.url}${path}/telemetry/stream?replay=all`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  const streamed = stream.text();

  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  const tab = browser.contexts()[0]!.pages()[0]!;
  await tab.goto(url);
  await tab.click('#user');
  await tab.keyboard.type('someone');
  await tab.click('#password');
  await tab.keyboard.type(secrets.password);
  await tab.click('#code');
  await tab.keyboard.type(secrets.oneTimeCode);
  await tab.evaluate(
    async ({ authorization, cookie, proxyPassword }) => {
      (globalThis as unknown as { document: { cookie: string } }).document.cookie = `page=${cookie}`;
      console.log('the proxy says', proxyPassword, { nested: proxyPassword });
      console.error(new Error(proxyPassword));
      await fetch('/api', { headers: { Authorization: `Bearer ${authorization}` } });
      await fetch(`/api?from=proxy&value=${encodeURIComponent(proxyPassword)}`);
    },
    { authorization: secrets.authorization, cookie: secrets.cookie, proxyPassword: secrets.proxyPassword },
  );
  await Promise.all([tab.waitForNavigation(), tab.click('button')]);
  await browser.close();
  const read = async () => (await service.call('GET', `${path}/telemetry/events?since=1h&order=asc&limit=100`)).text;
  await expect.poll(read, { timeout: 60_000 }).toContain('/login');
  expect(await read()).toContain('[redacted]');

  const places: Record<string, string> = { archive: '' };
  for (let offset = '0'; ;) {
    const { text, headers } = await service.call(
      'GET',
      `${path}/telemetry/events?since=1h&limit=100${offset === '0' ? '' : `&offset=${offset}`}`,
    );
    places['archive'] += text;
    offset = headers.get('x-next-offset')!;
    if (offset === '0') break;
  }
  places['har'] = (await service.call('GET', `${path}/telemetry/har`)).text;
  places['trace'] = await unzipped(`${path}/telemetry/trace`);
  expect(places['trace']).toContain('/login');
  await service.call('DELETE', path);
  places['stream'] = await streamed;
  places['log'] = service.log.join('\n');
  const rows = await service.app.store.db.rows<{ packed: Buffer }>(sql`select packed from telemetry_chunks`);
  places['chunks'] = rows.map(({ packed }) => inflateRawSync(packed).toString()).join('\n');
  const [{ text: others }] = (await service.app.store.db.rows<{ text: string }>(
    sql`select (select coalesce(string_agg(s::text, ' '), '') from sessions s) || (select coalesce(string_agg(a::text, ' '), '') from audit_log a) as text`,
  )) as [{ text: string }];
  places['rows'] = others;

  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(0);
    for (const [name, secret] of Object.entries(secrets))
      expect(text.includes(secret), `${name} in ${place}`).toBe(false);
  }
  const typed = (places['archive'] ?? '').match(/"type":"interaction_key"[^}]*"key":"[^"]*"/g) ?? [];
  const letters = typed.map((found) => /"key":"([^"]*)"$/.exec(found)![1]).join('');
  expect(letters).not.toContain('hunter2');
  expect(letters).not.toContain('731904');
});

/** All text of a zip: the names of its files and their content. */
async function unzipped(path: string): Promise<string> {
  const response = await fetch(service.url + path, { headers: { authorization: `Bearer ${service.key}` } });
  const zip = await yauzl.fromBufferPromise(Buffer.from(await response.arrayBuffer()));
  let all = '';
  for await (const entry of zip.eachEntry())
    all += `${entry.fileName}\n${(await buffer(await zip.openReadStreamPromise(entry))).toString()}\n`;
  return all;
}
