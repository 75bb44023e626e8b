import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { silent } from '../../lib/log.ts';
import { jsonPieces } from './large-text.ts';
import { openMapper } from './mapper.ts';

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
