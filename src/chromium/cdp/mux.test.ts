import { PassThrough } from 'node:stream';
import { expect, test, vi } from 'vitest';
import type { Sink } from './client.ts';
import { multiplex } from './mux.ts';
import { openPipe } from './pipe.ts';

const SESSION = '0123456789ABCDEF0123456789ABCDEF';
const OTHER = 'FEDCBA9876543210FEDCBA9876543210';

/** A message as Chromium writes it: id or method first, session last. */
function fromChromium(body: object, sessionId?: string): string {
  return JSON.stringify({ ...body, ...(sessionId !== undefined && { sessionId }) });
}

/** The tests check the effects of a message immediately. */
const atOnce = { isOver: () => false, next: async () => {} };

/** A multiplexer with the test in the place of Chromium. */
async function fakeBrowser(options?: Parameters<typeof multiplex>[1]) {
  const toBrowser = new PassThrough();
  const fromBrowser = new PassThrough();
  const mux = multiplex(openPipe(toBrowser, fromBrowser, undefined, atOnce), options);
  const raw = (text: string) => fromBrowser.emit('data', Buffer.from(`${text}\0`));
  const say = (body: object, sessionId?: string) => raw(fromChromium(body, sessionId));
  const heard = () => {
    // Node 26 returns one chunk for each read, earlier versions all of them.
    let text = '';
    for (let chunk; (chunk = toBrowser.read() as Buffer | null);) text += String(chunk);
    return text
      .split('\0')
      .filter(Boolean)
      .map((message): { id: number; method: string; sessionId?: string } => JSON.parse(message));
  };
  const got: string[] = [];
  const closed: [number, string][] = [];
  const state = { bufferedAmount: 0 };
  const sink: Sink = {
    send: (pieces) => void got.push(Buffer.concat(pieces).toString()),
    flush() {},
    get bufferedAmount() {
      return state.bufferedAmount;
    },
    close: (code, reason) => void closed.push([code, reason]),
    pause() {},
    resume() {},
  };
  const attach = (sessionId: string) => {
    const client = mux.attach(sink);
    say({ id: heard().at(-1)!.id, result: { sessionId } });
    return client;
  };
  const client = attach(SESSION);
  await Promise.resolve();
  return { mux, client, attach, raw, say, heard, got, closed, state };
}

test('an answer carries the id of the client, of any length', async () => {
  const { client, say, heard, got } = await fakeBrowser();
  for (const id of [0, 5, 2_147_483_647, -1, -2_147_483_648]) {
    client.receive(Buffer.from(JSON.stringify({ id, method: 'A.b' })));
    client.flush();
    say({ id: heard()[0]!.id, result: {} }, SESSION);
    expect(got.pop()).toBe(`{"id":${id},"result":{}}`);
  }
});

test('an answer to a session that has ended still reaches its client', async () => {
  const { client, say, heard, got } = await fakeBrowser();
  say({ method: 'Target.attachedToTarget', params: { sessionId: OTHER } }, SESSION);
  client.receive(Buffer.from(`{"id":9,"method":"A.b","sessionId":"${OTHER}"}`));
  client.flush();
  const [command] = heard();
  say({ method: 'Target.detachedFromTarget', params: { sessionId: OTHER } }, SESSION);
  say({ id: command!.id, error: { code: -32001, message: 'Session with given id not found.' } });
  expect(got.pop()).toBe('{"id":9,"error":{"code":-32001,"message":"Session with given id not found."}}');
});

test('answers and events for a client that left go nowhere', async () => {
  const { client, say, heard, got } = await fakeBrowser();
  client.receive(Buffer.from('{"id":1,"method":"A.b"}'));
  client.flush();
  const [command] = heard();
  client.closed();
  expect(heard()).toMatchObject([{ method: 'Target.detachFromTarget', params: { sessionId: SESSION } }]);
  say({ id: command!.id, result: {} }, SESSION);
  say({ method: 'A.c', params: {} }, SESSION);
  expect(got).toEqual([]);
});

test('one large message may wait as long as it takes; small ones behind it may not pile up', async () => {
  const { say, got, closed, state } = await fakeBrowser({ maxUnread: 1000 });
  say({ method: 'A.large', params: { text: 'x'.repeat(2_000_000) } }, SESSION);
  state.bufferedAmount = got[0]!.length;
  say({ method: 'A.small', params: {} }, SESSION);
  expect(closed).toEqual([]);
  state.bufferedAmount += 2000;
  say({ method: 'A.small', params: {} }, SESSION);
  expect(closed).toEqual([[1008, expect.stringContaining('does not read')]]);
});

test('nonsense from a browser that was taken over harms no client', async () => {
  const { client, say, heard, got, closed, raw } = await fakeBrowser();
  for (const text of [
    'nonsense',
    '{"id":',
    '{"id":1000000001,',
    '{"method":"Target.attachedToTarget",nonsense',
    `{"method":"Target.attachedToTarget",,"sessionId":"${SESSION}"}`,
    `{"method":"Target.detachedFromTarget",,"sessionId":"${SESSION}"}`,
    '{"method":"Target.detachedFromTarget","params":null}',
  ]) {
    expect(() => raw(text), text).not.toThrow();
  }
  got.length = 0;
  client.receive(Buffer.from('{"id":1,"method":"A.b"}'));
  client.flush();
  say({ id: heard()[0]!.id, result: {} }, SESSION);
  expect(got).toEqual(['{"id":1,"result":{}}']);
  expect(closed).toEqual([]);
});

/** A browser with a client and a watcher, which both know that the same target is paused. */
async function pausedForBoth() {
  const browser = await fakeBrowser();
  const { mux, say, heard } = browser;
  const watcher = mux.attachLocal({ watching: true });
  say({ id: heard()[0]!.id, result: { sessionId: 'A'.repeat(32) } });
  const paused = (sessionId: string, from: string) =>
    say(
      {
        method: 'Target.attachedToTarget',
        params: { sessionId, targetInfo: { targetId: 'T', type: 'page' }, waitingForDebugger: true },
      },
      from,
    );
  paused(OTHER, SESSION);
  paused('B'.repeat(32), 'A'.repeat(32));
  const resumed = () => heard().flatMap(({ method, sessionId }) => (method === RESUME ? [sessionId] : []));
  const resume = () => {
    browser.client.receive(Buffer.from(JSON.stringify({ id: 7, method: RESUME, sessionId: OTHER })));
    browser.client.flush();
  };
  const watcherResumes = () => {
    watcher.send(RESUME, {}, 'B'.repeat(32)).catch(() => {});
    for (const { id, method } of heard()) if (method === 'Browser.getVersion') say({ id, result: {} });
  };
  return { ...browser, watcher, resumed, resume, watcherResumes };
}
const RESUME = 'Runtime.runIfWaitingForDebugger';

test('a watcher resumes a target only after the client that knows it as paused', async () => {
  const { resumed, resume, watcherResumes } = await pausedForBoth();
  watcherResumes();
  expect(resumed()).toEqual([]);
  resume();
  expect(resumed()).toEqual([OTHER, 'B'.repeat(32)]);
});

test('a client resumes a target only after the watcher has seen it', async () => {
  const { resumed, resume, watcherResumes } = await pausedForBoth();
  resume();
  expect(resumed()).toEqual([]);
  watcherResumes();
  expect(resumed()).toEqual([OTHER, 'B'.repeat(32)]);
});

test.each(['client', 'watcher'] as const)('a paused target does not wait for a %s that left', async (party) => {
  const { resumed, resume, watcherResumes, client, watcher } = await pausedForBoth();
  if (party === 'client') watcherResumes();
  else resume();
  if (party === 'client') client.closed();
  else watcher.close();
  expect(resumed()).toEqual([party === 'client' ? 'B'.repeat(32) : OTHER]);
});

test('clients get no events about the watcher’s isolated worlds', async () => {
  const { mux, say, got } = await pausedForBoth();
  got.length = 0;
  const created = (id: number, name: string) => ({
    method: 'Runtime.executionContextCreated',
    params: { context: { id, name } },
  });
  const destroyed = (executionContextId: number) => ({
    method: 'Runtime.executionContextDestroyed',
    params: { executionContextId },
  });
  for (const event of [created(1, ''), created(2, mux.hiddenWorld), created(3, 'other'), destroyed(2), destroyed(3)])
    say(event, OTHER);
  expect(got.map((message) => JSON.parse(message).params)).toEqual([
    { context: { id: 1, name: '' } },
    { context: { id: 3, name: 'other' } },
    { executionContextId: 3 },
  ]);
});

test('dialogs are answered by the clients that enabled Page', async () => {
  const { mux, client } = await pausedForBoth();
  const send = (method: string) => client.receive(Buffer.from(JSON.stringify({ id: 1, method, sessionId: OTHER })));
  expect(mux.answersDialogs(['T'])).toBe(false);
  send('Page.enable');
  expect(mux.answersDialogs(['T'])).toBe(true);
  expect(mux.answersDialogs(['another'])).toBe(false);
  send('Page.disable');
  expect(mux.answersDialogs(['T'])).toBe(false);
});

test('a path outside of the session is refused before the browser gets it, and a path in the session is passed on', async () => {
  const { client, heard, got } = await fakeBrowser({
    missingFile: async (paths) => paths.find((path) => path.startsWith('/Users')),
  });
  const set = (id: number, files: string[]) =>
    client.receive(Buffer.from(JSON.stringify({ id, method: 'DOM.setFileInputFiles', params: { files, nodeId: 1 } })));
  set(1, ['/home/corral/a', '/Users/me/a.txt']);
  set(2, ['/home/corral/a'.padEnd(2000, 'a')]); // too large to be parsed whole
  await expect.poll(() => got).toHaveLength(1);
  expect(JSON.parse(got[0]!)).toEqual({
    id: 1,
    error: { code: -32000, message: expect.stringMatching(/^There is no file \/Users\/me\/a\.txt .*fs API/) },
  });
  await expect.poll(() => heard().map(({ method }) => method)).toEqual(['DOM.setFileInputFiles']);
});

test('messages after a command with files wait until the files are looked up, and no two clients look up files at once', async () => {
  const lookups: (() => void)[] = [];
  const missingFile = () => new Promise<undefined>((resolve) => lookups.push(() => resolve(undefined)));
  const { client, attach, heard } = await fakeBrowser({ missingFile });
  const other = attach(OTHER);
  const methods = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return heard().map(({ method }) => method);
  };
  for (const each of [client, other]) {
    each.receive(Buffer.from('{"id":1,"method":"DOM.setFileInputFiles","params":{"files":["/tmp/a"]}}'));
    each.receive(Buffer.from('{"id":2,"method":"A.after"}'));
  }
  client.flush();
  expect([await methods(), lookups.length]).toEqual([[], 1]);
  lookups[0]!();
  expect([await methods(), lookups.length]).toEqual([['DOM.setFileInputFiles', 'A.after'], 2]);
  other.closed();
  client.receive(Buffer.from('{"id":3,"method":"A.more"}'));
  client.flush();
  expect(await methods()).toEqual(['Target.detachFromTarget', 'A.more']);
});

test('a client that left while others look up files has none of its own looked up', async () => {
  const lookups: (() => void)[] = [];
  const missingFile = () => new Promise<undefined>((resolve) => lookups.push(() => resolve(undefined)));
  const { client, attach } = await fakeBrowser({ missingFile });
  const other = attach(OTHER);
  for (const each of [client, other])
    each.receive(Buffer.from('{"id":1,"method":"DOM.setFileInputFiles","params":{"files":["/tmp/a"]}}'));
  other.closed();
  await expect.poll(() => lookups).toHaveLength(1);
  lookups[0]!();
  await new Promise((resolve) => setImmediate(resolve));
  expect(lookups).toHaveLength(1);
});

test.each([
  ['more than 1000 files', Array.from({ length: 1001 }, () => '/tmp/a')],
  ['more than 1 MiB of paths', ['/tmp/a'.padEnd(2 ** 20, 'a')]],
])('%s of one command are refused, and none is looked up', async (_, files) => {
  let lookups = 0;
  const missingFile = async () => void (lookups += 1);
  const { client, heard, got } = await fakeBrowser({ missingFile });
  client.receive(Buffer.from(JSON.stringify({ id: 1, method: 'DOM.setFileInputFiles', params: { files } })));
  await expect.poll(() => got).toHaveLength(1);
  expect(JSON.parse(got[0]!)).toEqual({
    id: 1,
    error: { code: -32000, message: expect.stringContaining('at most 1000 files and 1048576 bytes') },
  });
  client.flush();
  expect([heard(), lookups]).toEqual([[], 0]);
});

test('the unanswered commands of a browser are bounded for all its clients together, but not those of the service', async () => {
  const { mux, client, attach, say, heard, got } = await fakeBrowser({ maxInFlight: 3 });
  const other = attach(OTHER);
  const send = (to: typeof client, id: number) => to.receive(Buffer.from(`{"id":${id},"method":"A.b"}`));
  for (const id of [1, 2]) send(client, id);
  for (const id of [3, 4]) send(other, id);
  expect(JSON.parse(got.pop()!)).toMatchObject({ id: 4, error: { message: expect.stringContaining('3 commands') } });
  const own = mux.attachLocal();
  say({ id: heard().at(-1)!.id, result: { sessionId: 'C'.repeat(32) } });
  const version = own.send('Browser.getVersion').then(() => 'answered');
  say({ id: heard().at(-1)!.id, result: {} }, 'C'.repeat(32));
  expect(await version).toBe('answered');

  client.closed(); // its two commands count no more
  for (const id of [5, 6, 7]) send(other, id);
  expect(got.map((text) => JSON.parse(text).id)).toEqual([7]);
});

test('messages that wait for a hidden page are bounded by their bytes, of which one message may have any number', async () => {
  const { mux, attach, say, heard, got, closed } = await fakeBrowser();
  attach(OTHER);
  const own = mux.attachLocal({ secretive: true });
  say({ id: heard().at(-1)!.id, result: { sessionId: 'C'.repeat(32) } });
  const made = own.send('Target.createTarget', { url: 'about:blank' });
  const { id } = heard().at(-1)!;
  const event = (sessionId: string) =>
    say({ method: 'Target.targetCreated', params: { targetInfo: { targetId: 'T', type: 'page' } } }, sessionId);
  const large = (mib: number, sessionId: string) =>
    say({ method: 'A.large', params: { text: 'x'.repeat(mib * 2 ** 20) } }, sessionId);
  event(SESSION);
  large(20, SESSION);
  expect([got, closed]).toEqual([[], []]);
  event(OTHER);
  expect(closed).toEqual([[1011, 'The browser does not say which page it made.']]);
  say({ id, result: { targetId: 'T' } }, 'C'.repeat(32));
  await made;
  expect(got.map((text) => text.slice(0, 20))).toEqual(['{"method":"A.large",']);
});

test('an event about a download that is larger than any is not kept', async () => {
  const { say, got } = await fakeBrowser({ keepDownload: () => new Promise(() => {}) });
  const complete = (filePath: string) =>
    say({ method: 'Browser.downloadProgress', params: { guid: 'g', state: 'completed', filePath } }, SESSION);
  complete('/x');
  expect(got).toHaveLength(0);
  complete('x'.repeat(70_000));
  expect(got.splice(0)).toHaveLength(1);
  for (let times = 0; times < 300; times++) complete('x'.repeat(60_000)); // 17 MiB
  expect(got).not.toHaveLength(0);
});

test('each context of a client gets its downloads, and a complete download is reported with its name', async () => {
  let named!: (path: string) => void;
  const keepDownload = () => new Promise<string>((resolve) => (named = resolve));
  const { client, say, heard, got } = await fakeBrowser({ keepDownload });
  client.receive(Buffer.from('{"id":1,"method":"Target.createBrowserContext"}'));
  client.flush();
  const asked = heard().find(({ method }) => method === 'Target.createBrowserContext')!;
  say({ id: asked.id, result: { browserContextId: 'ABC' } }, SESSION);
  expect(got.splice(0)).toEqual(['{"id":1,"result":{"browserContextId":"ABC"}}']);
  expect(heard()).toMatchObject([{ method: 'Browser.setDownloadBehavior', params: { browserContextId: 'ABC' } }]);

  say({ method: 'Browser.downloadWillBegin', params: { guid: 'g', suggestedFilename: 'a.txt' } }, SESSION);
  say({ method: 'Browser.downloadProgress', params: { guid: 'g', state: 'completed', filePath: '/x/g' } }, SESSION);
  expect(got.splice(0)).toHaveLength(1);
  named('/home/corral/Downloads/a.txt');
  await expect.poll(() => got).toHaveLength(1);
  expect(JSON.parse(got[0]!)).toEqual({
    method: 'Browser.downloadProgress',
    params: { guid: 'g', state: 'completed', filePath: '/home/corral/Downloads/a.txt' },
  });
});

test('a context with a proxy gets a lane of the gateway, which ends with it', async () => {
  const lanes: string[] = [];
  const openLane = (proxyServer: string, bypass: string | undefined) => {
    if (proxyServer === 'bad') throw new Error('proxyServer cannot be used: it is bad.');
    if (proxyServer === 'direct://') return undefined;
    lanes.push(`${proxyServer} ${bypass}`);
    return { proxyServer: 'http://127.1.0.1:3128', close: () => void lanes.push(`closed ${proxyServer}`) };
  };
  const { client, say, heard, got } = await fakeBrowser({ openLane });
  let id = 0;
  const create = (params: object) => {
    client.receive(Buffer.from(JSON.stringify({ id: ++id, method: 'Target.createBrowserContext', params })));
    client.flush();
    return heard()[0] as { id: number; params?: object } | undefined;
  };
  const made = (command: { id: number } | undefined, browserContextId: string) =>
    say({ id: command!.id, result: { browserContextId } }, SESSION);

  const first = create({ disposeOnDetach: true, proxyServer: 'a:1', proxyBypassList: 'b' });
  expect(first!.params).toEqual({
    disposeOnDetach: true,
    proxyServer: 'http://127.1.0.1:3128',
    proxyBypassList: '<-loopback>',
  });
  made(first, 'A');
  expect(got.pop()).toBe('{"id":1,"result":{"browserContextId":"A"}}');
  expect(create({ proxyServer: 'direct://', disposeOnDetach: true })!.params).toEqual({ disposeOnDetach: true });
  expect(create({ proxyServer: 'bad' })).toBeUndefined();
  expect(got.pop()).toContain('proxyServer cannot be used: it is bad.');

  const large = create({ proxyServer: 'c:1', originsWithUniversalNetworkAccess: ['x'.repeat(1000)] });
  expect(large!.params).toMatchObject({ proxyServer: 'http://127.1.0.1:3128' });
  made(large, 'C');
  client.receive(Buffer.from('{"id":90,"method":"Target.disposeBrowserContext","params":{"browserContextId":"C"}}'));
  expect(lanes).toEqual(['a:1 b', 'c:1 undefined', 'closed c:1']);
  client.flush();
  expect(heard()).toMatchObject([{ method: 'Target.disposeBrowserContext' }]);

  const refused = create({ proxyServer: 'd:1' });
  say({ id: refused!.id, error: { code: -32000, message: 'No.' } }, SESSION);
  expect(lanes.pop()).toBe('closed d:1');
  made(create({ proxyServer: 'stays:1' }), 'S');
  create({ proxyServer: 'pending:1' });
  lanes.splice(0);
  client.closed();
  expect(lanes).toEqual(['closed a:1', 'closed pending:1']);
});

test('without a gateway that has lanes, a context with a proxy is refused', async () => {
  const { client, heard, got } = await fakeBrowser();
  client.receive(Buffer.from('{"id":1,"method":"Target.createBrowserContext","params":{"proxyServer":"a:1"}}'));
  client.receive(Buffer.from('{"id":2,"method":"Target.createBrowserContext"}'));
  client.flush();
  expect(got.pop()).toContain('proxyServer needs a sandbox');
  expect(heard()).toMatchObject([{ method: 'Target.createBrowserContext' }]);
});

test('messages that wait for a hidden page are delivered in pieces and in order, with those that arrive later', async () => {
  const { mux, say, heard, got } = await fakeBrowser();
  const own = mux.attachLocal({ secretive: true });
  say({ id: heard().at(-1)!.id, result: { sessionId: 'C'.repeat(32) } });
  const made = own.send('Target.createTarget', { url: 'about:blank' });
  const { id } = heard().at(-1)!;
  const count = 15_000;
  for (let at = 0; at < count; at++)
    say({ method: 'Target.targetCreated', params: { targetInfo: { targetId: `T${at}`, type: 'page' } } }, SESSION);
  expect(got).toEqual([]);
  say({ id, result: { targetId: 'H' } }, 'C'.repeat(32));
  expect(got.length).toBeLessThan(count);
  say({ method: 'A.last', params: {} }, SESSION);
  await made;
  await vi.waitFor(() => expect(got).toHaveLength(count + 1), { timeout: 10_000, interval: 1 });
  const ids = got.map((message) => JSON.parse(message).params.targetInfo?.targetId);
  expect(ids).toEqual([...Array.from({ length: count }, (_, at) => `T${at}`), undefined]);
});

test('a target event of many values is not read', async () => {
  const { mux, say, heard, got } = await fakeBrowser();
  mux.attachLocal({ secretive: true });
  say({ id: heard().at(-1)!.id, result: { sessionId: 'C'.repeat(32) } });
  const targetInfo = { targetId: 'T', type: 'page' };
  say(
    { method: 'Target.targetCreated', params: { targetInfo, more: Array.from({ length: 2000 }, () => ({})) } },
    SESSION,
  );
  expect(got).toEqual([]);
  say({ method: 'Target.targetCreated', params: { targetInfo } }, SESSION);
  expect(got).toHaveLength(1);
});

test.each([
  ['DOM.setFileInputFiles', '{"files":["a\tb"]}'],
  ['DOM.setFileInputFiles', `{"more":[${'0,'.repeat(30_000)}0],"files":["a\tb"]}`],
  ['Browser.setDownloadBehavior', '{"behavior":"allow","downloadPath":"a\tb"}'],
])('params that are not JSON are refused, and the next command is taken: %s', async (method, params) => {
  const { client, heard, got, closed } = await fakeBrowser({
    missingFile: async () => undefined,
    keepDownload: async () => undefined,
  });
  heard();
  client.receive(Buffer.from(`{"id":1,"method":"${method}","params":${params}}`));
  client.receive(Buffer.from('{"id":2,"method":"A.b"}'));
  client.flush();
  await expect.poll(() => got).toHaveLength(1);
  expect(JSON.parse(got[0]!)).toMatchObject({ id: 1, error: { message: expect.stringContaining('not JSON') } });
  await expect.poll(() => heard().map(({ method: sent }) => sent)).toEqual(['A.b']);
  expect(closed).toEqual([]);
});

test.each([
  ['a path', { downloadPath: `/${'x'.repeat(4096)}` }],
  ['params', { downloadPath: '/tmp/x', more: 'x'.repeat(70_000) }],
])('a directory for downloads is refused if its %s is too long', async (_, params) => {
  const { client, heard, got } = await fakeBrowser({ keepDownload: async () => undefined });
  heard();
  const send = (id: number, given: object) =>
    client.receive(Buffer.from(JSON.stringify({ id, method: 'Browser.setDownloadBehavior', params: given })));
  send(1, { behavior: 'allowAndName', ...params });
  send(2, { behavior: 'allowAndName', downloadPath: '/tmp/x' });
  client.flush();
  await expect.poll(() => got).toHaveLength(1);
  expect(JSON.parse(got[0]!)).toMatchObject({ id: 1, error: { message: expect.stringContaining('4096') } });
  expect(heard()).toMatchObject([{ params: { downloadPath: '/tmp/x' } }]);
});

test('commands that wait for the session of a connection are sent in pieces and in order', async () => {
  const { mux, say, heard } = await fakeBrowser();
  let resumed = 0;
  const client = mux.attach({
    bufferedAmount: 0,
    send() {},
    flush() {},
    close() {},
    pause() {},
    resume: () => void (resumed += 1),
  });
  const { id } = heard().at(-1)!;
  const count = 20_000;
  for (let at = 0; at < count; at++) client.receive(Buffer.from(`{"id":${at},"method":"A.m${at}"}`));
  say({ id, result: { sessionId: OTHER } });
  const first = heard();
  expect(first.length).toBeLessThan(count);
  client.receive(Buffer.from(`{"id":${count},"method":"A.m${count}"}`));
  expect(resumed).toBe(0);
  await vi.waitFor(() => {
    client.flush();
    first.push(...heard());
    expect(first).toHaveLength(count + 1);
  }, 60_000);
  expect(first.map(({ method }) => method)).toEqual(Array.from({ length: count + 1 }, (_, at) => `A.m${at}`));
});
