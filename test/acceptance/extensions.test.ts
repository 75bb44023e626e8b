import Kernel, { toFile } from '@onkernel/sdk';
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { mostZipBytes } from '../../src/uploads/uploads.ts';
import { extensionFiles, zipOf } from '../support/extension-zip.ts';
import { killBrowser } from '../support/kill-browser.ts';
import { untilNothing } from '../support/leftovers.ts';
import { RawClient } from '../support/mux-server.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

const storeId = 'ddkjiahejlhfcafbddmgiahcphecmpfh';
let pages: Pages;
let store: Server;
let storeSends: { status: number; body: Buffer };
let asked: URL;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages();
  store = createServer((request, response) => {
    asked = new URL(request.url!, 'http://store');
    response.writeHead(storeSends.status).end(storeSends.body);
  });
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  service = await startService({
    CORRAL_ALLOW_PRIVATE_HOSTS: pages.host,
    CORRAL_MAX_SESSIONS: '8',
    CORRAL_CHROME_STORE_URL: `http://127.0.0.1:${(store.address() as AddressInfo).port}/crx`,
  });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  store?.close();
  await pages?.close();
});
afterEach(async () => {
  await expectNothingLeft(service);
  const uploads = () => readdir(join(service.dataDir, 'uploads')).catch(() => []);
  const left = await untilNothing<string>(uploads, 30_000);
  if (left.length > 0) throw new Error(`Uploads are left: ${left.join(', ')}`);
});

const upload = async (name: string | undefined, zip: Buffer) =>
  sdk.extensions.upload({ file: await toFile(zip, 'extension.zip'), ...(name === undefined ? {} : { name }) });
const marked = async (mark: string) => upload(mark, await zipOf(extensionFiles(mark)));

/** What the extensions of a session make of a page: their answers by mark. */
async function marksIn(session: { cdp_ws_url: string }, marks: string[]) {
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  try {
    const page = await browser.contexts()[0]!.newPage();
    await page.goto(pages.url);
    for (const mark of marks) await page.waitForSelector(`html[data-${mark}]`, { state: 'attached' });
    return await page.evaluate<Record<string, string>>('({ ...document.documentElement.dataset })');
  } finally {
    await browser.close();
  }
}

describe('an extension', () => {
  test('is uploaded, listed, downloaded as it was, described and deleted', async () => {
    const zip = await zipOf({ ...extensionFiles('a'), 'large.bin': randomBytes(1_000_000) });
    const extension = await upload('Marker', zip);
    const checksum = createHash('sha256').update(zip).digest('hex');
    expect(extension).toMatchObject({ name: 'Marker', size_bytes: zip.length, checksum, last_used_at: null });
    await expect(upload('marker', zip)).rejects.toThrow(Kernel.ConflictError);
    const nameless = await upload(undefined, zip);
    const listed = async (query: Kernel.ExtensionListParams) =>
      (await sdk.extensions.list(query)).getPaginatedItems().map(({ id }) => id);
    expect(await listed({})).toEqual([extension.id, nameless.id]);
    expect(await listed({ query: 'ARK' })).toEqual([extension.id]);
    expect(Buffer.from(await (await sdk.extensions.download('MARKER')).arrayBuffer()).equals(zip)).toBe(true);
    expect((await service.call('GET', `/extensions/${extension.id}/metadata`)).body).toEqual(extension);
    await sdk.extensions.delete('marker');
    await sdk.extensions.delete(nameless.id);
    await expect(sdk.extensions.download(extension.id)).rejects.toThrow(Kernel.NotFoundError);
    expect(await listed({})).toEqual([]);
  });

  test('that does not fit is refused, and nothing of it is kept', async () => {
    const old = await zipOf({ 'manifest.json': '{"manifest_version":2,"name":"x","version":"1"}' });
    await expect(upload('old', old)).rejects.toThrow(/manifest version 2/);
    const large = Buffer.alloc(mostZipBytes + 1);
    const answer = await upload('large', large).catch((error: Error & { status?: number }) => error);
    expect(answer).toMatchObject({ status: 413, message: expect.stringContaining(`${mostZipBytes} bytes`) });
    const form = (fields: Record<string, string>) => {
      const body = new FormData();
      for (const [name, value] of Object.entries(fields)) body.set(name, value);
      return fetch(`${service.url}/extensions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${service.key}` },
        body,
      });
    };
    expect((await form({ name: 'x' })).status).toBe(400);
    expect(await service.call('POST', '/extensions', {})).toMatchObject({ status: 415 });
    expect((await sdk.extensions.list()).getPaginatedItems()).toEqual([]);
  });

  test.each([true, false])(
    'runs in a session that starts with it (headless: %s), also after a crash',
    async (headless) => {
      const ids = [await marked('zulu'), await marked('alpha')].map(({ id }) => id);
      const session = await sdk.browsers.create({ headless, extensions: [{ id: ids[0]! }, { name: 'ALPHA' }] });
      expect(await marksIn(session, ['zulu', 'alpha'])).toMatchObject({
        zulu: 'zulu 1',
        alpha: 'alpha 1',
      });
      expect((await service.call('GET', '/extensions/zulu/metadata')).body.last_used_at).toEqual(expect.any(String));

      const client = await RawClient.open(session.cdp_ws_url);
      await killBrowser(service, session.session_id);
      expect(await client.closed).toMatchObject({ code: 1012 });
      expect(await marksIn(session, ['zulu', 'alpha'])).toMatchObject({ zulu: 'zulu 2', alpha: 'alpha 2' });
      await sdk.browsers.deleteByID(session.session_id);
      for (const id of ids) await sdk.extensions.delete(id);
    },
  );

  test('stores data in a profile, which opens without the extension, too', async () => {
    const extension = await marked('storing');
    const profile = await sdk.profiles.create({});
    const writing = { headless: true, profile: { id: profile.id, save_changes: true }, start_url: 'about:blank' };
    const start = (wishes: Kernel.BrowserCreateParams) => sdk.browsers.create({ ...writing, ...wishes });
    for (const count of [1, 2]) {
      const session = await start({ extensions: [{ id: extension.id }] });
      expect(await marksIn(session, ['storing'])).toEqual({ storing: `storing ${count}` });
      await sdk.browsers.deleteByID(session.session_id);
      // Without the extension its directory is not there; the browser does without.
      const without = await start({ headless: count === 1 });
      expect(await marksIn(without, [])).toEqual({});
      await sdk.browsers.deleteByID(without.session_id);
    }
    await sdk.extensions.delete(extension.id);
    await sdk.profiles.delete(profile.id);
  });

  test('that is not there, or twice there, is said before a browser starts', async () => {
    const start = (extensions: object[]) => service.call('POST', '/browsers', { headless: true, extensions });
    expect(await start([{ name: 'nobody' }])).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/extensions\.0: no extension has the name 'nobody'/) },
    });
    const { id } = await marked('once');
    expect(await start([{ id }, { name: 'once' }])).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/named before/) },
    });
    expect(await start(Array.from({ length: 21 }, () => ({ id })))).toMatchObject({ status: 400 });
    await sdk.extensions.delete(id);
  });

  test('is loaded into a browser that runs, whose clients stay; all of a request or nothing', async () => {
    const session = await sdk.browsers.create({ headless: false });
    const client = await RawClient.open(session.cdp_ws_url);
    const zip = async (mark: string) => toFile(await zipOf(extensionFiles(mark)), `${mark}.zip`);
    const load = (...extensions: Kernel.BrowserLoadExtensionsParams['extensions']) =>
      sdk.browsers.loadExtensions(session.session_id, { extensions });
    await load({ name: 'yankee', zip_file: await zip('yankee') }, { name: 'bravo', zip_file: await zip('bravo') });
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');
    expect(await marksIn(session, ['yankee', 'bravo'])).toMatchObject({ yankee: 'yankee 1', bravo: 'bravo 1' });

    await expect(load({ name: 'bravo', zip_file: await zip('other') })).rejects.toThrow(/named 'bravo' already/);
    const broken = {
      ...extensionFiles('x'),
      'scripts/content.js': '',
      'manifest.json': JSON.stringify({
        manifest_version: 3,
        name: 'x',
        version: '1',
        content_scripts: [{ matches: ['nonsense'], js: ['scripts/content.js'] }],
      }),
    };
    const bad = { name: 'bad', zip_file: await toFile(await zipOf(broken), 'bad.zip') };
    await expect(load({ name: 'fine', zip_file: await zip('fine') }, bad)).rejects.toThrow(
      /Extension 'bad' was not loaded/,
    );
    expect(await marksIn(session, ['bravo'])).not.toHaveProperty('fine');
    await load({ name: 'bad', zip_file: await zip('mended') });
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');
    await client.close();
    await expect(
      sdk.browsers.loadExtensions('nobody', { extensions: [{ name: 'x', zip_file: await zip('x') }] }),
    ).rejects.toThrow(Kernel.NotFoundError);
  });

  test('replaces the headless shell with the full browser, which keeps its cookies and pages', async () => {
    const session = await sdk.browsers.create({ headless: true });
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    const context = browser.contexts()[0]!;
    await context.addCookies([{ name: 'undated', value: 'kept', url: pages.url }]);
    await context.pages()[0]!.goto(pages.url);
    await browser.close();
    const client = await RawClient.open(session.cdp_ws_url);
    const load = async (name: string) =>
      sdk.browsers.loadExtensions(session.session_id, {
        extensions: [{ name, zip_file: await toFile(await zipOf(extensionFiles(name)), `${name}.zip`) }],
      });
    await Promise.all([load('shell'), load('pearl')]); // both find the shell, and it goes once
    expect(await client.closed).toMatchObject({
      code: 1012,
      reason: expect.stringMatching(/extensions.*same address/),
    });
    expect(await marksIn(session, ['shell', 'pearl'])).toMatchObject({
      shell: expect.stringMatching(/^shell \d$/),
      pearl: expect.stringMatching(/^pearl \d$/),
    });
    const again = await chromium.connectOverCDP(session.cdp_ws_url);
    expect(await again.contexts()[0]!.cookies()).toMatchObject([{ name: 'undated', value: 'kept' }]);
    const urls = () =>
      again
        .contexts()[0]!
        .pages()
        .map((page) => page.url());
    await expect.poll(urls).toContain(pages.url);
    await again.close();
  });

  test('comes from the Chrome web store as a zip, and nothing is stored', async () => {
    const zip = await zipOf(extensionFiles('bought'));
    const header = Buffer.alloc(12 + 300);
    header.write('Cr24');
    header.writeUInt32LE(3, 4);
    header.writeUInt32LE(300, 8);
    storeSends = { status: 200, body: Buffer.concat([header, zip]) };
    const url = `https://chromewebstore.google.com/detail/some-extension/${storeId}`;
    const got = await sdk.extensions.downloadFromChromeStore({ url, os: 'mac' });
    expect(Buffer.from(await got.arrayBuffer()).equals(zip)).toBe(true);
    expect(asked.searchParams.get('x')).toBe(`id=${storeId}&uc`);
    expect(asked.searchParams.get('os')).toBe('mac');
    expect((await sdk.extensions.list()).getPaginatedItems()).toEqual([]);

    const ask = (of: string) => service.call('GET', `/extensions/from_chrome_store?url=${encodeURIComponent(of)}`);
    expect(await ask('https://example.com/detail/x')).toMatchObject({ status: 400, body: { code: 'invalid_input' } });
    storeSends = { status: 204, body: Buffer.alloc(0) };
    expect(await ask(url)).toMatchObject({ status: 400, body: { message: expect.stringMatching(/has no extension/) } });
    for (const body of [Buffer.from('<html>'), header, Buffer.alloc(0)]) {
      storeSends = { status: 200, body };
      expect(await ask(url)).toMatchObject({ status: 500, body: { code: 'chrome_store_unavailable' } });
    }
    storeSends = { status: 503, body: Buffer.alloc(0) };
    expect(await ask(url)).toMatchObject({ status: 500, body: { message: expect.stringMatching(/answered 503/) } });
  });
});
