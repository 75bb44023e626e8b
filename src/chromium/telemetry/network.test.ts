import { expect, onTestFinished, test, vi } from 'vitest';
import { heapUsed } from '../../../test/support/heap.ts';
import { slowClock } from '../../../test/support/slow-clock.ts';
import type { EventContext } from '../../lib/telemetry-events.ts';
import type { Mux } from '../cdp/mux.ts';
import { networkEvents } from './network.ts';
import type { Target, NewEvent } from './target.ts';
import { watchBrowser } from './browser-watch.ts';
import type { Watch } from './watch.ts';

type Params = Record<string, unknown>;

/** A client of a browser that says what the test lets it say. */
function browser() {
  const listeners = new Map<string, ((params: Params, sessionId?: string) => void)[]>();
  const sent: [method: string, params: Params][] = [];
  const send = async (method: string, params: Params = {}) => {
    sent.push([method, params]);
    return {};
  };
  const client = {
    on(event: string, _is: unknown, listener: (params: Params, sessionId?: string) => void) {
      listeners.set(event, [...(listeners.get(event) ?? []), listener]);
      return () => {};
    },
    send,
    ask: (_is: unknown, method: string, params?: Params) => send(method, params),
    close() {},
  };
  const say = (event: string, params: Params, sessionId?: string) =>
    listeners.get(event)?.forEach((listener) => listener(params, sessionId));
  return { client, sent, say };
}

const request = (requestId: string, loaderId = 'L') => ({
  requestId,
  loaderId,
  documentURL: 'http://a.test/',
  request: { url: 'http://a.test/x', method: 'GET', headers: {} },
  timestamp: 1,
  initiator: { type: 'script' },
  type: 'Fetch',
});

function pages() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { client, say } = browser();
  /** How often the collector looked where a target belongs. */
  const looks = new Map<string, number>();
  const page = (sessionId: string, more: Partial<Target> = {}) =>
    new Proxy(
      { sessionId, targetId: sessionId, type: 'page', url: '', navSeq: 0, frames: new Map(), ...more } as Target,
      {
        get(target, name, receiver) {
          if (name === 'root' || name === 'parent') looks.set(sessionId, (looks.get(sessionId) ?? 0) + 1);
          return Reflect.get(target, name, receiver) as unknown;
        },
      },
    );
  const a = page('A');
  const known = new Map(
    [a, page('B'), page('F', { type: 'iframe', parent: a, root: a })].map((one) => [one.sessionId, one]),
  );
  const events: NewEvent[] = [];
  const watch = {
    client,
    targets: { get: (sessionId: string) => known.get(sessionId), all: () => known.values() },
    emit: (one: NewEvent) => void events.push(one),
    draft: () => () => {},
    captures: () => true,
  };
  const network = networkEvents(watch as unknown as Watch, undefined);
  const idle = () => {
    vi.advanceTimersByTime(1000);
    return events.filter(({ type }) => type === 'network_idle').map(({ target }) => target?.sessionId);
  };
  return { say, looks, network, known, idle, events };
}

const finished = (requestId: string) => ({ requestId, timestamp: 2, encodedDataLength: 0 });

test('an event of one page does not go through the requests of another page', () => {
  const { say, looks, idle } = pages();
  for (let at = 0; at < 1000; at++) say('Network.requestWillBeSent', request(`a${at}`), 'A');
  looks.clear();
  say('Network.requestWillBeSent', request('b'), 'B');
  say('Network.loadingFinished', finished('b'), 'B');
  expect(looks.get('A') ?? 0).toBeLessThan(10);
  expect(idle()).toEqual(['B']);
});

test('a page is idle when its requests and those of its frames have ended, moved away or been forgotten', () => {
  const { say, idle, network, known, events } = pages();
  const moving = 'M'.repeat(32);
  say('Network.requestWillBeSent', request('a'), 'A');
  say('Network.requestWillBeSent', request('f'), 'F');
  say('Network.requestWillBeSent', request(moving), 'A');
  say('Network.loadingFinished', finished('a'), 'A');
  expect(idle()).toEqual([]);
  const response = { url: '', status: 200, statusText: '', headers: {}, mimeType: '' };
  say('Network.responseReceived', { requestId: moving, timestamp: 1, type: 'Fetch', response }, 'B');
  expect(idle()).toEqual([]);
  known.get('F')!.gone = true;
  network.gone(known.get('F')!);
  expect(events.at(-1)).toMatchObject({ type: 'network_loading_failed', data: { request_id: 'f' } });
  expect(idle()).toEqual(['A']);
  say('Network.requestWillBeSent', request('left', 'earlier'), 'A');
  network.navigated(known.get('A')!, 'L');
  expect(idle()).toEqual(['A', 'A']);
  network.navigated(known.get('B')!, 'L');
  expect(idle()).toEqual(['A', 'A']); // the request that moved is of this document
  for (let at = 0; at < 10_000; at++) say('Network.requestWillBeSent', request(`a${at}`), 'A');
  network.navigated(known.get('B')!, 'L');
  expect(idle()).toEqual(['A', 'A', 'B']); // it was the oldest
});

test('a page that closes with many requests leaves the event loop to others while their failures are captured', async () => {
  const { say, network, known, events } = pages();
  for (let at = 0; at < 200; at++) say('Network.requestWillBeSent', request(`a${at}`), 'A');
  const failures = () => events.filter(({ type }) => type === 'network_loading_failed').length;
  slowClock();
  known.get('A')!.gone = true;
  network.gone(known.get('A')!);
  expect(failures()).toBeLessThan(20);
  await vi.runAllTimersAsync();
  expect(failures()).toBe(200);
});

test('of open requests, the oldest beyond 16 MiB are forgotten', () => {
  const { say, events } = pages();
  const long = { url: `http://a.test/${'x'.repeat(2e6)}`, method: 'GET', headers: {} };
  for (let at = 0; at < 1200; at++) say('Network.requestWillBeSent', { ...request(`a${at}`), request: long }, 'A');
  const fail = (requestId: string) => {
    say('Network.loadingFailed', { requestId, timestamp: 2, type: 'Fetch', errorText: 'net::ERR_FAILED' }, 'A');
    return (events.at(-1)!.data as EventContext).url;
  };
  expect(fail('a0')).toBeUndefined();
  expect(fail('a1199')).toMatch(/^http:/);
  for (let at = 200; at < 1199; at++) fail(`a${at}`);
  const headers = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`h${at}`, 'v'.repeat(320)]));
  const response = { url: '', status: 200, statusText: '', headers, mimeType: '' };
  for (let at = 0; at < 300; at++) {
    say('Network.requestWillBeSent', request(`b${at}`), 'A');
    say('Network.responseReceived', { requestId: `b${at}`, timestamp: 1, type: 'Fetch', response }, 'A');
  }
  expect(fail('b0')).toBeUndefined();
  expect(fail('b299')).toMatch(/^http:/);
});

test('frames and targets keep only the captured part of addresses and titles', () => {
  const { client, say } = browser();
  const mux = { attachLocal: () => client, hiddenWorld: 'w', proxy: undefined } as unknown as Mux;
  const events: NewEvent[] = [];
  const watch = watchBrowser(mux, { emit: (one) => void events.push(one), draft: () => () => {} });
  onTestFinished(() => watch.close());
  void watch.change(new Set(['page', 'console'] as const));
  const url = `http://me:secret@a.test/?password=secret&x=${'x'.repeat(2e6)}`;
  const targetInfo = { targetId: 'T', type: 'page', title: 'x'.repeat(2e6), url };
  say('Target.attachedToTarget', { sessionId: 'S', targetInfo, waitingForDebugger: true });
  const fired = () => {
    say('Page.loadEventFired', { timestamp: 1 }, 'S');
    return (events.at(-1)!.data as EventContext).url!;
  };
  const kept = [fired()];
  say('Page.frameNavigated', { frame: { id: 'T', loaderId: 'L', url } }, 'S');
  kept.push(fired());
  say('Page.navigatedWithinDocument', { frameId: 'T', url }, 'S');
  kept.push(fired());
  for (const one of kept) {
    expect(one).toMatch(/^http:\/\/\[redacted\]@a\.test\/\?password=\[redacted\]&x=xxx/);
    expect(one.length).toBeLessThan(17_000);
  }
  const before = heapUsed();
  for (let at = 0; at < 100; at++) {
    const long = Buffer.alloc(1e6, 'x').toString();
    say('Page.frameNavigated', { frame: { id: `F${at}`, parentId: 'T', loaderId: 'L', url: `http://${long}` } }, 'S');
    const worker = { targetId: `W${at}`, type: 'worker', title: long, url: long };
    say('Target.attachedToTarget', { sessionId: `W${at}`, targetInfo: worker, waitingForDebugger: false }, 'S');
  }
  events.length = 0;
  expect(heapUsed() - before).toBeLessThan(20e6);
});

test('targets in targets are followed 32 deep', () => {
  const { client, sent, say } = browser();
  const mux = { attachLocal: () => client, hiddenWorld: 'w', proxy: undefined } as unknown as Mux;
  const watch = watchBrowser(mux, { emit() {}, draft: () => () => {} });
  onTestFinished(() => watch.close());
  for (let depth = 0; depth < 40; depth++) {
    const targetInfo = { targetId: `T${depth}`, type: depth === 0 ? 'page' : 'worker', title: '', url: '' };
    const from = depth === 0 ? undefined : `S${Math.min(depth - 1, 32)}`;
    say('Target.attachedToTarget', { sessionId: `S${depth}`, targetInfo, waitingForDebugger: false }, from);
  }
  const left = sent.filter(([method]) => method === 'Target.detachFromTarget').map(([, params]) => params['sessionId']);
  expect(left).toEqual(['S33', 'S34', 'S35', 'S36', 'S37', 'S38', 'S39']);
});

test('others have their turn while the capture of a browser with thousands of targets changes', async () => {
  const { client, say, sent } = browser();
  const mux = { attachLocal: () => client, hiddenWorld: 'w', proxy: undefined } as unknown as Mux;
  const watch = watchBrowser(mux, { emit() {}, draft: () => () => {} });
  onTestFinished(() => watch.close());
  await watch.change(new Set(['console']));
  for (let at = 0; at < 4000; at++) {
    const targetInfo = { targetId: `t${at}`, type: 'page', title: '', url: 'http://a.test/' };
    say('Target.attachedToTarget', { sessionId: `s${at}`, targetInfo, waitingForDebugger: false });
  }
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await watch.change(new Set(['console', 'network', 'page', 'interaction']));
  clearInterval(timer);
  expect(sent.filter(([method]) => method === 'Network.enable')).toHaveLength(4000);
  expect(turns).toBeGreaterThan(1);
});
