import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { listenOnLoopback } from '../support/listen.ts';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { portOf } from '../support/mux-server.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

/** Answers the page and requests for large answers, and no other request. It is also a proxy, for a site that is the same. */
const site = createServer((request, response) => {
  const { pathname } = new URL(request.url!, 'http://site.test');
  if (pathname === '/') response.setHeader('content-type', 'text/html').end('<title>page</title>');
  if (!pathname.startsWith('/large')) return;
  for (let at = 0; at < 20; at++) response.setHeader(`x-large-${at}`, quotes.repeat(25));
  response.setHeader('content-type', 'text/plain').end('answer');
});
/** A text that it takes long to look for, and of which a page has nearly everything. */
const password = `ab${'a'.repeat(253)}`;
/** Another one, which is longer in JSON. */
const quotes = '"\\'.repeat(50);

/** A page chooses the captured texts, and a tenant chooses the values that are hidden in them. */
describe('a capture that takes long to write does not stop the service', { timeout: 300_000 }, () => {
  let service: Awaited<ReturnType<typeof measuredService>>;
  beforeAll(async () => {
    await listenOnLoopback(site);
    service = await measuredService({ CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${portOf(site)}` });
  });
  afterAll(async () => {
    await service?.close();
    site.closeAllConnections();
    site.close();
  });

  async function made(path: string, body: object): Promise<Record<string, string>> {
    const answer = await service.call('POST', path, body);
    expect(answer.status, answer.text).toBeLessThan(300);
    return answer.body as Record<string, string>;
  }

  /** A session that captures, and functions that run code in it and wait until its newest events have a text. */
  async function session(more: object = {}) {
    const on = { enabled: true };
    const telemetry = { browser: { console: on, network: on } };
    const { session_id: id } = await made('/browsers', { headless: true, timeout_seconds: 600, telemetry, ...more });
    const run = async (code: string) =>
      expect(await made(`/browsers/${id}/playwright/execute`, { code, timeout_sec: 100 })).toEqual({
        success: true,
        result: null,
      });
    const captured = (text: RegExp) =>
      vi.waitFor(
        async () => {
          const events = await service.call('GET', `/browsers/${id}/telemetry/events?order=desc&limit=100`);
          expect(text.test(events.text)).toBe(true);
        },
        { timeout: 60_000, interval: 300 },
      );
    return { id, run, captured };
  }

  test('a console call that nearly has a password of the session at each place', async () => {
    const config = { host: 'proxy.example', port: 8080, username: 'me', password };
    const { id } = await made('/proxies', { type: 'custom', protocol: 'http', config });
    const { run, captured } = await session({ proxy_id: id });
    let count = 0;
    const stop = await service.longestStop(async () => {
      const end = `near ${++count};`;
      await run(`await page.evaluate(() => {
        console.log(...Array.from({ length: 50 }, () => 'a'.repeat(8000)));
        console.log('${end}');
      })`);
      await captured(new RegExp(end));
    });
    expect(stop).toBeLessThan(mostStopMs);
  });

  test('a console call with tens of thousands of objects', async () => {
    const { run, captured } = await session();
    let count = 0;
    const stop = await service.longestStop(async () => {
      const end = `objects ${++count};`;
      await run(`await page.evaluate(() => {
        console.log(...Array(40_000).fill({ a: 1, b: 2, c: 3, d: 4, e: 5 }));
        console.log('${end}');
      })`);
      await captured(new RegExp(end));
    });
    expect(stop).toBeLessThan(mostStopMs);
  });

  test('a page that closes with a thousand open requests', async () => {
    const { run, captured } = await session();
    await run(`
      const tabs = [];
      for (let run = 0; run < 3; run++) tabs.push(await context.newPage());
      for (const tab of tabs) await tab.goto('http://127.0.0.1:${portOf(site)}/');
      for (const [at, tab] of tabs.entries())
        await tab.evaluate((tab) => {
          const query = '?a='.repeat(1000);
          for (let at = 0; at < 1000; at++) fetch('/wait-' + tab + '-' + at + query).catch(() => {});
        }, at);
    `);
    await captured(/wait-2-999/);
    let left = 3;
    const stop = await service.longestStop(async () => {
      await run(`const tabs = context.pages(); await tabs[tabs.length - 1].close();`);
      left -= 1;
      await captured(new RegExp(`Target.detachedFromTarget[^]*wait-${left}-`));
    });
    expect(stop).toBeLessThan(mostStopMs);
  });

  test('a page that closes with seventy large answers whose bodies were not read, in a session with a password', async () => {
    const config = { host: '127.0.0.1', port: portOf(site), username: 'me', password: quotes };
    const { id } = await made('/proxies', { type: 'custom', protocol: 'http', config });
    const { run, captured } = await session({ proxy_id: id });
    let count = 0;
    const stop = await service.longestStop(async () => {
      const name = `large-${++count}`;
      await run(`
        const tab = await context.newPage();
        await tab.goto('http://site.test/');
        await tab.evaluate(async (name) => {
          fetch('/never').catch(() => {});
          await Promise.all(Array.from({ length: 70 }, (_, at) => fetch('/' + name + '-' + at).then((answer) => answer.text())));
        }, '${name}');
        await tab.close();
      `);
      await captured(new RegExp(`network_response[^]*${name}-`));
    });
    expect(stop).toBeLessThan(mostStopMs);
  });

  test('readers of a session that do not read are bounded in number', async () => {
    const { id } = await session();
    const readers: AbortController[] = [];
    const open = async (stream: string) => {
      const reader = new AbortController();
      readers.push(reader);
      const headers = { authorization: `Bearer ${service.key}` };
      return (await fetch(`${service.url}/browsers/${id}/${stream}`, { headers, signal: reader.signal })).status;
    };
    for (let at = 0; at < 64; at++) expect(await open('telemetry/stream')).toBe(200);
    expect(await open('telemetry/stream')).toBe(429);
    expect(await open('logs/stream?source=path&path=/etc/hostname')).toBe(429);
    readers[0]!.abort();
    await expect.poll(() => open('telemetry/stream')).toBe(200);
    for (const reader of readers) reader.abort();
  });
});
