import { once } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import { chown, rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { muxServer, RawClient, type MuxServer } from '../../../test/support/mux-server.ts';
import { MapperCdpError } from './fault.ts';
import { isMapperFault, MAX_BIDI_MESSAGE, type BidiOptions } from './bidi.ts';

// Real Chromium, real clients; all pages on loopback.

let server: MuxServer;
let site: http.Server;
let url: string;
const clients: { close(): unknown }[] = [];

beforeAll(async () => {
  site = http.createServer((request, response) => {
    if (request.url === '/hang') return;
    if (request.url === '/file') response.setHeader('Content-Disposition', 'attachment; filename=file.bin');
    else response.setHeader('Content-Type', 'text/html');
    response.end(`<title>home</title><button onclick="console.log('clicked'); this.textContent = 'done'">go</button>`);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
});

afterAll(() => {
  site.closeAllConnections();
  site.close();
});

beforeEach(async () => {
  server = await muxServer(undefined, { newSessionMs: 100_000 }); // a busy machine takes long to ask the fifty tabs of a burst
});

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await server.stop();
});

// oxlint-disable-next-line typescript/no-explicit-any -- the tests below know the type of the answer
type Anything = any;

interface BidiMessage {
  type: 'success' | 'error' | 'event';
  id?: number | null;
  method?: string;
  params?: Anything;
  result?: Anything;
  error?: string;
  message?: string;
}

/** A BiDi client with nothing between the test and the wire. */
class BidiClient {
  readonly socket: WebSocket;
  readonly seen: BidiMessage[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  #lastId = 100;

  static async open(endpoint = server.bidiEndpoint): Promise<BidiClient> {
    const client = new BidiClient(new WebSocket(endpoint, { perMessageDeflate: false }));
    clients.push(client);
    await once(client.socket, 'open');
    return client;
  }

  static async withSession(): Promise<BidiClient> {
    const client = await BidiClient.open();
    await client.result('session.new', { capabilities: {} });
    return client;
  }

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.setMaxListeners(0); // one for each command that waits
    socket.on('message', (data: Buffer) => this.seen.push(JSON.parse(data.toString())));
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
  }

  async find(test: (message: BidiMessage) => boolean): Promise<BidiMessage> {
    for (;;) {
      const found = this.seen.find(test);
      if (found) return found;
      await once(this.socket, 'message');
    }
  }

  event(method: string): Promise<BidiMessage> {
    return this.find((message) => message.method === method);
  }

  ask(method: string, params: object = {}): Promise<BidiMessage> {
    this.#lastId += 1;
    const id = this.#lastId;
    this.socket.send(JSON.stringify({ id, method, params }));
    return this.find((message) => message.id === id);
  }

  async result(method: string, params?: object): Promise<Anything> {
    const { result, error, message } = await this.ask(method, params);
    if (error) throw new Error(`${method}: ${error}: ${message}`);
    return result;
  }

  /** Sends bytes as they are, and waits for the next message. */
  async next(raw: string | Buffer): Promise<BidiMessage> {
    const { length } = this.seen;
    this.socket.send(raw);
    while (this.seen.length === length) await once(this.socket, 'message');
    return this.seen[length]!;
  }

  async context(): Promise<string> {
    const { contexts } = await this.result('browsingContext.getTree');
    return contexts[0].context;
  }

  async evaluate(expression: string, context: string): Promise<unknown> {
    const params = { expression, target: { context }, awaitPromise: true };
    const { result } = await this.result('script.evaluate', params);
    return result.value;
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}

describe('a BiDi client', () => {
  it('is Puppeteer: it navigates, evaluates, clicks and hears the console', async () => {
    const browser = await puppeteer.connect({ browserWSEndpoint: server.bidiEndpoint, protocol: 'webDriverBiDi' });
    const [page] = await browser.pages();
    await page!.goto('about:blank'); // the browser's own first one may be under way, and Puppeteer takes the first that it hears of for its own
    const response = await page!.goto(url);
    expect(response!.status()).toBe(200);
    expect(await page!.title()).toBe('home');
    expect(await page!.evaluate((a, b) => a * b, 6, 7)).toBe(42);
    const logged = once(page as never, 'console');
    await page!.click('button');
    expect((await logged)[0].text()).toBe('clicked');
    expect(await page!.$eval('button', (button) => button.textContent)).toBe('done');

    const second = await browser.newPage();
    expect(await browser.pages()).toHaveLength(2);
    await second.close();
    expect((await page!.screenshot()).length).toBeGreaterThan(100);
    await browser.close();
    expect(await settledCount()).toBe(0);
    expect(server.chromium.process.exitCode).toBeNull();
  });

  it('starts a session, looks at the tree, navigates and evaluates', async () => {
    const client = await BidiClient.open();
    expect(await client.result('session.status')).toEqual({ ready: true, message: '' });
    const { sessionId, capabilities } = await client.result('session.new', { capabilities: {} });
    expect(sessionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(capabilities).toMatchObject({ browserName: 'chrome', platformName: 'linux', acceptInsecureCerts: false });
    expect(capabilities.browserVersion).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(await client.result('session.status')).toMatchObject({ ready: false });
    expect(await client.ask('session.new', { capabilities: {} })).toMatchObject({ error: 'session not created' });

    const context = await client.context();
    await client.result('session.subscribe', { events: ['browsingContext.load', 'log.entryAdded'] });
    const navigated = await client.result('browsingContext.navigate', { context, url, wait: 'complete' });
    expect(navigated.url).toBe(url);
    await client.find(({ method, params }) => method === 'browsingContext.load' && params.url === url);
    expect(await client.evaluate('document.title', context)).toBe('home');
    await client.evaluate('console.log("hello")', context);
    expect((await client.event('log.entryAdded')).params.text).toBe('hello');
  });

  it('may send commands behind session.new without waiting for it', async () => {
    const client = await BidiClient.open();
    const answers = await Promise.all([
      client.ask('session.new', { capabilities: {} }),
      client.ask('session.subscribe', { events: ['log.entryAdded'] }),
      client.ask('browsingContext.getTree'),
    ]);
    expect(answers.map(({ type }) => type)).toEqual(['success', 'success', 'success']);
    expect(answers[2].result.contexts).toHaveLength(1);
  });

  it('hears of downloads, and leaves how another client downloads alone', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'corral-downloads-'));
    await chown(directory, 65_534, 65_534).catch(() => {}); // Chromium's user, where this one is root
    const cdp = await RawClient.open(server.endpoint);
    clients.push(cdp);
    await cdp.result('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: directory });
    const client = await BidiClient.withSession();
    const context = await client.context();
    await client.result('session.subscribe', { events: ['browsingContext'] });
    void client.ask('browsingContext.navigate', { context, url: `${url}file` });
    expect((await client.event('browsingContext.downloadWillBegin')).params.suggestedFilename).toBe('file.bin');
    expect((await client.event('browsingContext.downloadEnd')).params.status).toBe('complete');
    expect(readdirSync(directory)).toEqual(['file.bin']);

    // After it sets the download directory itself, each download is still reported once, now with the file.
    await client.result('browser.setDownloadBehavior', {
      downloadBehavior: { type: 'allowed', destinationFolder: directory },
    });
    client.seen.length = 0;
    void client.ask('browsingContext.navigate', { context, url: `${url}file` });
    expect((await client.event('browsingContext.downloadEnd')).params.filepath).toContain(directory);
    await client.context();
    expect(client.seen.filter(({ method }) => method?.startsWith('browsingContext.download'))).toHaveLength(2);
    await rm(directory, { recursive: true });
  });
});

describe('several clients on one browser', () => {
  // A page that another client has hung may keep it waiting until `newSessionMs`: the mapper asks every page first.
  it('a page that is still loading does not keep a session from starting', async () => {
    const cdp = await RawClient.open(server.endpoint);
    clients.push(cdp);
    await cdp.page(`data:text/html,<img src="${url}hang">`);
    const client = await BidiClient.withSession();
    expect((await client.result('browsingContext.getTree')).contexts).toHaveLength(2);
  });

  it('intercepts and preload scripts of a client are removed when it disconnects, and its held request continues', async () => {
    const client = await BidiClient.withSession();
    const context = await client.context();
    await client.result('session.subscribe', { events: ['network.beforeRequestSent'] });
    await client.result('network.addIntercept', { phases: ['beforeRequestSent'] });
    await client.result('script.addPreloadScript', { functionDeclaration: '() => { window.preloaded = true; }' });
    const mocked = client.ask('browsingContext.navigate', { context, url, wait: 'complete' });
    const { params } = await client.event('network.beforeRequestSent');
    expect(params.isBlocked).toBe(true);
    const body = { type: 'string', value: '<title>mocked</title>' };
    const headers = [{ name: 'content-type', value: { type: 'string', value: 'text/html' } }];
    await client.result('network.provideResponse', { request: params.request.request, body, headers });
    await mocked;
    const second = await BidiClient.withSession();
    expect(await second.evaluate('document.title', context)).toBe('mocked');
    expect(await second.evaluate('window.preloaded', context)).toBe(true);

    const navigating = second.ask('browsingContext.navigate', { context, url, wait: 'complete' });
    const { request } = params.request;
    await client.find(
      ({ params }) => params?.isBlocked && params.request.url === url && params.request.request !== request,
    );
    await client.close();
    expect((await navigating).type).toBe('success');
    expect(await second.evaluate('document.title', context)).toBe('home');
    expect(await second.evaluate('window.preloaded', context)).toBeUndefined();
  });

  it('a CDP client sees nothing of a BiDi client beside it', async () => {
    const cdp = await RawClient.open(server.endpoint);
    clients.push(cdp);
    await cdp.result('Target.setDiscoverTargets', { discover: true });
    const { sessionId } = await cdp.page('about:blank');
    await cdp.result('Page.enable', {}, sessionId);
    await cdp.result('Runtime.enable', {}, sessionId);
    cdp.seen.length = 0;

    const client = await BidiClient.withSession();
    const { contexts } = await client.result('browsingContext.getTree');
    expect(contexts).toHaveLength(2);
    await client.result('session.subscribe', { events: ['network', 'log', 'browsingContext', 'script'] });
    await client.result('network.addIntercept', { phases: ['beforeRequestSent', 'responseStarted'] });
    await client.close();
    expect(await cdp.evaluate('1 + 1', sessionId)).toBe(2);
    const strange = cdp.seen.filter(({ id, method }) => id === undefined && method !== 'Target.targetInfoChanged');
    expect(strange).toEqual([]); // targetInfoChanged: `attached` counts everyone, as it does on raw Chromium
  });

  it('two BiDi clients open pages, subscribe and leave without each other noticing', async () => {
    const [one, two] = await Promise.all([BidiClient.withSession(), BidiClient.withSession()]);
    await one.result('session.subscribe', { events: ['log.entryAdded'] });
    const { context } = await one.result('browsingContext.create', { type: 'tab' });
    await two.find(() => true);
    expect(await two.evaluate('console.log("from two"); 7', context)).toBe(7);
    expect((await one.event('log.entryAdded')).params.text).toBe('from two');
    expect(two.seen.filter(({ type }) => type === 'event')).toEqual([]);
    await one.close();
    expect(await two.evaluate('8', context)).toBe(8);
  });

  it('a dialog that two clients both dismiss harms no client', async () => {
    const [one, two] = await Promise.all([BidiClient.withSession(), BidiClient.withSession()]);
    const context = await one.context();
    for (let i = 0; i < 10; i++) expect(await one.evaluate('confirm("?")', context)).toBe(false);
    expect(await two.evaluate('9', context)).toBe(9);
  });
});

describe('a message that is not a command', () => {
  const wrong: [string, string | Buffer, Partial<BidiMessage>][] = [
    ['text that is not JSON', 'hello', { id: null }],
    ['nothing', '', { id: null }],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), { id: null }],
    ['a number', '17', { id: null }],
    ['a list', '[]', { id: null }],
    ['no id', '{"method":"session.status","params":{}}', { id: null }],
    ['a negative id', '{"id":-1,"method":"session.status","params":{}}', { id: null }],
    ['an id that is text', '{"id":"1","method":"session.status","params":{}}', { id: null }],
    ['no method', '{"id":5,"params":{}}', { id: 5 }],
    ['a method that is an object', '{"id":5,"method":{},"params":{}}', { id: 5 }],
    ['no params', '{"id":6,"method":"session.status"}', { id: 6 }],
    ['params that are a list', '{"id":6,"method":"session.status","params":[]}', { id: 6 }],
    ['a channel that is a number', '{"id":6,"method":"session.status","params":{},"goog:channel":1}', { id: 6 }],
    ['no capabilities', '{"id":7,"method":"session.new","params":{}}', { id: 7 }],
    ['an odd alwaysMatch', '{"id":7,"method":"session.new","params":{"capabilities":{"alwaysMatch":1}}}', { id: 7 }],
    ['an odd firstMatch', '{"id":7,"method":"session.new","params":{"capabilities":{"firstMatch":"x"}}}', { id: 7 }],
    ['a message that is too large', `{"id":8,"method":"${'x'.repeat(MAX_BIDI_MESSAGE)}","params":{}}`, { id: 8 }],
  ];

  it('is answered as an invalid argument, and the connection stays open', async () => {
    const client = await BidiClient.open();
    for (const [what, raw, expected] of wrong) {
      const answer = await client.next(raw);
      expect({ what, ...answer }).toMatchObject({ what, type: 'error', error: 'invalid argument', ...expected });
    }
    await client.result('session.new', { capabilities: {} });
    expect(await client.ask('browsingContext.navigate', { context: 1, url: [] })).toMatchObject({
      error: 'invalid argument',
    });
    const lost = await client.ask('browsingContext.navigate', { context: 'x', url });
    expect(lost).toMatchObject({ error: 'no such frame' });
    expect(lost).not.toHaveProperty('stacktrace'); // it would show where the service's files are
    expect(await client.ask('no.such')).toMatchObject({ error: 'unknown command' });
    const deep = `{"id":9,"method":"script.callFunction","params":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`;
    expect((await client.next(deep)).type).toBe('error');
    expect(await client.evaluate('1', await client.context())).toBe(1);
  });

  it('after a command without a session and a refused session, a session can be created', async () => {
    const client = await BidiClient.open();
    expect(await client.ask('browsingContext.getTree')).toMatchObject({ error: 'invalid session id' });
    expect(await client.ask('session.end')).toMatchObject({ error: 'invalid session id' });
    const firefox = { capabilities: { alwaysMatch: { browserName: 'firefox' } } };
    expect(await client.ask('session.new', firefox)).toMatchObject({ error: 'session not created' });
    const odd = { capabilities: { alwaysMatch: { unhandledPromptBehavior: 'shrug' } } };
    expect(await client.ask('session.new', odd)).toMatchObject({ error: 'invalid argument' });
    await client.result('session.new', { capabilities: {} });
    expect(await client.context()).toBeTypeOf('string');
    expect(server.mux.clientCount).toBe(1);
  });
});

describe('the end', () => {
  const exits: [string, (client: BidiClient) => unknown, number][] = [
    ['session.end', (client) => client.result('session.end'), 1000],
    ['browser.close', (client) => client.result('browser.close'), 1000],
    ['Browser.close over goog:cdp', (client) => void client.ask('goog:cdp.sendCommand', browserClose), 1000],
    ['a close of the websocket', (client) => client.socket.close(), 1000],
    ['a cut connection', (client) => client.socket.terminate(), 1006],
    ['a burst of commands and then a cut', burstAndCut, 1006],
    ['a cut while the session starts', (client) => client.socket.terminate(), 1006],
  ];

  it.each(exits)('by %s leaves the browser, and nothing of the client', async (what, exit, code) => {
    const client = await BidiClient.open();
    const starting = client.ask('session.new', { capabilities: {} });
    if (!what.includes('while')) await starting;
    await exit(client);
    expect((await client.closed).code).toBe(code);
    expect(await settledCount()).toBe(0);
    const next = await BidiClient.withSession();
    expect(await next.evaluate('1', await next.context())).toBe(1);
  });

  it('of the browser in the middle of a burst closes every client with the reason', async () => {
    const some = await Promise.all([BidiClient.withSession(), BidiClient.withSession(), BidiClient.open()]);
    const context = await some[0].context();
    for (const client of some) await burst(client, context);
    server.chromium.process.kill('SIGKILL');
    for (const client of some) {
      expect(await client.closed).toEqual({ code: 1011, reason: 'The browser went away.' });
    }
    expect(server.mux.clientCount).toBe(0);
    const late = await BidiClient.open();
    expect((await late.closed).code).toBe(1011);
  });

  it('of tabs that come and go under two clients harms neither', async () => {
    const [one, two] = await Promise.all([BidiClient.withSession(), BidiClient.withSession()]);
    const cdp = await RawClient.open(server.endpoint);
    clients.push(cdp);
    const asked: Promise<BidiMessage>[] = [];
    for (let i = 0; i < 20; i++) {
      const { targetId } = await cdp.result<{ targetId: string }>('Target.createTarget', { url });
      const params = { expression: '1', target: { context: targetId }, awaitPromise: true };
      for (const client of [one, two]) asked.push(client.ask('script.evaluate', params));
      await cdp.result('Target.closeTarget', { targetId });
    }
    expect(await Promise.all(asked)).toHaveLength(40); // found or not, each is answered
    expect(await two.evaluate('1', await two.context())).toBe(1);
    expect((await two.result('browsingContext.getTree')).contexts[0].clientWindow).toMatch(/^[1-9]/);
    expect(server.chromium.process.signalCode).toBeNull();
  });

  it('comes to a client that does not read', async () => {
    await server.stop();
    server = await muxServer(undefined, { maxUnread: 1024 * 1024, maxLarge: 4 * 1024 * 1024 });
    const client = await BidiClient.withSession();
    const context = await client.context();
    client.socket.pause();
    const expression = '"x".repeat(900_000)';
    for (let id = 1000; id < 1060; id++) {
      const params = { expression, target: { context }, awaitPromise: true };
      client.socket.send(JSON.stringify({ id, method: 'script.evaluate', params }));
    }
    expect(await settledCount()).toBe(0);
    client.socket.resume();
    expect((await client.closed).code).toBe(1008);
  });

  it('comes to a session.new that a stopped browser leaves waiting, and the client may try again', async () => {
    await server.stop();
    const limits: BidiOptions = {};
    server = await muxServer(undefined, limits);
    const client = await BidiClient.withSession();
    await client.close();
    const second = await BidiClient.open();
    server.chromium.process.kill('SIGSTOP');
    limits.newSessionMs = 500; // only while nothing can answer: a busy machine may take longer
    const answer = await second.ask('session.new', { capabilities: {} });
    expect(answer).toMatchObject({ type: 'error', error: 'session not created' });
    delete limits.newSessionMs;
    server.chromium.process.kill('SIGCONT');
    await second.result('session.new', { capabilities: {} });
    expect(await second.evaluate('1', await second.context())).toBe(1);
    expect(server.mux.clientCount).toBe(1);
  });
});

it('a rejection is the mapper’s if its CDP failed, or its own code did', () => {
  expect(isMapperFault(new MapperCdpError('Session with given id not found.', -32_001))).toBe(true);
  const inside = new TypeError('x is undefined');
  inside.stack = 'TypeError: x\n    at f (file:///srv/node_modules/chromium-bidi/out/x.js:1:1)';
  expect(isMapperFault(inside)).toBe(true);
  expect(isMapperFault(new TypeError('x is undefined'))).toBe(false);
  expect(isMapperFault(undefined)).toBe(false);
});

const browserClose = { method: 'Browser.close', params: {} };

async function burst(client: BidiClient, context: string): Promise<void> {
  const target = { context };
  for (let i = 0; i < 50; i++) {
    void client.ask('browsingContext.navigate', { context, url }).catch(() => {});
    void client.ask('browsingContext.create', { type: 'tab' }).catch(() => {});
    void client.ask('script.evaluate', { expression: 'alert(1)', target, awaitPromise: true }).catch(() => {});
    void client.ask('network.addIntercept', { phases: ['beforeRequestSent'] }).catch(() => {});
    void client.ask('browsingContext.captureScreenshot', { context }).catch(() => {});
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
}

async function burstAndCut(client: BidiClient): Promise<void> {
  await burst(client, await client.context());
  client.socket.terminate();
}

/** The multiplexer's clients, once those that are leaving have left. */
async function settledCount(): Promise<number> {
  for (let i = 0; i < 3000 && server.mux.clientCount > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  return server.mux.clientCount;
}
