import { setImmediate as turn } from 'node:timers/promises';
import { ContextConfigStorage } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/browser/ContextConfigStorage.js';
import { NavigationTracker } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/context/NavigationTracker.js';
import { NetworkStorage } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/network/NetworkStorage.js';
import { PreloadScript } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/script/PreloadScript.js';
import { RealmStorage } from 'chromium-bidi/out/Default/gen/src/bidiMapper/modules/script/RealmStorage.js';
import { EventEmitter } from 'chromium-bidi/out/Default/gen/src/utils/EventEmitter.js';
import { afterEach, expect, test, vi } from 'vitest';
import { silent } from '../../lib/log.ts';
import { jsonPieces } from './large-text.ts';
import { openMapper } from './mapper.ts';
import { PendingCommands } from './pending-commands.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- each method has its own
type Anything = any;

interface Command {
  id: number;
  method: string;
  params: Anything;
  sessionId?: string;
}

const results: Record<string, object> = {
  'Browser.getVersion': { product: 'Chrome/1', protocolVersion: '1', userAgent: 'x', revision: '1', jsVersion: '1' },
  'Target.getBrowserContexts': { browserContextIds: [], defaultBrowserContextId: 'D' },
  'Target.getTargets': { targetInfos: [] },
  'Page.getFrameTree': {
    frameTree: { frame: { id: 'T1', loaderId: 'L', url: 'about:blank', securityOrigin: 'x', mimeType: 'text/html' } },
  },
};

afterEach(() => void vi.useRealTimers());

/** A mapper with a page on a browser that answers at once. `answers` has other answers, as JSON; undefined means no answer. */
async function mapped(answers: (command: Command) => string | undefined = () => '{}') {
  const sent: Anything[] = [];
  /** How many pieces each message has. */
  const pieces: number[] = [];
  const mapper = openMapper({
    toClient(message) {
      // As it is sent: the mapper may change the message later.
      const written = jsonPieces(message);
      pieces.push(written.length);
      sent.push(JSON.parse(Buffer.concat(written).toString()));
    },
    toBrowser(bytes) {
      const command: Command = JSON.parse(bytes.toString());
      const { id, method, sessionId } = command;
      const known = results[method];
      const result = known ? JSON.stringify(known) : answers(command);
      const session = sessionId === undefined ? '' : `,"sessionId":"${sessionId}"`;
      if (result !== undefined) queueMicrotask(() => say(`{"id":${id},"result":${result}${session}}`));
    },
    log: silent,
  });
  const say = (text: string) => mapper.fromBrowser([Buffer.from(text)]);
  const event = (method: string, params: object, sessionId?: string) =>
    say(JSON.stringify({ method, params, sessionId }));
  let lastId = 0;
  async function ask(method: string, params: object): Promise<Anything> {
    lastId += 1;
    const id = lastId;
    mapper.fromClient({ id, method, params: params as Record<string, unknown> });
    for (let turns = 0; turns < 1000; turns++) {
      const found = sent.find((message) => message.id === id);
      if (found) return found;
      await turn();
    }
    throw new Error(`${method} was not answered.`);
  }
  await mapper.start();
  expect(await ask('session.new', { capabilities: {} })).toMatchObject({ type: 'success' });
  const page = { targetId: 'T1', type: 'page', title: '', url: '', attached: true, canAccessOpener: false };
  const targetInfo = { ...page, browserContextId: 'D' };
  event('Target.attachedToTarget', { sessionId: 'S1', waitingForDebugger: false, targetInfo });
  await turn();
  const auxData = { isDefault: true, type: 'default', frameId: 'T1' };
  event('Runtime.executionContextCreated', { context: { id: 1, origin: 'x', name: '', uniqueId: 'u', auxData } }, 'S1');
  await turn();
  const entries = () => sent.filter(({ method }) => method === 'log.entryAdded').map(({ params }) => params);
  return {
    ask,
    event,
    say,
    sent,
    pieces,
    entries,
    console: (...args: object[]) =>
      event('Runtime.consoleAPICalled', { type: 'log', args, executionContextId: 1, timestamp: 1 }, 'S1'),
    close: () => mapper.close(),
  };
}

const string = (value: string) => ({ type: 'string', value });
const subscribe = { events: ['log.entryAdded'] };

test('a console message of many bytes or arguments becomes an entry that is cut and marked', async () => {
  const { ask, console, entries } = await mapped();
  await ask('session.subscribe', subscribe);
  console(string('hello'), string('x'.repeat(500_000)));
  console(string(`%s ${'x'.repeat(40_000_000)}`), string('last'));
  console(...Array.from({ length: 5000 }, () => string('a')));
  await turn();
  const [small, large, many] = entries();
  expect(small).toMatchObject({ text: `hello ${'x'.repeat(500_000)}`, args: [{}, {}] });
  expect(large.text).toMatch(/^\[A message of 4\d{7} bytes, cut\] %s x{16000,}… \(\d+ bytes more\) last$/);
  expect(many.text).toBe(`[4900 more arguments]${' a'.repeat(100)}`);
  expect(many.args).toHaveLength(101);
});

test('an exception of many bytes becomes an entry that is cut', async () => {
  const { ask, event, entries } = await mapped();
  await ask('session.subscribe', subscribe);
  const exceptionDetails = { exceptionId: 1, text: 'y'.repeat(9_000_000), executionContextId: 1 };
  event('Runtime.exceptionThrown', { timestamp: 1, exceptionDetails }, 'S1');
  await turn();
  expect(entries()[0].text).toMatch(/^y{16000,}… \(\d+ bytes more\)$/);
});

test('entries without a subscription are kept up to a number of bytes, the newest', async () => {
  const { ask, console, entries } = await mapped();
  for (let at = 0; at < 100; at++) console(string(`${at} ${'x'.repeat(500_000)}`));
  await turn();
  await ask('session.subscribe', subscribe);
  const texts: string[] = entries().map(({ text }) => text);
  expect(texts).toHaveLength(100);
  expect(texts.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(17_000_000);
  expect(texts.at(-1)).toMatch(/^99 x/);
  expect(texts[0]).toMatch(/^This entry was dropped/);
});

test('an object in the console is described by a note if it is too large, or the page does not answer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const value = (text: string) =>
    `{"result":{"type":"object","deepSerializedValue":{"type":"string","value":"${text}"}}}`;
  const { ask, console, entries } = await mapped(({ params }) => {
    const objectId = params?.arguments?.[0]?.objectId;
    if (objectId === 'silent') return undefined;
    return objectId === 'large' ? value('x'.repeat(2_000_000)) : value('fine');
  });
  await ask('session.subscribe', subscribe);
  for (const objectId of ['small', 'large', 'silent', 'small']) console({ type: 'object', objectId });
  await turn();
  expect(entries().map(({ text }) => text)).toEqual(['fine', expect.stringMatching(/^\[A value of 2\d{6} bytes\]$/)]);
  await vi.advanceTimersByTimeAsync(5000);
  await turn();
  expect(
    entries()
      .slice(2)
      .map(({ text }) => text),
  ).toEqual(['[The page did not answer]', 'fine']);
});

test('an answer that is too large fails its command, and a picture is passed on as it came', async () => {
  const picture = 'iVBOR/+'.repeat(2_000_000);
  const { ask, pieces } = await mapped(({ method, params }) => {
    if (method === 'Page.captureScreenshot' || method === 'Page.printToPDF') return `{"data":"${picture}"}`;
    if (method !== 'Runtime.evaluate') return '{}';
    if (params.expression === 'many') return `{"result":{"value":[${'{},'.repeat(200_000)}{}]}}`;
    return `{"result":{"type":"string","deepSerializedValue":{"type":"string","value":"${'x'.repeat(9_000_000)}"}}}`;
  });
  for (const expression of ['long', 'many']) {
    const answer = await ask('script.evaluate', { expression, target: { context: 'T1' }, awaitPromise: false });
    expect(answer).toMatchObject({ type: 'error', error: 'unknown error' });
    expect(answer.message).toMatch(/^The answer of \d+ bytes to Runtime.evaluate cannot be translated to BiDi\.$/);
  }
  const command = { method: 'Page.captureScreenshot', params: {}, session: 'S1' };
  const inside = await ask('goog:cdp.sendCommand', command);
  expect(inside.result.result.data).toBe(picture);
  expect(pieces.at(-1)).toBe(3);
  expect((await ask('browsingContext.print', { context: 'T1' })).result).toEqual({ data: picture });
  expect(pieces.at(-1)).toBe(3);
});

const kinds = [
  { add: 'session.subscribe', params: { events: ['log.entryAdded'] }, id: 'subscription', most: 100 },
  { add: 'network.addIntercept', params: { phases: ['authRequired'] }, id: 'intercept', most: 100 },
  { add: 'script.addPreloadScript', params: { functionDeclaration: '() => {}' }, id: 'script', most: 200 },
  {
    add: 'network.addDataCollector',
    params: { dataTypes: ['response'], maxEncodedDataSize: 10 },
    id: 'collector',
    most: 100,
  },
];

test.each(kinds)('a client has at most so many of $add', async ({ add, params, id, most }) => {
  const { ask, close } = await mapped(({ method }) =>
    method === 'Page.addScriptToEvaluateOnNewDocument' ? '{"identifier":"1"}' : '{}',
  );
  const made = await Promise.all(Array.from({ length: most }, () => ask(add, params)));
  expect(new Set(made.map(({ type }) => type))).toEqual(new Set(['success']));
  expect(await ask(add, params)).toMatchObject({
    type: 'error',
    error: 'unknown error',
    message: expect.stringContaining(`There are ${most} `),
  });
  const remove = { subscription: 'session.unsubscribe' }[id] ?? add.replace('.add', '.remove');
  const which = id === 'subscription' ? { subscriptions: [made[3].result[id]] } : { [id]: made[3].result[id] };
  expect(await ask(remove, which)).toMatchObject({ type: 'success' });
  expect(await ask(add, params)).toMatchObject({ type: 'success' });
  close();
});

test('a subscription by names ends by them, and there are at most so many names', async () => {
  const { ask } = await mapped();
  for (let at = 0; at < 150; at++) {
    expect(await ask('session.subscribe', { events: ['network', 'log.entryAdded'] })).toMatchObject({
      type: 'success',
    });
    expect(await ask('session.unsubscribe', { events: ['network'] })).toMatchObject({ type: 'success' });
    expect(await ask('session.unsubscribe', { events: ['log.entryAdded'] })).toMatchObject({ type: 'success' });
  }
  const names = (length: number) => ({ events: Array.from({ length }, (_, at) => `goog:cdp.A.b${at}`) });
  expect(await ask('session.subscribe', names(900))).toMatchObject({ type: 'success' });
  for (const length of [101, 45_000])
    expect(await ask('session.subscribe', names(length))).toMatchObject({
      type: 'error',
      message: expect.stringMatching(/^There are more than 1000 events in the subscriptions/),
    });
  expect(await ask('session.subscribe', names(100))).toMatchObject({ type: 'success' });
});

test('the texts that a client leaves in the mapper have a bound together', async () => {
  const { ask } = await mapped(() => '{"identifier":"1"}');
  const add = () => ask('script.addPreloadScript', { functionDeclaration: `() => "${'x'.repeat(6_000_000)}"` });
  expect([(await add()).type, (await add()).type, (await add()).type]).toEqual(['success', 'success', 'error']);
});

const many = <T>(count: number, item: (at: number) => T) => Array.from({ length: count }, (_, at) => item(at));
const navigated = (loaderId: string, url: string) => ({ frame: { id: 'T1', loaderId, url } });

test('a setting for the same tab a hundred thousand times is made once', async () => {
  const { ask } = await mapped();
  const update = vi.spyOn(ContextConfigStorage.prototype, 'updateBrowsingContextConfig');
  const contexts = many(99_000, () => 'T1');
  expect(await ask('emulation.setGeolocationOverride', { coordinates: null, contexts })).toMatchObject({
    type: 'success',
  });
  expect(update).toHaveBeenCalledTimes(1);
  update.mockRestore();
});

test.each([
  [
    'network.setExtraHeaders',
    { headers: many(1001, () => ({ name: 'a', value: string('') })) },
    'at most 1000 headers',
  ],
  ['emulation.setUserAgentOverride', { userAgent: 'x'.repeat(70_000) }, 'at most 65536 characters'],
  [
    'browser.setDownloadBehavior',
    { downloadBehavior: { type: 'allowed', destinationFolder: 'x'.repeat(5000) } },
    'destinationFolder of at most 4096',
  ],
  ['browser.createUserContext', { unhandledPromptBehavior: { more: 'x'.repeat(70_000) } }, 'at most 65536 characters'],
  ['session.subscribe', { events: [`goog:cdp.${'.'.repeat(300)}`] }, 'at most 256 characters'],
  ['session.unsubscribe', { events: [`goog:cdp.${'.'.repeat(300)}`] }, 'at most 256 characters'],
  [
    'network.addIntercept',
    { phases: ['beforeRequestSent'], urlPatterns: [{ type: 'string', pattern: `http://a/${'x'.repeat(70_000)}` }] },
    'at most 65536 characters',
  ],
])('%s refuses what the mapper cannot take', async (method, params, message) => {
  const { ask } = await mapped();
  expect(await ask(method, params)).toMatchObject({ type: 'error', message: expect.stringContaining(message) });
});

test('a client names at most so many events and channels in its time', async () => {
  const { ask } = await mapped();
  for (let round = 0; ; round++) {
    const events = many(900, (at) => `goog:cdp.A.${round}b${at}`);
    const { type, message, result } = await ask('session.subscribe', { events });
    if (type === 'error') {
      expect(message).toContain('more than 10000 names');
      expect(round).toBe(11);
      return;
    }
    await ask('session.unsubscribe', { subscriptions: [result.subscription] });
  }
});

test('the mapper keeps no listener of a frame that is gone', async () => {
  const { event } = await mapped();
  const [on, off] = [vi.spyOn(EventEmitter.prototype, 'on'), vi.spyOn(EventEmitter.prototype, 'off')];
  for (let at = 0; at < 20; at++) {
    event('Page.frameAttached', { frameId: `F${at}`, parentFrameId: 'T1' }, 'S1');
    event('Page.frameSubtreeWillBeDetached', { frameId: `F${at}` }, 'S1');
  }
  expect(on.mock.calls.length).toBeGreaterThan(100);
  expect(off).toHaveBeenCalledTimes(on.mock.calls.length);
  vi.restoreAllMocks();
});

test('of old navigations the mapper keeps the beginning of the address', async () => {
  const states: { url: string }[] = [];
  const { createPendingNavigation } = NavigationTracker.prototype;
  vi.spyOn(NavigationTracker.prototype, 'createPendingNavigation').mockImplementation(function (this: never, ...given) {
    const state = createPendingNavigation.apply(this, given);
    states.push(state);
    return state;
  });
  const { event, ask } = await mapped();
  const url = (at: number) => `http://a.example/${at}${'x'.repeat(5000)}`;
  for (let at = 0; at < 50; at++) event('Page.frameNavigated', navigated(`L${at}`, url(at)), 'S1');
  expect(states.map((state) => state.url.length > 1000)).toEqual(many(50, (at) => at >= 30));
  expect((await ask('browsingContext.getTree', {})).result.contexts[0].url).toBe(url(49));
  vi.restoreAllMocks();
});

const request = (requestId: string, url: string) => ({
  requestId,
  loaderId: 'L',
  documentURL: 'http://a/',
  request: { url, method: 'GET', headers: {}, initialPriority: 'High', referrerPolicy: '' },
  timestamp: 1,
  wallTime: 1,
  initiator: { type: 'other' },
  type: 'Fetch',
  frameId: 'T1',
});

test('the requests that the mapper keeps have at most so many bytes, the newest', async () => {
  const adding = vi.spyOn(NetworkStorage.prototype, 'addRequest');
  const { event, ask } = await mapped();
  await ask('network.addDataCollector', { dataTypes: ['request'], maxEncodedDataSize: 1000 });
  for (let at = 0; at < 100; at++)
    event('Network.requestWillBeSent', request(`R${at}`, `http://a/${'x'.repeat(500_000)}`), 'S1');
  const storage = adding.mock.contexts[0] as NetworkStorage;
  const kept = many(100, (at) => storage.getRequestById(`R${at}`) !== undefined);
  expect(kept.filter(Boolean).length).toBeGreaterThan(20);
  expect(kept.filter(Boolean).length).toBeLessThan(40);
  expect(kept.at(-1)).toBe(true);
  for (let at = 0; at < 20_000; at++) {
    event('Network.requestWillBeSent', request(`S${at}`, 'http://a/'), 'S1');
    event('Network.loadingFailed', { requestId: `S${at}`, timestamp: 1, type: 'Fetch', errorText: 'x' }, 'S1');
  }
  const failed = many(20_000, (at) => storage.getRequestById(`S${at}`) !== undefined).filter(Boolean);
  expect(failed.length).toBeLessThan(9000);
  vi.restoreAllMocks();
});

test('the mapper forgets the settings of the tabs that were set longest ago', () => {
  const storage = new ContextConfigStorage();
  const set = (id: string, userAgent: string) => storage.updateBrowsingContextConfig(id, { userAgent });
  for (let times = 0; times < 500; times++) set('T', 'x'.repeat(60_000));
  expect(storage.getActiveConfig('T', 'default').userAgent).toHaveLength(60_000);
  for (let at = 0; at < 200; at++) set(`T${at}`, 'x'.repeat(60_000));
  expect(storage.getActiveConfig('T', 'default').userAgent).toBeUndefined();
  expect(storage.getActiveConfig('T199', 'default').userAgent).toHaveLength(60_000);
});

test('a script for many tabs is written in pieces', async () => {
  let inTurn = 0;
  let most = 0;
  const script = new PreloadScript({ functionDeclaration: '() => 0' });
  script.initInTarget = async () => {
    most = Math.max(most, ++inTurn);
    setImmediate(() => (inTurn = 0));
    const end = performance.now() + 3;
    while (performance.now() < end);
  };
  await script.initInTargets(new Set(many(20, (at) => ({ at }) as never)), false);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(10);
});

test('realms that end take the handles of their objects with them, and no others', () => {
  const realms = new RealmStorage();
  const add = (realmId: string, cdpSessionId: string) =>
    realms.addRealm({ realmId, cdpClient: { sessionId: cdpSessionId }, dispose() {} } as never);
  for (let at = 0; at < 300; at++) add(`A${at}`, 'S1');
  add('B', 'S2');
  const handles = realms.knownHandlesToRealmMap;
  for (let at = 0; at < 1000; at++) handles.set(`a${at}`, `A${at % 300}`).set(`b${at}`, 'B');
  const entries = vi.spyOn(handles, 'entries');
  realms.deleteRealms({ cdpSessionId: 'S1' });
  expect(entries).not.toHaveBeenCalled();
  expect(realms.findRealms({}).map(({ realmId }) => realmId)).toEqual(['B']);
  expect(realms.knownHandlesToRealmMap).toBe(handles);
  expect([...handles.values()]).toEqual(many(1000, () => 'B'));
});

test('a console message with a format of very many parts becomes an entry as it is', async () => {
  const unhandled = vi.fn<() => void>();
  process.on('unhandledRejection', unhandled);
  const { ask, console, entries } = await mapped();
  console(string('%s without a value'));
  console(string('%s'.repeat(200_000)), string('a'));
  console(string(`${'%'.repeat(100)} %s`), string('a'));
  await turn();
  await ask('session.subscribe', subscribe);
  const [many, few] = entries();
  expect(many.text).toMatch(/^\[A format of very many parts\] (?:%s){200000} a$/);
  expect(few.text).toMatch(/^\[A format of very many parts\] %{100} %s a$/);
  expect(unhandled).not.toHaveBeenCalled();
  process.off('unhandledRejection', unhandled);
});

test('the commands of a page that closes fail in pieces', async () => {
  const pending = new PendingCommands();
  const client = {};
  let inTurn = 0;
  let most = 0;
  const failed = many(200, () =>
    new Promise<never>((resolve, reject) =>
      pending.add({ client, method: 'a', resolve, reject, mayFail: false, isLog: false }),
    ).catch((error: Error) => {
      most = Math.max(most, ++inTurn);
      setImmediate(() => (inTurn = 0));
      const end = performance.now() + 1;
      while (performance.now() < end);
      return error.message;
    }),
  );
  await pending.forget(client);
  expect(new Set(await Promise.all(failed))).toEqual(new Set(['Session closed.']));
  expect(most).toBeLessThan(50);
});
