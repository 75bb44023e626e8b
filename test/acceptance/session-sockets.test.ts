import type Kernel from '@onkernel/sdk';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { chromium } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { openKeys } from '../../src/store/secrets.ts';
import { tokens } from '../../src/lib/tokens.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { RawClient } from '../support/mux-server.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';
import { frame, hears } from '../support/frames.ts';
import { upgrade } from '../support/upgrade.ts';

const MIB = 1024 * 1024;

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages();
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_MAX_SESSIONS: '8' };
  service = await startService(settings, { timings: { standbyMs: 1000 } });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

// The invariant of this file, through every exit: when its sessions are over, nothing of them is left.
afterEach(() => expectNothingLeft(service));

const create = (wishes: Kernel.BrowserCreateParams = {}) => sdk.browsers.create({ headless: true, ...wishes });

describe('a CDP client', () => {
  test('that sends garbage gets an error for each message, and stays connected', async () => {
    const session = await create();
    const client = await RawClient.open(session.cdp_ws_url);
    for (const garbage of [
      '',
      'nonsense',
      '[]',
      '{}',
      '{"id":1}',
      '{"id":"x","method":"y"}',
      '\0',
      '{"id":1,"method":',
    ]) {
      expect(await client.next(garbage)).toMatchObject({
        error: { code: expect.any(Number), message: expect.any(String) },
      });
    }
    expect(await client.next(Buffer.from([0xff, 0xfe, 0x00, 0x80]))).toHaveProperty('error');
    expect(await client.next('{"id":7,"method":"No.such"}')).toMatchObject({ id: 7, error: { code: -32601 } });
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');
    await client.close();
  });

  test.each([
    ['an opcode that does not exist', Buffer.from([0x83, 0x80, 0, 0, 0, 0])],
    ['a frame without a mask', Buffer.from([0x81, 0x05, 0x68, 0x65, 0x6c, 0x6c, 0x6f])],
    ['a reserved bit', Buffer.from([0xc1, 0x80, 0, 0, 0, 0])],
    ['a continuation of nothing', Buffer.from([0x80, 0x80, 0, 0, 0, 0])],
    ['a ping in two parts', Buffer.from([0x09, 0x80, 0, 0, 0, 0])],
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
  ])('that sends %s is closed with 1002', async (_what, bytes) => {
    const session = await create();
    const { socket } = await upgrade(session.cdp_ws_url);
    const over = new Promise((resolve) => socket!.once('close', resolve)); // by a reset as well
    socket!.write(bytes);
    expect(await hears(socket!).close()).toEqual({ code: 1002, reason: expect.stringMatching(/\w/) });
    socket!.end();
    await over;
    await expect.poll(() => service.app.sessions.counts().clients).toBe(0);
  });

  test('that hangs up after half a frame leaves nothing of it', async () => {
    const session = await create();
    for (const end of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const { socket } = await upgrade(session.cdp_ws_url);
      socket!.write(frame('{"id":1,"method":"Browser.getVersion"}', { claims: 200 * MIB }));
      await expect.poll(() => service.app.sessions.counts().clients).toBe(1);
      socket![end]();
      await expect.poll(() => service.app.sessions.counts().clients).toBe(0);
    }
    const next = await RawClient.open(session.cdp_ws_url);
    expect(await next.result('Browser.getVersion')).toHaveProperty('product');
    await next.close();
  });

  test('that sends a message of 300 MB is closed with 1009, and others do not notice', async () => {
    const session = await create();
    const other = await RawClient.open(session.cdp_ws_url);
    const whole = await RawClient.open(session.cdp_ws_url);
    whole.socket.send(Buffer.alloc(300 * MIB, 0x20));
    expect(await whole.closed).toEqual({
      code: 1009,
      reason: expect.stringContaining(`A message may have ${256 * MIB} bytes.`),
    });

    // The same in parts, each of which would be fine.
    const { socket } = await upgrade(session.cdp_ws_url);
    socket!.write(frame('{', { final: false }));
    socket!.write(frame('', { opcode: 0, final: false, claims: 256 * MIB }));
    expect(await hears(socket!).close()).toMatchObject({ code: 1009 });
    socket!.destroy();
    expect(await other.result('Browser.getVersion')).toHaveProperty('product');
    await other.close();
  });

  test('that floods and does not read is dropped with 1008, and others do not notice', async () => {
    const session = await create();
    const other = await RawClient.open(session.cdp_ws_url);
    const flooding = await RawClient.open(session.cdp_ws_url);
    const { sessionId } = await flooding.page();
    flooding.socket.pause();
    // The kernel's buffers fill, then the service's; at the bound the client is dropped.
    const params = { expression: '"x".repeat(100_000)', returnByValue: true };
    const { engine, release } = await service.app.sessions.hold(session.session_id);
    const before = engine.mux.clientCount;
    const dropped = vi.waitUntil(() => engine.mux.clientCount < before, { timeout: 110_000, interval: 1 });
    for (let id = 1; engine.mux.clientCount >= before; id++) {
      flooding.socket.send(JSON.stringify({ id, method: 'Runtime.evaluate', params, sessionId }));
      if (id % 50 === 0) await Promise.race([other.result('Browser.getVersion'), dropped]);
    }
    release();
    // It has five seconds to read all that waits before the reason, or the connection is cut: it begins at once, and only reads.
    flooding.socket.removeAllListeners('message');
    flooding.socket.resume();
    expect(await flooding.closed).toEqual({
      code: 1008,
      reason: expect.stringContaining('Dropped: this connection does not read the messages of the browser.'),
    });
    expect(await other.result('Browser.getVersion')).toHaveProperty('product');
    await other.close();
  });

  test('that is killed leaves the page it opened and nothing else', async () => {
    const session = await create();
    const script = `
      const { chromium } = await import('playwright-core');
      const browser = await chromium.connectOverCDP(process.argv[1]);
      await browser.contexts()[0].pages()[0].goto(process.argv[2]);
      console.log('connected');
      await new Promise(() => setInterval(() => {}, 1000));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, session.cdp_ws_url, pages.url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    expect(service.app.sessions.counts().clients).toBe(1);
    child.kill('SIGKILL');
    await expect.poll(() => service.app.sessions.counts().clients).toBe(0);
    const next = await chromium.connectOverCDP(session.cdp_ws_url);
    expect(
      next
        .contexts()[0]!
        .pages()
        .map((page) => page.url()),
    ).toEqual([pages.url]);
    await next.close();
  });
});

describe('a token', () => {
  let session: Kernel.BrowserCreateResponse;
  let foreign: Kernel.BrowserCreateResponse;
  let deleted: Kernel.BrowserCreateResponse;
  const jwt = (url: string) => new URL(url).searchParams.get('jwt')!;
  const base = (of: { base_url?: string }) => of.base_url!.split('/').at(-1)!;
  /** In the name of the key and the project of a token that the service made, unless others are given. */
  const signed = async (claims: { sub: string; aud: string; exp: number; key?: string }) => {
    const { key, project } = JSON.parse(Buffer.from(jwt(session.cdp_ws_url).split('.')[1]!, 'base64url').toString());
    const keys = await openKeys(service.dataDir, '');
    return tokens(() => keys.ring()).sign({ key, project, ...claims });
  };
  const now = () => Math.floor(Date.now() / 1000);

  const sessions = async () => {
    [session, foreign, deleted] = await Promise.all([create(), create(), create()]);
    await sdk.browsers.deleteByID(deleted.session_id);
  };

  test('opens one session for one purpose, until it ends', async () => {
    await sessions();
    const good = jwt(session.cdp_ws_url);
    const bent = `${good.slice(0, -4)}${good.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
    const [head, , seal] = good.split('.');
    const other = Buffer.from(JSON.stringify({ sub: foreign.session_id, aud: 'cdp', exp: now() + 60 })).toString(
      'base64url',
    );
    const unsigned = Buffer.from(JSON.stringify({ alg: 'none', typ: 'JWT' })).toString('base64url');

    const table: [what: string, token: string | undefined, status: number, code: string, words: RegExp][] = [
      ['none', undefined, 401, 'unauthorized', /has no token/],
      ['an empty one', '', 401, 'unauthorized', /has no token/],
      ['nonsense', 'nonsense', 401, 'unauthorized', /not one of ours/],
      ['a bent one', bent, 401, 'unauthorized', /not one of ours/],
      ['another session’s claims under its seal', `${head}.${other}.${seal}`, 401, 'unauthorized', /not one of ours/],
      ['one without a signature', `${unsigned}.${other}.`, 401, 'unauthorized', /not one of ours/],
      ['the API key', service.key, 401, 'unauthorized', /not one of ours/],
      [
        'one of a key that never was',
        await signed({ sub: session.session_id, aud: 'cdp', exp: now() + 60, key: 'key_never' }),
        401,
        'unauthorized',
        /revoked or has expired/,
      ],
      [
        'an expired one',
        await signed({ sub: session.session_id, aud: 'cdp', exp: now() - 1 }),
        401,
        'unauthorized',
        /expired.*GET \/browsers/,
      ],
      ['the live view’s', jwt(session.browser_live_view_url!), 403, 'forbidden', /for live, not for cdp/],
      ['WebDriver’s', jwt(session.webdriver_ws_url), 403, 'forbidden', /for webdriver, not for cdp/],
      ['the base address’s', base(session), 403, 'forbidden', /for base, not for cdp/],
      ['one of a deleted session', jwt(deleted.cdp_ws_url), 404, 'session_not_found', new RegExp(deleted.session_id)],
      [
        'one of a session that never was',
        await signed({ sub: 'never', aud: 'cdp', exp: now() + 60 }),
        404,
        'session_not_found',
        /never/,
      ],
    ];
    for (const [what, token, status, code, words] of table) {
      const query = token === undefined ? '' : `?jwt=${token}`;
      const answer = await upgrade(`${service.url}/browser/cdp${query}`);
      expect(answer, what).toMatchObject({ status, body: { code, message: expect.stringMatching(words) } });
    }
    expect(service.app.sessions.counts().clients).toBe(0);

    for (const [token, status, words] of [
      [jwt(session.cdp_ws_url), 403, /for cdp, not for base/],
      [jwt(session.browser_live_view_url!), 403, /for live, not for base/],
      [bent, 401, /not one of ours/],
      [await signed({ sub: session.session_id, aud: 'base', exp: now() - 1 }), 401, /expired/],
      [base(deleted), 404, /No active session/],
    ] as const) {
      for (const path of ['json/version', 'json/list', 'json']) {
        const answer = await service.call('GET', `/browser/kernel/${token}/${path}`, undefined, { authorization: '' });
        expect(answer).toMatchObject({ status, body: { message: expect.stringMatching(words) } });
      }
    }

    // Each leads to its own session and to no other.
    const clients = await Promise.all([session, foreign].map(({ cdp_ws_url }) => RawClient.open(cdp_ws_url)));
    const { targetId } = await clients[0]!.page(`${pages.url}mine`);
    const { targetInfos } = await clients[1]!.result<{ targetInfos: { targetId: string; url: string }[] }>(
      'Target.getTargets',
    );
    expect(targetInfos.filter((info) => info.targetId === targetId || info.url.includes('mine'))).toEqual([]);
    await Promise.all(clients.map((client) => client.close()));
  });

  test('expires with its session: the websocket is closed with the reason, and a later one is refused', async () => {
    await sessions();
    const client = await RawClient.open(session.cdp_ws_url);
    await sdk.browsers.deleteByID(session.session_id);
    expect(await client.closed).toEqual({ code: 1001, reason: 'The session was deleted.' });
    expect(await upgrade(session.cdp_ws_url)).toMatchObject({ status: 404, body: { code: 'session_not_found' } });
    await expect(chromium.connectOverCDP(session.cdp_ws_url)).rejects.toThrow(/404/);
    await expect(chromium.connectOverCDP(session.base_url!)).rejects.toThrow(/404/);
  });
});

describe('a websocket', () => {
  test.each(['/nowhere', '/browser', '/browser/cdpx', '/browsers', '//', '//x:y', '/%', '/browser/%63dp'])(
    'to %s is refused with 404',
    async (path) => {
      const answer = await rawUpgrade(path);
      expect(answer).toMatch(/^HTTP\/1\.1 404 /);
      expect(answer).toMatch(/"code":"not_found"/);
    },
  );

  test('that is not one (no key, another version, another protocol) is refused and holds nothing', async () => {
    const session = await create();
    for (const wrong of [{ 'sec-websocket-key': undefined }, { 'sec-websocket-key': 'short' }]) {
      expect(await upgrade(session.cdp_ws_url, wrong)).toMatchObject({ status: 400, body: { code: 'bad_request' } });
    }
    const older = await upgrade(session.cdp_ws_url, { 'sec-websocket-version': '8' });
    expect(older).toMatchObject({ status: 426, body: { code: 'websocket_version' } });
    // Asks for no websocket at all: answered as the GET that it is, at an address that is for websockets only.
    const other = await upgrade(session.cdp_ws_url, { upgrade: 'h2c' });
    expect(other).toMatchObject({ status: 404, body: { code: 'not_found' } });
    // No client is connected, so the session goes into standby; a hold that was not released would keep it awake.
    await expect.poll(() => service.app.sessions.counts().standby, { timeout: 60_000 }).toBe(1);
  });

  test('that goes away while the browser wakes up holds nothing', async () => {
    const session = await create();
    await expect.poll(() => service.app.sessions.counts().standby, { timeout: 60_000 }).toBe(1);
    const socket = httpRequest(session.cdp_ws_url.replace(/^ws/, 'http'), {
      agent: false, // on a connection of its own
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      },
    });
    socket.on('error', () => {});
    socket.flushHeaders();
    const [connection] = (await once(socket, 'socket')) as [Socket];
    await once(connection, 'connect');
    socket.destroy();
    await expect
      .poll(() => service.app.sessions.counts(), { timeout: 60_000 })
      .toMatchObject({ standby: 1, clients: 0 });
  });

  test('whose peer is lost without a close is detected by the kernel', async () => {
    const session = await create();
    const client = await RawClient.open(session.cdp_ws_url);
    const port = Number(new URL(service.url).port).toString(16).toUpperCase().padStart(4, '0');
    const timers = () =>
      readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local, , state]) => local?.endsWith(`:${port}`) && state === '01')
        .map((fields) => fields[5]!.slice(0, 2));
    await expect.poll(timers).toContain('02'); // a keepalive timer runs, when nothing waits to be acknowledged
    await client.close();
  });
});

/** For paths that a client library would not send as they are. */
async function rawUpgrade(path: string): Promise<string> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n`);
  socket.write('Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n');
  socket.write('Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n');
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}
