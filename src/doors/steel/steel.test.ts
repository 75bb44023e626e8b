import { afterEach, describe, expect, test, vi } from 'vitest';
import { validatorCompiler } from '../../api/validation.ts';
import { eventBus } from '../../events.ts';
import { silent } from '../../lib/log.ts';
import type { Session } from '../../sessions/schema.ts';
import { asSteel } from './answer.ts';
import { wishOfSteel } from './connect-schema.ts';
import { originsOf } from './context.ts';
import { sessionCreating } from './new-session.ts';
import { planOf, refuseOfAction } from './options.ts';
import { CreateBody } from './schema.ts';

const id = '0d9f6f9c-5ca5-4a4f-b1e9-02c1d0d2f5aa';
const validate = validatorCompiler()({ schema: CreateBody, httpPart: 'body', method: 'POST', url: '/v1/sessions' });

/** As the route reads it. */
function plan(body: CreateBody) {
  const { error } = validate(body) as { error?: Error };
  if (error) throw error;
  return planOf(body);
}

describe('the options of a session', () => {
  test('become those of POST /browsers', () => {
    expect(plan({})).toEqual({ request: { timeout_seconds: 300 }, timeoutMs: 300_000, allExtensions: false });
    expect(
      plan({
        sessionId: id,
        dimensions: { width: 1280, height: 720 },
        headless: true,
        timeout: 60_500,
        stealthConfig: {},
        extensionIds: ['one', 'two'],
        profileId: 'work',
        persistProfile: true,
        sessionContext: { cookies: [] },
      }),
    ).toEqual({
      request: {
        name: id,
        viewport: { width: 1280, height: 720 },
        headless: true,
        stealth: true,
        extensions: [{ id: 'one' }, { id: 'two' }],
        timeout_seconds: 61,
      },
      timeoutMs: 61_000,
      allExtensions: false,
      profile: { idOrName: 'work', save: true },
      context: { cookies: [] },
    });
    expect(plan({ persistProfile: true }).profile).toEqual({ save: true });
    expect(plan({ profileId: 'work' }).profile).toEqual({ idOrName: 'work', save: false });
    expect(plan({ stealthConfig: { skipFingerprintInjection: true } }).request.stealth).toBe(false);
    expect(plan({ extensionIds: ['all_ext'] })).toMatchObject({ allExtensions: true, request: {} });
  });

  test('that ask for nothing are taken', () => {
    const nothing = {
      blockAds: false,
      concurrency: 1,
      debugConfig: { interactive: true, systemCursor: true },
      deviceConfig: { device: 'desktop' },
      experimentalFeatures: [],
      isSelenium: false,
      namespace: 'default',
      optimizeBandwidth: { blockImages: false, blockHosts: [] },
      sessionContext: { indexedDB: {} },
      solveCaptcha: false,
      stealthConfig: { humanizeInteractions: false, autoCaptchaSolving: false },
      useProxy: false,
    } as const;
    expect(plan(nothing as unknown as CreateBody).proxy).toBeUndefined();
  });

  test.each([
    [{ blockAds: true }, 'blockAds is not available in this version. Upload a blocker'],
    [{ concurrency: 2 }, 'concurrency is not available'],
    [{ credentials: {} }, 'credentials is not available'],
    [{ debugConfig: { interactive: false } }, 'debugConfig.interactive is not available'],
    [{ debugConfig: { systemCursor: false } }, 'debugConfig.systemCursor is not available'],
    [{ deviceConfig: { device: 'mobile' } }, 'deviceConfig.device is not available'],
    [{ experimentalFeatures: ['x'] }, 'experimentalFeatures is not available'],
    [{ isSelenium: true }, 'docs/from-selenium.md'],
    [{ namespace: 'other' }, 'X-Kernel-Project'],
    [{ optimizeBandwidth: true }, 'optimizeBandwidth is not available'],
    [{ optimizeBandwidth: { blockHosts: ['a'] } }, 'optimizeBandwidth is not available'],
    [{ region: 'lax' }, 'region is not available'],
    [{ sessionContext: { indexedDB: { a: [{}] } } }, 'sessionContext.indexedDB is not available'],
    [{ solveCaptcha: true }, 'solveCaptcha is not available'],
    [{ stealthConfig: { humanizeInteractions: true } }, 'stealthConfig.humanizeInteractions is not available'],
    [{ stealthConfig: { autoCaptchaSolving: true } }, 'stealthConfig.autoCaptchaSolving is not available'],
    [{ userAgent: 'me' }, 'userAgent is not available'],
    [{ sessionId: 'mine' }, 'sessionId has characters it may not have'],
    [{ timeout: 1000 }, 'timeout must be at least 10000'],
    [{ surprise: 1 }, 'surprise is not a field here'],
    [{ stealthConfig: { surprise: 1 } }, 'stealthConfig.surprise is not a field here'],
  ])('%j is refused by name', (body, message) => expect(() => plan(body as CreateBody)).toThrow(message));

  test.each([
    [{ url: 'x', region: 'lax' }, 'region'],
    [{ url: 'x', useProxy: true }, 'useProxy'],
    [{ url: 'x', format: ['html' as const, 'markdown' as const] }, 'format markdown'],
  ])('of one page: %j is refused by name', (body, field) =>
    expect(() => refuseOfAction(body)).toThrow(`${field} is not available`),
  );
});

describe('a proxy', () => {
  const proxy = (body: CreateBody) => plan(body).proxy;

  test('is read off its address', () => {
    const config = { host: 'proxy.example', port: 8080, username: 'me', password: 'p@ssword' };
    expect(proxy({ proxyUrl: 'http://me:p%40ssword@proxy.example:8080' })).toEqual({
      type: 'custom',
      protocol: 'http',
      config,
    });
    expect(proxy({ proxyUrl: 'socks5://[::1]' })).toMatchObject({
      protocol: 'socks5',
      config: { host: '::1', port: 1080 },
    });
    expect(proxy({ useProxy: { server: 'https://proxy.example' } })).toMatchObject({
      protocol: 'https',
      config: { port: 443 },
    });
  });

  test('of the service itself is residential', () => {
    expect(proxy({ useProxy: true })).toEqual({ type: 'residential', config: {} });
    expect(proxy({ useProxy: { geolocation: { country: 'US', state: 'NY', city: 'NEW_YORK' } } })).toMatchObject({
      type: 'residential',
      config: { country: 'US', state: 'NY', city: 'newyork' },
    });
  });

  test.each([
    [{ proxyUrl: 'secret' }, 'proxyUrl must be an address'],
    [{ proxyUrl: 'ftp://me:secret@host' }, 'proxyUrl must be an address'],
    [{ proxyUrl: 'http://me:abc@host' }, 'proxyUrl: password must have at least 5 characters'],
    [{ useProxy: 'yes' }, 'useProxy must be true, false, or an object'],
    [{ useProxy: { server: 5 } }, 'useProxy.server must be an address'],
    [{ useProxy: { geolocation: {} } }, 'useProxy.geolocation.country is missing'],
    [{ useProxy: { geolocation: { country: 'USA' } } }, 'useProxy.geolocation: country'],
    [{ useProxy: { geolocation: { country: 'US', zip: '1' } } }, 'country, state and city, and nothing else'],
  ])('%j is refused, without its password', (body, message) => {
    let refusal = '';
    try {
      proxy(body);
    } catch (error) {
      refusal = (error as Error).message;
    }
    expect(refusal).toContain(message);
    expect(refusal).not.toContain('secret');
  });
});

describe('the address of a client', () => {
  const wish = (query: string) => wishOfSteel(new URLSearchParams(query));

  test('names a session, or the id of the new session', () => {
    const made = { kind: 'new', keepAlive: false };
    expect(wish('')).toEqual({ ...made, request: {} });
    expect(wish('sessionId=')).toEqual({ ...made, request: {} });
    expect(wish('sessionId=abc')).toEqual({ kind: 'session', session: 'abc' });
    expect(wish(`sessionId=${id}`)).toEqual({
      kind: 'session',
      session: id,
      otherwise: { ...made, request: { name: id } },
    });
  });

  test('takes no other option', () => {
    expect(() => wish('proxyUrl=http://me:secret@host')).toThrow('proxyUrl is not available');
  });
});

describe('an answer', () => {
  const session: Session = {
    session_id: 'abc',
    created_at: '2026-01-01T00:00:00.000Z',
    cdp_ws_url: 'ws://host/browser/cdp?jwt=1',
    webdriver_ws_url: '',
    headless: true,
    stealth: false,
    timeout_seconds: 60,
    viewport: { width: 1, height: 2 },
    state: 'standby',
  };
  const now = Date.parse('2026-01-01T00:00:05.000Z');

  test('has the id that the client chose, and the time that the session took', () => {
    expect(asSteel(session, now)).toMatchObject({
      id: 'abc',
      status: 'live',
      duration: 5000,
      timeout: 60_000,
      dimensions: { width: 1, height: 2 },
      websocketUrl: session.cdp_ws_url,
      proxySource: null,
    });
    const deleted_at = '2026-01-01T00:00:02.000Z';
    expect(asSteel({ ...session, name: id, state: 'stopped', deleted_at }, now)).toMatchObject({
      id,
      status: 'released',
      duration: 2000,
    });
    expect(asSteel({ ...session, name: 'mine', state: 'failed', deleted_at }, now)).toMatchObject({
      id: 'abc',
      status: 'failed',
    });
  });
});

test('storage is bound to an origin; a domain without a scheme means https', () => {
  const read = originsOf({
    localStorage: { 'example.com': { a: '1' }, 'http://127.0.0.1:80': { b: '2' } },
    sessionStorage: { 'https://example.com': { c: '3' } },
  });
  expect([...read]).toEqual([
    ['https://example.com', { local: { a: '1' }, session: { c: '3' } }],
    ['http://127.0.0.1', { local: { b: '2' }, session: {} }],
  ]);
  expect(() => originsOf({ localStorage: { 'file:///etc': {} }, sessionStorage: {} })).toThrow(
    'sessionContext.localStorage: each key is a domain',
  );
  const long = { [`${'字'.repeat(300)}.example`]: {} };
  expect(() => originsOf({ localStorage: {}, sessionStorage: long })).toThrow('of at most 267 letters');
});

describe('the timeout of a session', () => {
  afterEach(() => void vi.useRealTimers());

  const make = async () => {
    vi.useFakeTimers();
    const events = eventBus();
    const stop = vi.fn<(id: string, reason: string, detail?: string) => Promise<void>>(async () => {});
    const unasked = () => Promise.reject(new Error('This was not to be asked.'));
    const session = { session_id: 'abc', created_at: new Date().toISOString(), timeout_seconds: 10 } as Session;
    const create = sessionCreating({
      sessions: { create: async () => session, hold: unasked, stop },
      profiles: { create: unasked, get: unasked, remove: unasked },
      extensions: { list: unasked },
      proxies: { create: unasked, remove: unasked },
      events,
      log: silent,
    });
    const { signal } = new AbortController();
    await create({ projectId: 'p', keyId: 'k', hungUp: signal }, { timeout: 10_000 });
    return { events, stop };
  };

  test('ends it, used or not', async () => {
    const { stop } = await make();
    vi.advanceTimersByTime(9_999);
    expect(stop).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(stop).toHaveBeenCalledExactlyOnceWith('abc', 'deleted', 'Its timeout of 10000 ms was over.');
  });

  test('is over when the session is', async () => {
    const { events, stop } = await make();
    events.publish('session.ended', { sessionId: 'abc', projectId: 'p', poolId: null, reason: 'deleted' });
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(20_000);
    expect(stop).not.toHaveBeenCalled();
  });
});
