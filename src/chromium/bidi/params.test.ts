import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { BidiParser } from 'chromium-bidi/out/Default/gen/src/bidiTab/BidiParser.js';
import { expect, test } from 'vitest';
import { replaceOddIds, withFewHeaders } from './bounds.ts';
import { parseParams } from './params.ts';
import { Misfit } from './schema.ts';

const context = 'C';
const target = { context };
const call = (...values: unknown[]) => ({
  functionDeclaration: '() => 1',
  awaitPromise: false,
  target,
  arguments: values,
});
const keys = (...actions: unknown[]) => ({ context, actions: [{ type: 'key', id: 'k', actions }] });
const pointer = (...actions: unknown[]) => ({ context, actions: [{ type: 'pointer', id: 'p', actions }] });
const wheel = (...actions: unknown[]) => ({ context, actions: [{ type: 'wheel', id: 'w', actions }] });
const text = { type: 'string', value: 'a' };
const cookie = { name: 'a', value: text, domain: 'example.com' };

/** Params of each kind of member, with the library's own parser for them. */
const samples: [method: string, parser: keyof BidiParser, params: Record<string, unknown>][] = [
  [
    'browser.createUserContext',
    'parseCreateUserContextParameters',
    { 'goog:proxyServer': 'x', acceptInsecureCerts: true },
  ],
  ['browser.createUserContext', 'parseCreateUserContextParameters', { proxy: { proxyType: 'direct', more: 1 } }],
  ['browser.createUserContext', 'parseCreateUserContextParameters', { unhandledPromptBehavior: { alert: 'accept' } }],
  ['browser.setClientWindowState', 'parseSetClientWindowStateParameters', { clientWindow: 'w', state: 'normal', x: 1 }],
  ['browser.setClientWindowState', 'parseSetClientWindowStateParameters', { clientWindow: 'w', state: 'maximized' }],
  ['browser.setDownloadBehavior', 'parseSetDownloadBehaviorParameters', { downloadBehavior: { type: 'denied' } }],
  ['browser.setDownloadBehavior', 'parseSetDownloadBehaviorParameters', { downloadBehavior: null }],
  [
    'browsingContext.captureScreenshot',
    'parseCaptureScreenshotParams',
    { context, clip: { type: 'box', x: 0, y: 0, width: 1, height: 1 } },
  ],
  [
    'browsingContext.captureScreenshot',
    'parseCaptureScreenshotParams',
    { context, clip: { type: 'element', element: { sharedId: 's', more: 1 } } },
  ],
  [
    'browsingContext.locateNodes',
    'parseLocateNodesParams',
    { context, locator: { type: 'css', value: 'a' }, startNodes: [{ sharedId: 's' }] },
  ],
  [
    'browsingContext.locateNodes',
    'parseLocateNodesParams',
    { context, locator: { type: 'innerText', value: 'a', ignoreCase: true, maxDepth: 1 } },
  ],
  [
    'browsingContext.locateNodes',
    'parseLocateNodesParams',
    { context, locator: { type: 'accessibility', value: { role: 'button' } } },
  ],
  ['browsingContext.print', 'parsePrintParams', { context, scale: 2, pageRanges: [1, '2-3'], margin: { top: 1 } }],
  ['browsingContext.setViewport', 'parseSetViewportParams', { context, viewport: null, devicePixelRatio: 2, more: 1 }],
  [
    'emulation.setGeolocationOverride',
    'parseSetGeolocationOverrideParams',
    { coordinates: { latitude: 1, longitude: 2, altitude: null }, contexts: [context] },
  ],
  [
    'emulation.setGeolocationOverride',
    'parseSetGeolocationOverrideParams',
    { error: { type: 'positionUnavailable' }, contexts: [context] },
  ],
  [
    'emulation.setNetworkConditions',
    'parseSetNetworkConditionsParams',
    { networkConditions: { type: 'offline' }, contexts: [context] },
  ],
  [
    'emulation.setScreenOrientationOverride',
    'parseSetScreenOrientationOverrideParams',
    { screenOrientation: { natural: 'portrait', type: 'landscape-primary' }, contexts: [context] },
  ],
  [
    'userAgentClientHints.setClientHintsOverride',
    'parseSetClientHintsOverrideParams',
    { clientHints: { brands: [{ brand: 'a', version: '1' }] }, contexts: [context] },
  ],
  [
    'input.performActions',
    'parsePerformActionsParams',
    keys({ type: 'keyDown', value: 'a' }, { type: 'pause', duration: 1 }),
  ],
  [
    'input.performActions',
    'parsePerformActionsParams',
    pointer(
      { type: 'pointerMove', x: 1.5, y: 1, origin: { type: 'element', element: { sharedId: 's' } } },
      { type: 'pointerDown', button: 0, twist: 1 },
    ),
  ],
  [
    'input.performActions',
    'parsePerformActionsParams',
    wheel({ type: 'scroll', x: 1, y: 1, deltaX: 1, deltaY: 1, origin: 'viewport' }),
  ],
  ['input.setFiles', 'parseSetFilesParams', { context, element: { sharedId: 's' }, files: ['a'] }],
  ['network.addDataCollector', 'parseAddDataCollectorParams', { dataTypes: ['response'], maxEncodedDataSize: 1 }],
  [
    'network.addIntercept',
    'parseAddInterceptParams',
    {
      phases: ['beforeRequestSent'],
      urlPatterns: [
        { type: 'pattern', protocol: 'http' },
        { type: 'string', pattern: 'x' },
      ],
    },
  ],
  [
    'network.continueRequest',
    'parseContinueRequestParams',
    {
      request: 'r',
      headers: [{ name: 'a', value: text }],
      cookies: [{ name: 'a', value: { type: 'base64', value: '' } }],
      body: text,
    },
  ],
  [
    'network.continueResponse',
    'parseContinueResponseParams',
    { request: 'r', credentials: { type: 'password', username: 'a', password: 'b' }, statusCode: 200 },
  ],
  [
    'network.continueWithAuth',
    'parseContinueWithAuthParams',
    { request: 'r', action: 'provideCredentials', credentials: { type: 'password', username: 'a', password: 'b' } },
  ],
  ['network.continueWithAuth', 'parseContinueWithAuthParams', { request: 'r', action: 'cancel' }],
  ['network.provideResponse', 'parseProvideResponseParams', { request: 'r', body: { type: 'base64', value: '' } }],
  [
    'permissions.setPermission',
    'parseSetPermissionsParams',
    { descriptor: { name: 'geolocation' }, state: 'granted', origin: 'x', 'goog:userContext': 'u' },
  ],
  [
    'script.addPreloadScript',
    'parseAddPreloadScriptParams',
    {
      functionDeclaration: '() => 1',
      arguments: [{ type: 'channel', value: { channel: 'c', serializationOptions: { maxDomDepth: null } } }],
    },
  ],
  [
    'script.callFunction',
    'parseCallFunctionParams',
    call(
      { type: 'undefined' },
      text,
      { type: 'number', value: 'NaN' },
      { type: 'bigint', value: '1' },
      { type: 'null' },
    ),
  ],
  [
    'script.callFunction',
    'parseCallFunctionParams',
    call(
      { type: 'date', value: 'x' },
      { type: 'regexp', value: { pattern: 'a', flags: 'g' } },
      { type: 'boolean', value: true },
    ),
  ],
  [
    'script.callFunction',
    'parseCallFunctionParams',
    call(
      {
        type: 'map',
        value: [
          ['a', text],
          [text, { type: 'set', value: [text] }],
        ],
      },
      { type: 'array', value: [] },
    ),
  ],
  [
    'script.callFunction',
    'parseCallFunctionParams',
    call(
      { type: 'object', value: [['a', { sharedId: 's' }]] },
      { handle: 'h', more: 1 },
      { type: 'node', sharedId: 's' },
    ),
  ],
  [
    'script.callFunction',
    'parseCallFunctionParams',
    {
      ...call(),
      this: { type: 'array', value: [text] },
      serializationOptions: { maxObjectDepth: null },
      resultOwnership: 'root',
    },
  ],
  ['script.disown', 'parseDisownParams', { handles: ['a'], target: { realm: 'r' } }],
  ['session.subscribe', 'parseSubscribeParams', { events: ['log'], contexts: [context], more: 1 }],
  ['session.unsubscribe', 'parseUnsubscribeParams', { subscriptions: ['s'], events: ['log'] }],
  ['session.unsubscribe', 'parseUnsubscribeParams', { events: ['log'] }],
  [
    'storage.deleteCookies',
    'parseDeleteCookiesParams',
    { filter: { name: 'a', more: 1 }, partition: { type: 'context', context } },
  ],
  [
    'storage.setCookie',
    'parseSetCookieParams',
    {
      cookie: { ...cookie, 'goog:priority': 'x', sameSite: 'lax', expiry: 1 },
      partition: { type: 'storageKey', sourceOrigin: 'x' },
    },
  ],
  ['webExtension.install', 'parseInstallParams', { extensionData: { type: 'path', path: 'x' } }],
  ['bluetooth.simulateAdapter', 'parseSimulateAdapterParameters', { context, state: 'absent' }],
  [
    'bluetooth.simulateAdvertisement',
    'parseSimulateAdvertisementParameters',
    { context, scanEntry: { deviceAddress: 'a', rssi: 1, scanRecord: { uuids: ['a'] } } },
  ],
  [
    'bluetooth.handleRequestDevicePrompt',
    'parseHandleRequestDevicePromptParams',
    { context, prompt: 'p', accept: true, device: 'd' },
  ],
  [
    'digitalCredentials.setVirtualWalletBehavior',
    'parseSetVirtualWalletBehaviorParams',
    { action: 'respond', response: { a: 1 } },
  ],
  [
    'goog:cdp.sendCommand',
    'parseSendCommandParams',
    { method: 'Browser.getVersion', params: { a: { b: 1 } }, session: 's' },
  ],
];

const wrong = [-1.5, 'other', true, null, undefined, { type: 'other' }, []];

/** The value with each member, at all depths, replaced by wrong values. */
function* variants(value: unknown): Generator {
  if (typeof value !== 'object' || value === null) return;
  const entries = Object.entries(value);
  for (const [name, member] of entries)
    for (const other of [...wrong, ...variants(member)])
      yield Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other };
}

test.each(samples)('%s is read like the parser of the library reads it: %s', (method, parser, params) => {
  const theirs = new BidiParser();
  for (const variant of [params, ...variants(params)]) {
    // As JSON has it.
    const sent = JSON.parse(JSON.stringify(variant));
    let expected: unknown;
    try {
      expected = (theirs[parser] as (params: unknown) => unknown)(sent);
    } catch {
      expected = expect.any(Misfit);
    }
    expect(parseParams(method, sent), JSON.stringify(sent)).toEqual(expected);
  }
  expect(parseParams(method, params)).not.toBeInstanceOf(Misfit);
});

test('every command of the library that has params is known', () => {
  const { resolve } = createRequire(import.meta.url);
  const processor = resolve('chromium-bidi/out/Default/gen/src/bidiMapper/CommandProcessor.js');
  const cases = readFileSync(processor, 'utf8').split("case '").slice(1);
  const parsed = cases.filter((code) => code.includes('#parser.')).map((code) => code.slice(0, code.indexOf("'")));
  expect(parsed.length).toBeGreaterThan(70);
  const unchecked = parsed.filter(
    (method) => !(parseParams(method, { context: 0, filter: 0, proxy: 0 }) instanceof Misfit),
  );
  expect(unchecked.filter((method) => !(parseParams(method, { root: 0 }) instanceof Misfit))).toEqual([]);
});

test('a misfit names its place', () => {
  const fault = (method: string, params: Record<string, unknown>) => {
    const { path, reason } = parseParams(method, params) as Misfit;
    return `${path} ${reason}`;
  };
  expect(fault('script.callFunction', call(text, { type: 'set', value: [text, { type: 'x' }] }))).toBe(
    'arguments/1/value/1 has none of the forms of the standard',
  );
  expect(fault('script.callFunction', call({ type: 'bigint', value: 1 }))).toBe('arguments/0/value is not a string');
  expect(fault('browsingContext.activate', {})).toBe('context is missing');
  expect(fault('emulation.setGeolocationOverride', { coordinates: null, error: null })).toMatch(/same time/);
  expect(fault('session.subscribe', { events: [] })).toBe('events has less than 1 items');
});

const nests: [string, (value: unknown) => unknown, number][] = [
  ['array', (value) => ({ type: 'array', value: [value] }), 140],
  ['set', (value) => ({ type: 'set', value: [value] }), 140],
  ['map', (value) => ({ type: 'map', value: [[value, text]] }), 95],
  ['object', (value) => ({ type: 'object', value: [['a', value]] }), 95],
];
const nested = (leaf: unknown, levels: number, around: (value: unknown) => unknown) =>
  Array.from({ length: levels }).reduce<unknown>((value) => around(value), leaf);

test.each(nests)('values in values fit up to a depth: %s', (_, around, depth) => {
  const parse = (value: unknown) => parseParams('script.callFunction', call(value));
  expect(parse(nested(text, depth, around))).toEqual(call(nested(text, depth, around)));
  expect(parse(nested({ type: 'x' }, depth, around))).toBeInstanceOf(Misfit);
  expect(parse(nested(text, 100_000, around))).toMatchObject({ reason: expect.stringContaining('more than') });
});

/** Counts how often the members of a value are read. */
function counted<T extends object>(value: T): { value: T; reads: () => number } {
  let reads = 0;
  const watched = <V>(inner: V): V => {
    if (typeof inner !== 'object' || inner === null) return inner;
    return new Proxy(inner, {
      get(object, name) {
        reads += 1;
        return watched(Reflect.get(object, name));
      },
    });
  };
  return { value: watched(value), reads: () => reads };
}

const sizeOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? Object.values(value).reduce((sum, each) => sum + sizeOf(each), 1) : 1;

/** The value with each of its lists made long, with the item, a wrong item, and both. */
function* longer(value: unknown): Generator {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value))
    for (const item of [...value, 0, { type: 'x' }])
      for (const last of [item, 0, { type: 'x' }]) yield [...Array.from({ length: 1000 }, () => item), last];
  for (const [name, member] of Object.entries(value))
    for (const other of longer(member))
      yield Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other };
}

test('each member of params is read a few times, however many there are and whether they fit or not', () => {
  const deep = nests.flatMap(([, around, depth]) =>
    [text, { type: 'x' }, 0].map((leaf): [string, unknown] => [
      'script.callFunction',
      call(nested(leaf, depth, around)),
    ]),
  );
  const long = samples.flatMap(([method, , params]) =>
    [...longer(params)].map((longParams): [string, unknown] => [method, longParams]),
  );
  expect(long.length).toBeGreaterThan(300);
  for (const [method, params] of [...deep, ...long]) {
    const { value, reads } = counted(params as Record<string, unknown>);
    parseParams(method, value);
    expect(reads() / sizeOf(params), `${method} ${JSON.stringify(params).slice(0, 1000)}`).toBeLessThan(20);
  }
});

test('the values of a script are bounded, and the lists among them', () => {
  const many = (count: number, item: unknown) => call(...Array.from({ length: count }, () => item));
  const list = { type: 'array', value: [] };
  expect(parseParams('script.callFunction', many(9000, text))).toEqual(many(9000, text));
  expect(parseParams('script.callFunction', many(1000, list))).toEqual(many(1000, list));
  for (const params of [many(10_001, text), many(1001, list)])
    expect(parseParams('script.callFunction', params)).toMatchObject({ reason: expect.stringContaining('at most') });
});

test('what the mapper handles in more than linear time is bounded', () => {
  const list = (count: number, item: unknown) => Array.from({ length: count }, () => item);
  const down = (value: string) => keys({ type: 'keyDown', value });
  const host = (name: string) => ({ context, url: `http:\\\t//${name}?x=${'y'.repeat(2000)}` });
  const patterns = (...urlPatterns: unknown[]) => ({ phases: ['beforeRequestSent'], urlPatterns });
  const sources = (count: number) => ({ context, actions: list(count, { type: 'none', id: 'n', actions: [] }) });
  const nodes = (count: number) => ({
    context,
    locator: { type: 'css', value: 'a' },
    startNodes: list(count, { sharedId: 's' }),
  });
  const headers = (count: number) => ({ request: 'r', headers: list(count, { name: 'a', value: text }) });
  const bounds: [method: string, make: (size: number) => Record<string, unknown>, most: number][] = [
    ['input.performActions', (size) => down('a'.repeat(size)), 64],
    ['input.performActions', sources, 100],
    ['browsingContext.navigate', (size) => host('a'.repeat(size)), 253],
    ['network.addIntercept', (size) => patterns({ type: 'string', pattern: `ws://${'\u6f22'.repeat(size)}` }), 253],
    ['network.addIntercept', (size) => patterns({ type: 'pattern', hostname: 'a'.repeat(size) }), 253],
    ['network.continueRequest', (size) => ({ request: 'r', url: `https://${'a'.repeat(size)}` }), 253],
    ['network.continueRequest', headers, 1000],
    ['browsingContext.locateNodes', nodes, 1000],
    ['script.disown', (size) => ({ target, handles: list(size, 'h') }), 1000],
  ];
  for (const [method, make, most] of bounds) {
    expect(parseParams(method, make(most)), method).not.toBeInstanceOf(Misfit);
    const misfit = parseParams(method, make(most + 1));
    expect(misfit, method).toBeInstanceOf(Misfit);
    expect((misfit as Misfit).message(method)).toContain(`at most ${most} `);
  }
  const data = { context, url: `data:text/plain,${'x'.repeat(100_000)}` };
  expect(parseParams('browsingContext.navigate', data)).toEqual(data);
});

test('ids that no node has are replaced', () => {
  const ids = (...all: string[]) => call(...all.map((sharedId) => ({ sharedId })));
  const known = ['f.A1.d.B2.e.3', 'B2_element_3'];
  const params = ids(...known, 'f.'.repeat(5000), '_element_'.repeat(5000), 'f.a.d.b.e.x');
  replaceOddIds(params);
  expect(params).toEqual(ids(...known, 'none', 'none', 'none'));
});

test('a response has at most so many headers', () => {
  const event = (count: number) => ({
    requestId: 'r',
    response: { status: 401, headers: Object.fromEntries(Array.from({ length: count }, (_, at) => [`h${at}`, ''])) },
  });
  expect(withFewHeaders(event(1000))).toEqual(event(1000));
  expect(withFewHeaders(event(20_000))).toEqual(event(1000));
  expect(withFewHeaders({ requestId: 'r' })).toEqual({ requestId: 'r' });
});

test('so has each other event of a request', () => {
  const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`h${at}`, '']));
  const event = (count: number) => ({
    requestId: 'r',
    headers: headers(count),
    request: { url: 'http://a/', headers: headers(count) },
    redirectResponse: { status: 302, headers: headers(count) },
  });
  expect(withFewHeaders(event(20_000))).toEqual(event(1000));
});
