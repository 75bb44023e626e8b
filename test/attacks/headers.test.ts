import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPages, type Pages } from '../support/pages.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';
import { upgrade } from '../support/upgrade.ts';

await requireSandbox();

/** What a browser would take for a script or a page, if it went by the first bytes, is often chosen by a tenant: names, logs, files, errors. */
let service: Service;
let pages: Pages;
let session: { base_url?: string; browser_live_view_url?: string; session_id: string };
beforeAll(async () => {
  pages = await startPages();
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
  session = await service.sdk().browsers.create({ headless: true, timeout_seconds: 600 });
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

async function sniffed(address: string, ask: Ask = {}): Promise<string[]> {
  const answer = await fetch(address, { redirect: 'manual', ...ask });
  await answer.body?.cancel(); // some are streams
  const said = answer.headers.get('x-content-type-options');
  return said === 'nosniff' ? [] : [`${ask.method ?? 'GET'} ${address} ${answer.status} ${said}`];
}

test('every operation of the reference answers with nosniff, with a key and without', async () => {
  const { paths } = (await service.call('GET', '/openapi.json')).body as { paths: Record<string, object> };
  const found: string[] = [];
  for (const [path, methods] of Object.entries(paths))
    for (const name of Object.keys(methods))
      for (const authorization of ['', `Bearer ${service.key}`]) {
        const method = name.toUpperCase();
        const headers = { authorization, 'content-type': 'application/json' };
        const address = `${service.url}${path.replaceAll(/\{[^}]+\}/g, 'none')}`;
        found.push(...(await sniffed(address, { method, headers, ...(method !== 'GET' && { body: '5' }) })));
      }
  expect(found).toEqual([]);
});

test('pages, their files, streams and answers of other sites have nosniff', async () => {
  const byKey = { headers: { authorization: `Bearer ${service.key}` } };
  const html = { headers: { accept: 'text/html' } };
  const links = async (path: string) =>
    [...(await (await fetch(service.url + path, html)).text()).matchAll(/(?:src|href)="(\/[^"#]+)"/g)].map(
      ([, at]) => at!,
    );
  const ofPages = await Promise.all(['/console', '/docs', '/docs/guides'].map(links));
  expect(ofPages.map((found) => found.length > 0)).toEqual([true, true, true]);
  const { base_url: base = '', browser_live_view_url: view = '', session_id: id } = session;
  const asked: [string, Ask?][] = [
    ...['/', '/console', '/docs', '/docs/guides', '/auth/hosted', '/favicon.ico', '/nothing', '/%zz', '/%00'].map(
      (path): [string, Ask] => [service.url + path, html],
    ),
    ...ofPages.flat().map((path): [string] => [service.url + path]),
    [`${service.url}/openapi.json`],
    [`${service.url}/events`, byKey],
    [`${service.url}/browsers/${id}`, byKey],
    [`${service.url}/browsers/${id}/logs/stream?source=supervisor&supervisor_process=chromium&follow=true`, byKey],
    [`${service.url}/browsers/${id}/fs/read_file?path=/etc/passwd`, byKey],
    [`${service.url}/browsers/${id}/thumbnail`, byKey],
    [`${service.url}/browsers/${id}`, { ...byKey, method: 'OPTIONS' }],
    [`${service.url}/browsers`, { ...byKey, method: 'HEAD' }],
    [view],
    [view.replace(/jwt=[^&]*/, 'jwt=none')],
    [`${base}/json/version`],
    [`${base}/curl/raw?url=${encodeURIComponent(pages.url)}`],
    [`${base}/curl/raw?url=http://none.invalid/`],
  ];
  const found = await Promise.all(asked.map(([address, ask]) => sniffed(address, ask)));
  expect(found.flat()).toEqual([]);
});

test('refused websockets, and requests that are not HTTP, are answered with nosniff', async () => {
  const socket = service.url.replace('http', 'ws');
  const refused = await Promise.all([
    upgrade(`${socket}/connect`),
    upgrade(`${socket}/nothing`),
    upgrade(`${socket}/connect`, { 'sec-websocket-version': '12' }),
    upgrade(`${socket}/connect`, { 'sec-websocket-key': 'short' }),
    upgrade(`${socket}/health`, { upgrade: 'h2c' }),
  ]);
  expect(refused.map(({ headers }) => headers['x-content-type-options'])).toEqual(refused.map(() => 'nosniff'));

  const { port, hostname } = new URL(service.url);
  const raw = async (text: string) => {
    const to = connect(Number(port), hostname);
    let answer = '';
    to.setEncoding('latin1').on('data', (part) => (answer += part));
    to.end(text);
    await once(to, 'close');
    return answer.split('\r\n\r\n')[0]!.toLowerCase();
  };
  for (const text of [
    'no http at all\r\n\r\n',
    'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n', // has no Host
    'GET /health HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\nConnection: close\r\n\r\n',
    `GET /health HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  ])
    expect(await raw(text), text.slice(0, 60)).toMatch(/^http\/1\.1 \d+ [^]*\r\nx-content-type-options: nosniff/);
});
