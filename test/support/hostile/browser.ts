import { PassThrough } from 'node:stream';
import { trickyValue, type Random } from '../random.ts';

const hex = (random: Random, length = 32) => Array.from({ length }, () => '0123456789ABCDEF'[random(16)]).join('');

/** What Chromium would answer, so that more is asked. */
function plausible(method: string, random: Random, sessions: string[], targets: string[]): unknown {
  const target = () => {
    const id = random(3) === 0 || targets.length === 0 ? hex(random) : targets[random(targets.length)]!;
    if (!targets.includes(id)) targets.push(id);
    if (targets.length > 20) targets.shift();
    return id;
  };
  const info = () => ({
    targetId: target(),
    type: ['page', 'page', 'tab', 'worker'][random(4)],
    title: 't',
    url: random(2) ? 'about:blank' : 'http://a.test/',
    attached: false,
    ...(random(4) === 0 && { openerId: target() }),
  });
  switch (method) {
    case 'Target.attachToBrowserTarget':
    case 'Target.attachToTarget': {
      const sessionId = hex(random);
      sessions.push(sessionId);
      if (sessions.length > 100) sessions.shift();
      return { sessionId };
    }
    case 'Target.createTarget':
      return { targetId: target() };
    case 'Target.getTargets':
      return { targetInfos: Array.from({ length: random(5) }, info) };
    case 'Browser.getVersion':
      return { product: 'Chrome/1', protocolVersion: '1.3', userAgent: 'u', revision: 'r', jsVersion: '1' };
    case 'Browser.getWindowForTarget':
      return { windowId: 1, bounds: { width: 800, height: 600 } };
    case 'Storage.getCookies':
      return { cookies: [{ name: 'a', value: 'b' }] };
    case 'Extensions.loadUnpacked':
      return { id: hex(random) };
    case 'Runtime.evaluate':
      return { result: { type: 'string', value: random(2) ? 'x' : true, ...(random(4) === 0 && { objectId: '1' }) } };
    case 'DOM.describeNode':
      return { node: { frameId: target() } };
    case 'Page.createIsolatedWorld':
      return { executionContextId: random(100) };
    case 'Page.getLayoutMetrics':
      return {
        cssLayoutViewport: { clientWidth: 800, clientHeight: 600 },
        cssVisualViewport: { pageX: 0, pageY: 0 },
      };
    case 'Page.captureScreenshot':
      return { data: 'AAAA' };
    case 'Page.getNavigationHistory':
      return { currentIndex: 0, entries: [{ id: 1 }, { id: 2 }] };
    case 'Page.navigate':
      return { frameId: target(), errorText: 'net::ERR_ABORTED' };
    case 'Fetch.takeResponseBodyAsStream':
      return { stream: '1' };
    case 'IO.read':
      return { data: 'body', eof: random(2) === 0 };
    case 'Target.getBrowserContexts':
      return { browserContextIds: [], defaultBrowserContextId: hex(random) };
    default:
      return {};
  }
}

const EVENTS: [string, (random: Random, target: string, session: string) => unknown][] = [
  ['Target.targetCreated', (_r, t) => ({ targetInfo: { targetId: t, type: 'page', title: '', url: '' } })],
  [
    'Target.targetInfoChanged',
    (_r, t) => ({ targetInfo: { targetId: t, type: 'page', title: 'x', url: 'http://b/' } }),
  ],
  ['Target.targetDestroyed', (_r, t) => ({ targetId: t })],
  ['Target.targetCrashed', (_r, t) => ({ targetId: t, status: 'crashed', errorCode: 1 })],
  [
    'Target.attachedToTarget',
    (r, t) => ({
      sessionId: hex(r),
      targetInfo: { targetId: t, type: 'page', title: '', url: '' },
      waitingForDebugger: r(2) === 0,
    }),
  ],
  ['Target.detachedFromTarget', (_r, t, s) => ({ sessionId: s, targetId: t })],
  [
    'Page.screencastFrame',
    (r) => ({ data: 'AAAA', sessionId: r(10), metadata: { deviceWidth: 800, deviceHeight: 600 } }),
  ],
  ['Page.frameStartedLoading', (_r, t) => ({ frameId: t })],
  ['Page.frameStoppedLoading', (_r, t) => ({ frameId: t })],
  ['Page.navigatedWithinDocument', (_r, t) => ({ frameId: t, url: 'http://c/' })],
  [
    'Page.frameStartedNavigating',
    (_r, t) => ({ frameId: t, url: 'http://c/', loaderId: 'l', navigationType: 'reload' }),
  ],
  ['Network.loadingFailed', () => ({ requestId: 'l', type: 'Document', errorText: 'net::ERR_FAILED', timestamp: 1 })],
  ['Page.frameNavigated', (_r, t) => ({ frame: { id: t, url: 'http://c/', loaderId: 'l' } })],
  ['Page.frameNavigated', (_r, t) => ({ frame: { id: t, unreachableUrl: 'http://c/', loaderId: 'l' } })],
  ['Page.lifecycleEvent', (_r, t) => ({ frameId: t, loaderId: 'l', name: 'load', timestamp: 1 })],
  ['Page.javascriptDialogOpening', () => ({ type: 'alert', message: 'm', url: '', hasBrowserHandler: false })],
  ['Page.javascriptDialogClosed', () => ({ result: true })],
  [
    'Runtime.executionContextCreated',
    (r, t) => ({ context: { id: r(9), origin: '', name: '', auxData: { frameId: t } } }),
  ],
  [
    'Runtime.consoleAPICalled',
    (r) => ({ type: 'log', args: [{ type: 'string', value: 'v' }], executionContextId: r(9) }),
  ],
  [
    'Fetch.requestPaused',
    (r) => ({
      requestId: String(r(9)),
      networkId: 'n',
      request: { url: 'http://a.test/', method: 'GET', headers: {} },
      ...(r(2) && { responseStatusCode: 200, responseHeaders: [{ name: 'a', value: 'b' }] }),
    }),
  ],
  ['Fetch.authRequired', (r) => ({ requestId: String(r(9)), request: {}, authChallenge: {} })],
  ['Network.responseReceivedExtraInfo', () => ({ requestId: 'n', statusCode: 200, headers: { 'set-cookie': 'a=b' } })],
  ['Network.requestWillBeSent', () => ({ requestId: 'n', request: { url: 'http://a/', method: 'GET', headers: {} } })],
  ['Inspector.targetCrashed', () => ({})],
  ['Page.downloadWillBegin', (_r, t) => ({ frameId: t, guid: 'g', url: 'http://a/', suggestedFilename: 'f' })],
];

/** The same value with something in it changed: another type, missing, far too large, far too many. */
function mutated(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random(3) === 0) return strange(random);
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...value };
  const keys = Object.keys(copy);
  const key = keys[random(keys.length)];
  if (key === undefined) return strange(random);
  const fields = copy as Record<string, unknown>;
  if (random(4) === 0) delete fields[key];
  else fields[key] = mutated(fields[key], random);
  return copy;
}

function strange(random: Random): unknown {
  const values = [null, true, -1, 2 ** 53, 1e308, '', 'x'.repeat(random(5000)), [], {}, [null], { length: 2 ** 31 }];
  const at = random(values.length + 3);
  return at < values.length ? values[at] : trickyValue(random);
}

/** A browser that was taken over: it speaks on its pipe, and says what it likes. */
export function hostileBrowser(random: Random) {
  const toBrowser = new PassThrough();
  const fromBrowser = new PassThrough();
  const sessions: string[] = [];
  const targets: string[] = [];
  let unread = '';
  let said = 0;

  const write = (text: string | Buffer) => {
    said += 1;
    if (!fromBrowser.destroyed && fromBrowser.writableLength < 4 * 1024 * 1024) fromBrowser.write(text);
  };
  const session = () => (sessions.length === 0 || random(10) === 0 ? hex(random) : sessions[random(sessions.length)]!);
  const target = () => (targets.length === 0 || random(10) === 0 ? hex(random) : targets[random(targets.length)]!);

  function event(): void {
    const [method, params] = EVENTS[random(EVENTS.length)]!;
    const plain = params(random, target(), session());
    const body = random(3) === 0 ? mutated(plain, random) : plain;
    const from = random(8) === 0 ? {} : { sessionId: random(20) === 0 ? strange(random) : session() };
    write(`${JSON.stringify({ method, params: body, ...from })}\0`);
  }

  function noise(): void {
    const kinds = [
      () => '\0\0\0',
      () => 'not json\0',
      () => `${'['.repeat(random(3000))}\0`,
      () => `{"id":${'9'.repeat(random(500))}}\0`,
      () => `{"id":`,
      () => `{"method":"Target.attachedToTarget",\0`,
      () => Buffer.from(Array.from({ length: random(300) }, () => random(256))),
      () => `{"id":${1_000_000_000 + random(1000)},"result":"${'y'.repeat(random(300_000))}"}\0`,
      () => `${JSON.stringify(strange(random))}\0`,
    ];
    write(kinds[random(kinds.length)]!());
  }

  function answer(id: number, method: string, sessionId: string | undefined): void {
    const kind = random(20);
    if (kind === 0) return; // silence
    let result = plausible(method, random, sessions, targets);
    if (kind < 6) result = mutated(result, random);
    const body =
      kind === 6
        ? { id, error: strange(random), sessionId }
        : kind === 7
          ? { id, error: { code: -32000, message: 'no' }, sessionId }
          : kind === 8
            ? { id: id + random(5) - 2, result, sessionId }
            : { id, result, sessionId: kind === 9 ? session() : sessionId };
    const text = `${JSON.stringify(body)}\0`;
    if (kind === 10)
      write(text.slice(0, random(text.length))); // the rest never comes
    else write(text);
    if (kind === 11) write(text); // twice
  }

  toBrowser.on('data', (chunk: Buffer) => {
    unread += chunk.toString('latin1');
    const messages = unread.split('\0');
    unread = messages.pop()!;
    for (const message of messages) {
      const { id, method, sessionId } = JSON.parse(message) as { id: number; method: string; sessionId?: string };
      answer(id, method, sessionId);
      for (let more = random(4); more > 0; more--) event();
      if (random(10) === 0) noise();
    }
  });
  fromBrowser.on('error', () => {});
  toBrowser.on('error', () => {});

  return {
    toBrowser,
    fromBrowser,
    event,
    noise,
    get said() {
      return said;
    },
  };
}
