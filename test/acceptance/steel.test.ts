import { randomUUID } from 'node:crypto';
import { chromium } from 'playwright-core';
import { Steel } from 'steel-sdk';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RawClient } from '../support/mux-server.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';
import { upgrade } from '../support/upgrade.ts';

let pages: Pages;
let service: Service;
beforeAll(async () => {
  pages = await startPages({
    '/article': `<!doctype html><html lang=en><title>An article</title><meta name=description content="What it says">
      <meta property="og:title" content="For cards"><p>Text with <a href="/next">a link</a></p></html>`,
  });
  service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_MAX_SESSIONS: '4' });
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

/** The client as its users have it. A slow machine is no failure, so it waits for as long as a test does, and tries once. */
const client = (steelAPIKey = service.key) =>
  new Steel({ steelAPIKey, baseURL: service.url, timeout: 110_000, maxRetries: 0 });
const at = (query: string) => `${service.url.replace('http', 'ws')}?${query}`;
const active = async () => (await service.call('GET', '/browsers')).body;
/** Drivers have bounds of their own, which a slow machine may reach. */
async function drive(address: string) {
  const browser = await chromium.connectOverCDP(address, { timeout: 110_000 });
  const page = browser.contexts()[0]!.pages()[0]!;
  page.setDefaultTimeout(110_000);
  return { browser, page };
}
const origin = () => new URL(pages.url).origin;

describe('a client of Steel', () => {
  afterEach(() => expectNothingLeft(service));

  test('creates a session as it asks, connects, lists it, gets it and releases it', async () => {
    const steel = client();
    const id = randomUUID();
    const session = await steel.sessions.create({
      sessionId: id,
      dimensions: { width: 800, height: 600 },
      headless: true,
      timeout: 600_000,
      blockAds: false,
      sessionContext: {
        cookies: [{ name: 'seen', value: 'yes', url: pages.url }],
        localStorage: { [origin()]: { theme: 'dark' } },
        sessionStorage: { [origin()]: { step: '2' } },
      },
    });
    expect(session).toMatchObject({
      id,
      status: 'live',
      headless: true,
      timeout: 600_000,
      dimensions: { width: 800, height: 600 },
    });

    const { browser, page } = await drive(`${session.websocketUrl}&apiKey=${service.key}`);
    expect(page.url()).toBe('about:blank');
    await page.goto(pages.url);
    await page.click('button');
    expect(await page.textContent('output')).toBe('1');
    const stored = '[document.cookie, localStorage.theme, sessionStorage.step]';
    expect(await page.evaluate(stored)).toEqual(['seen=yes', 'dark', '2']);

    const second = await RawClient.open(at(`apiKey=${service.key}&sessionId=${id}`));
    const { targetInfos } = await second.result<{ targetInfos: { url: string }[] }>('Target.getTargets');
    expect(targetInfos.map(({ url }) => url)).toContain(pages.url);
    await second.close();
    expect(await active()).toMatchObject([{ name: id }]);

    const context = await steel.sessions.context(id);
    expect(context).toMatchObject({
      cookies: [{ name: 'seen', value: 'yes', domain: '127.0.0.1' }],
      localStorage: { [origin()]: { theme: 'dark' } },
      sessionStorage: { [origin()]: { step: '2' } },
    });
    const { pages: shown, wsUrl } = await steel.sessions.liveDetails(id);
    expect([shown.map(({ url }) => url), wsUrl]).toEqual([[pages.url], expect.stringMatching(/^ws:/)]);

    const listed = await steel.sessions.list({ status: 'live' });
    expect(listed.sessions.map((one) => one.id)).toEqual([id]);
    expect(await steel.sessions.retrieve(id)).toMatchObject({ id, status: 'live' });

    await expect(steel.sessions.create({ sessionId: id })).rejects.toMatchObject({ status: 409 });

    await browser.close();
    expect(await steel.sessions.release(id)).toMatchObject({ success: true });
    expect(await steel.sessions.retrieve(id)).toMatchObject({ id, status: 'released' });
    expect(await steel.sessions.release(id), 'a second time').toMatchObject({ success: true });
    expect(await upgrade(at(`apiKey=${service.key}&sessionId=${id}`))).toMatchObject({ status: 404 });
  });

  test('creates a session with the context of another, and lists every session page by page', async () => {
    const steel = client();
    const first = await steel.sessions.create({
      headless: true,
      sessionContext: { cookies: [{ name: 'a', value: '1', domain: '.example.com', expires: 4_000_000_000 }] },
    });
    const context = await steel.sessions.context(first.id);
    const second = await steel.sessions.create({ headless: true, sessionContext: context });
    expect((await steel.sessions.context(second.id)).cookies).toEqual(context.cookies);
    expect(context.cookies).toMatchObject([{ name: 'a', value: '1', domain: '.example.com' }]);
    await steel.sessions.release(first.id);
    await expect.poll(async () => (await steel.sessions.retrieve(first.id)).status).toBe('released');

    const found: string[] = [];
    for await (const { id } of steel.sessions.list({ limit: 1 })) found.push(id);
    expect(found.slice(0, 2)).toEqual([second.id, first.id]);
    expect(new Set(found).size).toBe(found.length);
    const released = await steel.sessions.list({ status: 'released', limit: 100 });
    expect(released.sessions.map(({ id }) => id)).toEqual(found.slice(1));
    expect((await steel.sessions.list({ status: 'failed' })).sessions).toEqual([]);

    expect(await steel.sessions.releaseAll()).toEqual({ success: true, message: 'Released sessions: 1.' });
    expect(await active()).toEqual([]);
  });

  test('connects without creating, and the session ends when it leaves', async () => {
    const { browser, page } = await drive(at(`apiKey=${service.key}`));
    await page.goto(pages.url);
    expect(await page.title()).toBe('A page');
    expect(await active()).toHaveLength(1);
    await browser.close();
    await expect.poll(active).toEqual([]);

    const sessionId = randomUUID();
    const named = await RawClient.open(at(`apiKey=${service.key}&sessionId=${sessionId}`));
    expect(await client().sessions.retrieve(sessionId)).toMatchObject({ id: sessionId, status: 'live' });
    await named.close();
    await expect.poll(active).toEqual([]);
  });

  test('stores its data in a profile, and uses its own proxy', async () => {
    const steel = client();
    const session = await steel.sessions.create({
      headless: true,
      persistProfile: true,
      proxyUrl: `http://someone:a-secret@${pages.host}`,
    });
    expect(session).toMatchObject({ persistProfile: true, proxySource: 'external' });
    const { profileId = '' } = session;
    expect((await service.call('GET', `/profiles/${profileId}`)).status).toBe(200);
    expect((await service.call('GET', '/proxies')).body).toEqual([]);
    await steel.sessions.release(session.id);
    expect((await service.call('GET', `/profiles/${profileId}/versions`)).body).toHaveLength(1);
    const again = await steel.sessions.create({ headless: true, profileId });
    expect(again).toMatchObject({ profileId, persistProfile: false });
    expect(service.log.join('')).not.toContain('a-secret');
  });

  test('scrapes, takes pictures and prints', async () => {
    const steel = client();
    const url = `${pages.url}article`;
    const scraped = await steel.scrape({ url, screenshot: true, pdf: true });
    expect(scraped.content.html).toContain('<p>Text with <a href="/next">a link</a></p>');
    expect(scraped.links).toEqual([{ url: `${pages.url}next`, text: 'a link' }]);
    expect(scraped.metadata).toMatchObject({
      statusCode: 200,
      title: 'An article',
      language: 'en',
      description: 'What it says',
      ogTitle: 'For cards',
      urlSource: url,
    });
    const bytes = async (address = '') => Buffer.from(await (await fetch(address)).arrayBuffer());
    expect((await bytes(scraped.screenshot?.url)).subarray(1, 4).toString()).toBe('PNG');
    expect((await bytes(scraped.pdf?.url)).subarray(0, 5).toString()).toBe('%PDF-');
    const whole = await bytes((await steel.screenshot({ url: pages.url, fullPage: true, delay: 1 })).url);
    expect(whole.readUInt32BE(20)).toBeGreaterThan(5000); // the page is that high
    expect((await bytes((await steel.pdf({ url })).url)).subarray(0, 5).toString()).toBe('%PDF-');
    await expect(steel.scrape({ url, format: ['markdown'] })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('format markdown is not available'),
    });
  });

  test('gets errors that name options that are not available, and keeps its key out of the logs', async () => {
    const steel = client();
    const refused = (error: object) => expect.objectContaining(error);
    const message = (text: string) => refused({ status: 400, message: expect.stringContaining(text) });
    await expect(steel.sessions.create({ solveCaptcha: true })).rejects.toEqual(message('400 solveCaptcha is not'));
    await expect(steel.sessions.create({ isSelenium: true })).rejects.toEqual(message('POST /session'));
    await expect(steel.sessions.create({ fullscreen: true } as object)).rejects.toEqual(message('fullscreen is not'));
    await expect(steel.sessions.create({ timeout: 1 })).rejects.toEqual(message('timeout must be at least 10000'));
    await expect(steel.sessions.retrieve('none')).rejects.toBeInstanceOf(Steel.NotFoundError);
    await expect(steel.sessions.release('none')).rejects.toBeInstanceOf(Steel.NotFoundError);
    await expect(steel.sessions.list({ cursorId: 'none' })).rejects.toBeInstanceOf(Steel.NotFoundError);
    await expect(client('sk_wrongwrongwrong').sessions.list()).rejects.toBeInstanceOf(Steel.AuthenticationError);
    expect((await fetch(`${service.url}/v1/sessions?apiKey=sk_wrongwrongwrong`)).status).toBe(401);
    expect((await fetch(`${service.url}/v1/sessions?apiKey=${service.key}`)).status).toBe(200);
    expect(await upgrade(at('apiKey=sk_wrongwrongwrong'))).toMatchObject({ status: 401 });
    expect(await upgrade(at(`apiKey=${service.key}&blockAds=true`))).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('blockAds is not available') },
    });
    const context = { cookies: [{ name: 'a', value: '1' }] };
    await expect(steel.sessions.create({ headless: true, sessionContext: context })).rejects.toEqual(
      message('sessionContext.cookies'),
    );
    expect(await active()).toEqual([]);

    const since = new Date(Date.now() - 3_600_000).toISOString();
    const until = new Date(Date.now() + 60_000).toISOString();
    const audit = await service.call('GET', `/audit-logs?start=${since}&end=${until}&limit=100`);
    const paths = audit.body.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(expect.arrayContaining(['/v1/sessions', '/']));
    for (const secret of [service.key, 'sk_wrongwrongwrong'])
      expect(audit.text + service.log.join('')).not.toContain(secret);
  });
});
