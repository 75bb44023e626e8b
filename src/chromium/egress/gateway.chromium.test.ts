import { once } from 'node:events';
import http from 'node:http';
import net, { type Server } from 'node:net';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { freePort } from '../../../test/support/listen.ts';
import { muxServer } from '../../../test/support/mux-server.ts';
import { openPage, type Page } from '../../../test/support/page.ts';
import { destinations, parseAllowList } from './destinations.ts';
import { startGateway, type Gateway } from './gateway.ts';
import { EgressError } from './refusals.ts';

// A real browser behind a real gateway. All of it on loopback, refused destinations too.

const cleanUp: (() => unknown)[] = [];
let page: Page;
let gateway: Gateway;
let site: string;
let forbidden: string;
let closed: string;
let flags: string[];
let proxy: { address: string; port: number };
const visits: string[] = [];

beforeAll(async () => {
  const web = http.createServer((request, response) => {
    if (request.url === '/closed') return void response.writeHead(302, { Location: `http://${closed}/` }).end();
    if (request.url === '/away') return void response.writeHead(302, { Location: `${forbidden}/after-redirect` }).end();
    return void response.setHeader('Content-Type', 'text/html').end('<title>home</title><p>hello');
  });
  new WebSocketServer({ server: web }).on('connection', (socket) =>
    socket.on('message', (data) => socket.send(data, { binary: false })),
  );
  const webPort = await listen(web);
  site = `http://127.0.0.1:${webPort}`;
  const cellar = http.createServer((request, response) => {
    visits.push(request.url ?? '');
    response.setHeader('Access-Control-Allow-Origin', '*').end('secret');
  });
  forbidden = `http://127.0.0.1:${await listen(cellar)}`;

  const server = net.createServer();
  const gatewayPort = await listen(server);
  closed = `127.0.0.1:${await freePort()}`;
  const allow = parseAllowList(`127.0.0.1:${webPort},${closed}`);
  const resolve = (name: string) => Promise.reject(new EgressError('dns_failed', `${name} has no address.`));
  gateway = startGateway(server, { allow: destinations({ allow, resolve }) });
  proxy = { address: '127.0.0.1', port: gatewayPort };
  flags = [`--proxy-server=http://127.0.0.1:${gatewayPort}`, '--proxy-bypass-list=<-loopback>'];
  page = await openPage(flags);
  cleanUp.push(() => page.close());
});

afterAll(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

it('loads a page that is allowed, and talks to its websocket', async () => {
  expect(await page.goto(`${site}/`)).toBeUndefined();
  expect(await page.evaluate('document.title')).toBe('home');
  const talk = `new Promise((resolve, reject) => {
    const socket = new WebSocket(location.origin.replace('http', 'ws'));
    socket.onopen = () => socket.send('hi');
    socket.onmessage = ({ data }) => { resolve(data); socket.close(); };
    socket.onerror = () => reject(new Error('no websocket'));
  })`;
  expect(await page.evaluate(talk)).toBe('hi');
  expect(gateway.counters.refused).toBe(0);
  expect(gateway.counters.down).toBeGreaterThan(0);
});

it('shows our page when an allowed one redirects to a refused one', async () => {
  expect(await page.goto(`${site}/away`)).toBeUndefined();
  expect(await page.evaluate('location.href')).toBe(`${forbidden}/after-redirect`);
  const text = await page.evaluate('document.body.innerText');
  expect(text).toContain('which is a loopback address');
  expect(text).toContain(`CORRAL_ALLOW_PRIVATE_HOSTS=${forbidden.replace('http://', '')}`);
  expect(visits).toEqual([]);
});

it('fails a fetch, a websocket and a tunnel to a refused destination', async () => {
  await page.goto(`${site}/`);
  const fetched = `fetch('${forbidden}/fetched').then((answer) => answer.text(), (error) => error.name)`;
  expect(await page.evaluate(fetched)).toBe('TypeError');
  const spelled = `fetch('${forbidden.replace('127.0.0.1', '2130706433')}/').then((answer) => answer.text(), (error) => error.name)`;
  expect(await page.evaluate(spelled)).toBe('TypeError');
  const socket = `new Promise((resolve) => {
    const socket = new WebSocket('${forbidden.replace('http', 'ws')}/');
    socket.onopen = () => resolve('open');
    socket.onerror = () => resolve('error');
  })`;
  expect(await page.evaluate(socket)).toBe('error');
  // What we would rather show, and cannot: see startGateway.
  expect(await page.goto(forbidden.replace('http', 'https'))).toBe('net::ERR_TUNNEL_CONNECTION_FAILED');
  expect(visits).toEqual([]);
});

it('fails what cannot be reached, for clients by its own name, and names the real server', async () => {
  const { failure, server } = gateway.findings;
  const browser = await muxServer({ network: { proxy, failure, server } }, undefined, ...flags);
  cleanUp.push(() => browser.stop());
  const client = await chromium.connectOverCDP(browser.endpoint);
  cleanUp.push(() => client.close());
  const context = client.contexts()[0]!;
  const failures: (string | undefined)[] = [];
  context.on('requestfailed', (request) => failures.push(request.failure()?.errorText));
  // Each on a page of its own: the error page of a navigation that failed may come later than its error.
  const go = async (url: string) => (await context.newPage()).goto(url);
  for (const url of [`http://${closed}/`, `https://${closed}/`, `${site}/closed`])
    await expect(go(url), url).rejects.toThrow('net::ERR_CONNECTION_REFUSED');
  for (const url of ['http://nothing.invalid/', 'https://nothing.invalid/'])
    await expect(go(url), url).rejects.toThrow('net::ERR_NAME_NOT_RESOLVED');
  await expect
    .poll(() => failures)
    .toEqual([
      ...Array<string>(3).fill('net::ERR_CONNECTION_REFUSED'),
      ...Array<string>(2).fill('net::ERR_NAME_NOT_RESOLVED'),
    ]);

  const driven = await context.newPage();
  const answer = await driven.goto(`${site}/`);
  expect(await answer?.serverAddr()).toEqual({ ipAddress: '127.0.0.1', port: Number(new URL(site).port) });
  const headers = await answer?.request().allHeaders();
  expect(headers).toMatchObject({ connection: 'keep-alive' });
  expect(headers).not.toHaveProperty('proxy-connection');
  failures.splice(0);
  const fetched = `Promise.all(['http://${closed}/a', 'https://${closed}/b'].map((url) =>
    fetch(url, { mode: 'no-cors' }).then(() => 'answered', ({ name }) => name)))`;
  expect(await driven.evaluate(fetched)).toEqual(['TypeError', 'TypeError']);
  await expect.poll(() => failures, { timeout: 60_000 }).toEqual(Array<string>(2).fill('net::ERR_CONNECTION_REFUSED'));
});

it('leaves nothing open when it closes under a running browser', async () => {
  await page.goto(`${site}/`);
  await gateway.close();
  expect(gateway.counters).toMatchObject({ clients: 0, upstreams: 0 });
});

async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  cleanUp.push(() => {
    server.close();
    if (server instanceof http.Server) server.closeAllConnections();
  });
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}
