import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { chromium as playwright } from 'playwright-core';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { isAttached, isCreated } from '../../src/chromium/cdp/shapes.ts';
import { record } from '../../src/lib/shape.ts';
import { muxServer, portOf, RawClient, type MuxServer } from '../support/mux-server.ts';

// Messages of hundreds of megabytes are written, masked and parsed by this process: a busy machine takes a minute for one.
vi.setConfig({ testTimeout: 300_000 });

const MIB = 1024 * 1024;
let server: MuxServer;
let site: Server;
let siteUrl: string;
const open: RawClient[] = [];

beforeAll(async () => {
  server = await muxServer({ maxInFlight: 5000 });
  site = createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(`<title>${request.url}</title><h1>here</h1>`);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  siteUrl = `http://127.0.0.1:${portOf(site)}`;
});

afterAll(async () => {
  await server?.stop();
  site?.close();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()));
  // The server hears of it a moment later, and tests count its clients.
  await vi.waitUntil(() => server.mux.clientCount === 0, { timeout: 60_000 });
});

async function client(): Promise<RawClient> {
  const opened = await RawClient.open(server.endpoint);
  open.push(opened);
  return opened;
}

describe('several clients on one browser', () => {
  test('Playwright, Puppeteer and a raw client each work as if alone', async () => {
    const [viaPlaywright, viaPuppeteer, raw] = await Promise.all([
      playwright.connectOverCDP(server.endpoint),
      connectPuppeteer({ browserWSEndpoint: server.endpoint }),
      client(),
    ]);

    const visits = await Promise.all([
      (async () => {
        const context = await viaPlaywright.newContext();
        const page = await context.newPage();
        await page.goto(`${siteUrl}/playwright`);
        const title = await page.title();
        await context.close();
        return title;
      })(),
      (async () => {
        const context = await viaPuppeteer.createBrowserContext();
        const page = await context.newPage();
        await page.goto(`${siteUrl}/puppeteer`);
        const title = await page.title();
        await context.close();
        return title;
      })(),
      (async () => {
        const { sessionId } = await raw.page(`${siteUrl}/raw`);
        await raw.result('Page.enable', {}, sessionId);
        await expect.poll(() => raw.evaluate('document.title', sessionId)).toBe('/raw'); // a new page may still be on its way
        return raw.evaluate('document.title', sessionId);
      })(),
    ]);

    expect(visits).toEqual(['/playwright', '/puppeteer', '/raw']);
    await viaPlaywright.close();
    await viaPuppeteer.close(); // sends Browser.close
    expect(await raw.result('Browser.getVersion')).toHaveProperty('product');
  });

  test('events are sent to the client that enabled them, and ids may collide', async () => {
    const [first, second] = [await client(), await client()];
    const { targetId, sessionId } = await first.page();
    const { sessionId: other } = await second.attachTo(targetId);
    await first.result('Runtime.enable', {}, sessionId);

    const answers = await Promise.all([
      ...Array.from({ length: 50 }, (_, i) => first.evaluate(`console.log('a'), 'first ${i}'`, sessionId)),
      ...Array.from({ length: 50 }, (_, i) => second.evaluate(`console.log('b'), 'second ${i}'`, other)),
    ]);

    expect(answers).toEqual([
      ...Array.from({ length: 50 }, (_, i) => `first ${i}`),
      ...Array.from({ length: 50 }, (_, i) => `second ${i}`),
    ]);
    await expect.poll(() => first.events('Runtime.consoleAPICalled').length).toBe(100);
    expect(second.events('Runtime.consoleAPICalled')).toHaveLength(0);
    expect(second.seen.filter((message) => message.sessionId === sessionId)).toEqual([]);
  });

  test('the session that represents the connection is never shown', async () => {
    const raw = await client();
    await raw.result('Target.setDiscoverTargets', { discover: true });
    await raw.page();
    expect(raw.events('Target.targetCreated').length).toBeGreaterThan(0);
    expect(raw.events('Target.targetCreated').filter((event) => 'sessionId' in event)).toEqual([]);
    expect(raw.seen.filter((message) => message.id !== undefined && 'sessionId' in message)).toEqual([]);
  });

  test('another client’s session does not exist', async () => {
    const [owner, thief] = [await client(), await client()];
    const { sessionId } = await owner.page();
    const notFound = { error: { code: -32001, message: 'Session with given id not found.' } };

    expect(await thief.ask('Runtime.evaluate', { expression: '1' }, sessionId)).toMatchObject(notFound);
    expect(await thief.ask('Browser.close', {}, sessionId)).toMatchObject(notFound);
    expect((await thief.ask('Target.detachFromTarget', { sessionId })).error).toBeDefined();
    expect(await owner.evaluate('1 + 1', sessionId)).toBe(2);
  });

  test('a page cannot forge a message to another client', async () => {
    const [victim, visitor] = [await client(), await client()];
    const { sessionId: theirs } = await victim.page();
    const { sessionId } = await visitor.page();
    await visitor.result('Runtime.enable', {}, sessionId);
    const before = victim.seen.length;

    for (const forged of [
      `","sessionId":"${theirs}"}`,
      `"},"sessionId":"${theirs}"}`,
      `\\",\\"sessionId\\":\\"${theirs}\\"}`,
    ]) {
      expect(
        await visitor.evaluate(`console.log(${JSON.stringify(forged)}), ${JSON.stringify(forged)}`, sessionId),
      ).toBe(forged);
    }
    expect(await visitor.evaluate(`({ id: 5, sessionId: '${theirs}' })`, sessionId)).toEqual({
      id: 5,
      sessionId: theirs,
    });
    expect(visitor.events('Runtime.consoleAPICalled')).toHaveLength(3);
    expect(victim.seen).toHaveLength(before);
  });

  test('sessions below sessions belong to the same client, workers and frames among them', async () => {
    const raw = await client();
    const { sessionId } = await raw.page(siteUrl);
    await expect.poll(() => raw.evaluate('document.title', sessionId)).toBe('/'); // or its worker would go with the empty page
    await raw.result(
      'Target.setAutoAttach',
      { autoAttach: true, waitForDebuggerOnStart: true, flatten: true },
      sessionId,
    );
    await raw.evaluate('void (globalThis.worker = new Worker(URL.createObjectURL(new Blob([""]))))', sessionId);
    const { params, sessionId: parent } = await raw.event('Target.attachedToTarget').then(async () => {
      while (!raw.events('Target.attachedToTarget').some((event) => event.sessionId === sessionId))
        await raw.ask('Browser.getVersion');
      return raw.events('Target.attachedToTarget').find((event) => event.sessionId === sessionId)!;
    });
    expect(parent).toBe(sessionId);
    await raw.result('Runtime.runIfWaitingForDebugger', {}, String(params!['sessionId']));
    expect(await raw.evaluate('typeof importScripts', String(params!['sessionId']))).toBe('function');
  });

  test('a nested browser session is the client’s own, too', async () => {
    const [raw, other] = [await client(), await client()];
    const { sessionId } = await raw.result<{ sessionId: string }>('Target.attachToBrowserTarget');
    expect(await raw.ask('Browser.getVersion', {}, sessionId)).toMatchObject({ sessionId });
    expect(await other.ask('Browser.getVersion', {}, sessionId)).toMatchObject({ error: { code: -32001 } });
  });

  test('the service is a client like the others', async () => {
    const local = server.mux.attachLocal();
    const { targetId } = await local.ask(isCreated, 'Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await local.ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
    await local.send('Runtime.enable', {}, sessionId);
    const heard = new Promise((resolve) =>
      local.on('Runtime.consoleAPICalled', record, (_params, session) => resolve(session)),
    );
    await local.send('Runtime.evaluate', { expression: 'console.log(1)' }, sessionId);
    expect(await heard).toBe(sessionId);
    await expect(local.send('Nope.nope' as 'Browser.getVersion')).rejects.toThrow(
      "Nope.nope: 'Nope.nope' wasn't found",
    );
    local.close();
    await expect(local.send('Browser.getVersion')).rejects.toThrow('The connection was closed.');
  });
});

describe('leaving', () => {
  test('Browser.close ends the connection that sent it and nothing else', async () => {
    const [leaver, stayer] = [await client(), await client()];
    const { sessionId } = await leaver.page();
    expect(await leaver.ask('Browser.close', {}, sessionId)).toEqual({ id: expect.any(Number), result: {}, sessionId });
    expect(await leaver.closed).toEqual({ code: 1000, reason: 'Browser.close' });
    expect(await stayer.result('Browser.getVersion')).toHaveProperty('product');
  });

  test('a page that a disconnected client was intercepting loads', async () => {
    const [owner, interceptor] = [await client(), await client()];
    const { targetId, sessionId } = await owner.page();
    const { sessionId: theirs } = await interceptor.attachTo(targetId);
    await interceptor.result('Fetch.enable', { patterns: [{ urlPattern: '*' }] }, theirs);
    const loaded = owner.evaluate(`fetch('${siteUrl}/x', { mode: 'no-cors' }).then(() => 'loaded')`, sessionId);
    await interceptor.event('Fetch.requestPaused');
    interceptor.socket.terminate();
    expect(await loaded).toBe('loaded');
  });

  test('emulation and a debugger pause of a disconnected client are undone', async () => {
    const [owner, other] = [await client(), await client()];
    const { targetId, sessionId } = await owner.page();
    const { sessionId: theirs } = await other.attachTo(targetId);
    await other.result('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Tokyo' }, theirs);
    const zone = 'Intl.DateTimeFormat().resolvedOptions().timeZone';
    expect(await owner.evaluate(zone, sessionId)).toBe('Asia/Tokyo');
    await other.result('Debugger.enable', {}, theirs);
    const paused = owner.evaluate('debugger; "went on"', sessionId);
    await other.event('Debugger.paused');
    other.socket.terminate();
    expect(await paused).toBe('went on');
    await expect.poll(() => owner.evaluate(zone, sessionId)).not.toBe('Asia/Tokyo');
  });

  test('targets that a disconnected client held at their start run, and its auto-attach ends', async () => {
    const [owner, holder] = [await client(), await client()];
    await holder.result('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
    const { sessionId } = await owner.page(`${siteUrl}/held`);
    await holder.event('Target.attachedToTarget');
    await holder.close();
    await expect.poll(() => owner.evaluate('document.title', sessionId)).toBe('/held');
    const { sessionId: later } = await owner.page(`${siteUrl}/later`);
    await expect.poll(() => owner.evaluate('document.title', later)).toBe('/later');
  });

  test('browser contexts outlive their client unless disposeOnDetach is set', async () => {
    const [owner, maker] = [await client(), await client()];
    const create = (disposeOnDetach: boolean) =>
      maker.result<{ browserContextId: string }>('Target.createBrowserContext', { disposeOnDetach });
    const [stays, goes] = [await create(false), await create(true)];
    await maker.close();
    const contexts = async () =>
      (await owner.result<{ browserContextIds: string[] }>('Target.getBrowserContexts')).browserContextIds;
    await expect.poll(contexts).not.toContain(goes.browserContextId);
    expect(await contexts()).toContain(stays.browserContextId);
    await owner.result('Target.disposeBrowserContext', stays);
  });

  test('a connection leaves no client behind, even when cut in the middle of a frame', async () => {
    const before = server.mux.clientCount;
    const { hostname, port } = new URL(server.endpoint);
    const socket = connect(Number(port), hostname);
    const key = Buffer.alloc(16).toString('base64');
    socket.write(
      `GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
    );
    await once(socket, 'data');
    socket.write(Buffer.from([0x81, 0xfe, 0x40, 0x00, 1, 2, 3, 4, 5]));
    await expect.poll(() => server.mux.clientCount).toBe(before + 1);
    socket.destroy();
    await expect.poll(() => server.mux.clientCount).toBe(before);
  });
});

describe('messages of clients', () => {
  test.each([
    ['garbage', -32700],
    ['[]', -32600],
    ['{"method":"Browser.getVersion"}', -32600],
    ['{"id":1,"method":"Browser.getVersion","params":{"a" "b"}}', -32700],
    ['{"id":1,"method":"Browser.getVersion","sessionId":"00000000000000000000000000000000"}', -32001],
    ['{"id":1,"method":"Browser.crash"}', -32000],
    ['{"id":1,"method":"Browser\\u002ecrash"}', -32000],
    ['{"id":1,"method":"Browser.crashGpuProcess"}', -32000],
    ['{"id":1,"method":"Target.exposeDevToolsProtocol","params":{"targetId":"x"}}', -32000],
    ['{"id":1,"method":"Target.sendMessageToTarget","params":{"message":"{}"}}', -32000],
    ['{"id":1,"method":"Target.setRemoteLocations","params":{"locations":[{"host":"127.0.0.1","port":1}]}}', -32000],
  ])('%s is answered with an error and harms no other client', async (message, code) => {
    const raw = await client();
    expect(await raw.next(message)).toMatchObject({ error: { code } });
    expect(await raw.result('Browser.getVersion')).toHaveProperty('product');
  });

  test('a message larger than Chromium takes is refused and the browser lives', async () => {
    const raw = await client();
    const { sessionId } = await raw.page();
    const expression = 'x'.repeat(100 * MIB);
    expect(await raw.ask('Runtime.evaluate', { expression }, sessionId)).toMatchObject({
      error: { code: -32600, message: expect.stringContaining('exceeds') },
    });
    expect(await raw.evaluate('1 + 1', sessionId)).toBe(2);
  });

  test('a message just small enough for Chromium arrives', async () => {
    const raw = await client();
    const { sessionId } = await raw.page();
    const frame = (padding: number) =>
      JSON.stringify({
        id: 1e6,
        method: 'Runtime.evaluate',
        params: { expression: `2+2//${'x'.repeat(padding)}` },
        sessionId,
      });
    const padding = 100 * MIB - 1024 - frame(0).length;
    expect(await raw.next(frame(padding))).toMatchObject({ id: 1e6, result: { result: { value: 4 } } });
  });

  test('a message of 300 MB ends the connection that sent it', async () => {
    const [sender, other] = [await client(), await client()];
    sender.socket.send(Buffer.alloc(300_000_000, 0x20));
    expect((await sender.closed).code).toBe(1009);
    expect(await other.result('Browser.getVersion')).toHaveProperty('product');
  });

  test('a flood is answered in full, and others are served meanwhile', async () => {
    const [flooder, other] = [await client(), await client()];
    const { sessionId } = await flooder.page();
    const flood = Promise.all(
      Array.from({ length: 4000 }, (_, i) => flooder.evaluate(`"${'x'.repeat(10_000)}", ${i}`, sessionId)),
    );
    expect(await other.result('Browser.getVersion')).toHaveProperty('product');
    expect(await flood).toEqual(Array.from({ length: 4000 }, (_, i) => i));
  });

  test('commands without an answer may not pile up for ever', async () => {
    const raw = await client();
    const { sessionId } = await raw.page();
    const never = { expression: 'new Promise(() => {})', awaitPromise: true };
    for (let i = 0; i < 5000; i++) void raw.ask('Runtime.evaluate', never, sessionId);
    expect(await raw.ask('Browser.getVersion')).toMatchObject({ error: { code: -32000 } });
  });
});

describe('clients that do not read', () => {
  test('an answer of 200 MB passes, and small ones behind it', async () => {
    const raw = await client();
    const { sessionId } = await raw.page();
    const [large, small] = await Promise.all([
      raw.evaluate(`"x".repeat(200_000_000)`, sessionId),
      raw.evaluate('1 + 1', sessionId),
    ]);
    expect(String(large).length).toBe(200_000_000);
    expect(small).toBe(2);
  });

  test('a client that does not read is dropped, and the others do not notice', async () => {
    const [sleeper, other] = [await client(), await client()];
    const { targetId, sessionId } = await other.page();
    const { sessionId: theirs } = await sleeper.attachTo(targetId);
    await sleeper.result('Runtime.enable', {}, theirs);
    const before = server.mux.clientCount;
    sleeper.socket.pause();
    while (server.mux.clientCount === before) {
      await other.evaluate(`for (let i = 0; i < 200; i++) console.log('x'.repeat(100_000)); 'said'`, sessionId);
    }
    sleeper.socket.resume();
    expect(await other.evaluate('1 + 1', sessionId)).toBe(2);
    expect([1006, 1008]).toContain((await sleeper.closed).code);
  });
});

test('when the browser dies, every client receives the reason', async () => {
  const mortal = await muxServer({ whenGone: () => ({ code: 1011, reason: 'The browser crashed.' }) });
  const raw = await RawClient.open(mortal.endpoint);
  const local = mortal.mux.attachLocal();
  await raw.result('Browser.getVersion');
  mortal.chromium.process.kill('SIGKILL');
  expect(await raw.closed).toEqual({ code: 1011, reason: 'The browser crashed.' });
  expect(await local.closed).toBe('The browser crashed.');
  const late = await RawClient.open(mortal.endpoint);
  expect((await late.closed).code).toBe(1011);
  await mortal.stop();
});
