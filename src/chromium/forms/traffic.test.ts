import { expect, test, vi } from 'vitest';
import { heapUsed } from '../../../test/support/heap.ts';
import { pageTraffic } from './traffic.ts';

const main = 'frame';
const request = (requestId: string, wishes = {}) => ({
  sessionId: 's',
  requestId,
  loaderId: 'first',
  url: `http://site/${requestId}?x=${Math.random()}`,
  method: 'GET',
  type: 'Fetch',
  frameId: main,
  ...wishes,
});
const documentOf = (loaderId: string) => request(loaderId, { loaderId, type: 'Document' });

test('an act waits for the requests that came after it, and for what a person would wait for', () => {
  const traffic = pageTraffic(main);
  traffic.sent(request('before'));
  traffic.mark();
  expect(traffic.waiting).toBe(0);
  traffic.sent(request('picture', { type: 'Image' }));
  traffic.sent(request('socket', { type: 'WebSocket' }));
  traffic.sent(request('data', { url: 'data:text/plain,1' }));
  expect(traffic.waiting).toBe(0);
  traffic.sent(request('after'));
  traffic.sent(request('login', { method: 'POST' }));
  expect([traffic.waiting, traffic.posting]).toEqual([2, 1]);
  traffic.over('login');
  traffic.over('after');
  expect([traffic.waiting, traffic.posting]).toEqual([0, 0]);
});

test('requests in flight keep the beginnings of their addresses only', () => {
  const traffic = pageTraffic(main);
  const before = heapUsed();
  for (let at = 0; at < 2000; at++)
    traffic.sent(request(`${at}`, { url: `http://site/${at}/${'x'.repeat(20_000)}?y` }));
  expect(heapUsed() - before).toBeLessThan(10 * 2 ** 20); // 40 MB with the whole addresses
  expect(traffic.waiting).toBe(2000);
});

test('a poll is known again by its address, a request that sends something is none', () => {
  const traffic = pageTraffic(main);
  traffic.sent(request('poll'));
  traffic.sent(request('login', { method: 'POST' }));
  traffic.takeForBackground();
  traffic.mark();
  traffic.sent(request('poll'));
  expect(traffic.waiting).toBe(0);
  traffic.sent(request('login', { method: 'POST' }));
  expect(traffic.waiting).toBe(1);
});

test('a document is on its way until it is there, and takes what the last one waited for with it', () => {
  const traffic = pageTraffic(main);
  let changes = 0;
  const stop = traffic.listen(() => void changes++);
  traffic.sent(documentOf('one'));
  traffic.response({ requestId: 'one', type: 'Document', frameId: main, status: 302 });
  traffic.sent(documentOf('two'));
  traffic.response({ requestId: 'two', type: 'Document', frameId: main, status: 200 });
  expect([traffic.navigating, traffic.status]).toEqual([true, undefined]);
  traffic.sent(request('left'));
  const before = traffic.committedAt;
  traffic.committed(main, 'two');
  expect(traffic).toMatchObject({ navigating: false, status: 200, waiting: 0, documents: 1 });
  expect(traffic.committedAt).toBeGreaterThanOrEqual(before);
  expect(changes).toBe(4);

  traffic.sent(documentOf('three'));
  traffic.committed('inner', 'another');
  expect(traffic).toMatchObject({ navigating: true, status: 200, documents: 2 });
  traffic.over('three');
  expect(traffic.navigating).toBe(false);
  stop();
});

test('what went with a frame is not waited for', () => {
  const traffic = pageTraffic(main);
  traffic.sent(request('inner', { sessionId: 'of-frame' }));
  traffic.sessionGone('of-frame');
  expect(traffic.waiting).toBe(0);
});

test('an event looks at no other request, however many are open', () => {
  const traffic = pageTraffic(main);
  for (let at = 0; at < 2000; at++) traffic.sent(request(`open ${at}`, { method: at % 2 ? 'GET' : 'POST' }));
  const walks = [vi.spyOn(Map.prototype, 'values'), vi.spyOn(Map.prototype, Symbol.iterator)];
  const seen = [];
  for (let at = 0; at < 100; at++) {
    traffic.over(`open ${at}`);
    traffic.sent(request(`late ${at}`));
    seen.push([traffic.waiting, traffic.posting, traffic.navigating]);
  }
  const calls = walks.map((walk) => walk.mock.calls.length);
  for (const walk of walks) walk.mockRestore();
  expect(calls).toEqual([0, 0]);
  expect(seen.at(-1)).toEqual([2000, 950, false]);
});

test('the counts equal the number of open requests after any sequence of events', () => {
  const traffic = pageTraffic(main);
  traffic.sent(request('poll'));
  traffic.sent(request('form', { method: 'POST' }));
  traffic.sent(request('form', { method: 'GET' })); // redirected
  traffic.sent(request('other', { sessionId: 'frame', method: 'POST' }));
  expect([traffic.waiting, traffic.posting]).toEqual([3, 1]);
  traffic.takeForBackground();
  expect([traffic.waiting, traffic.posting]).toEqual([1, 1]);
  traffic.sessionGone('frame');
  expect([traffic.waiting, traffic.posting]).toEqual([0, 0]);
  traffic.over('poll');
  traffic.over('form');
  expect(traffic.waiting).toBe(0);
  traffic.sent(documentOf('next'));
  traffic.sent(documentOf('later'));
  traffic.committed(main, 'next');
  expect(traffic).toMatchObject({ navigating: true, waiting: 1 });
  traffic.over('later');
  expect(traffic).toMatchObject({ navigating: false, waiting: 0 });
});
