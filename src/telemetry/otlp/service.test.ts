import { afterEach, expect, test } from 'vitest';
import { startOtlpReceiver, type Received } from '../../../test/support/otlp-receiver.ts';
import { eventList, tab } from '../../../test/support/telemetry-events.ts';
import type { Log } from '../../lib/log.ts';
import { silent } from '../../lib/log.ts';
import { otlpService } from './service.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function collector(answer?: () => number | 'hang') {
  const receiver = await startOtlpReceiver(answer);
  closing.push(() => receiver.close());
  return receiver;
}

const open = (endpoint: string, log: Log = silent) =>
  otlpService({ endpoint, headers: { 'x-team': 'blue' }, version: '1.0', nodeId: 'node_1', log });
const ended = { sessionId: 's1', projectId: 'p1', poolId: null, reason: 'deleted' };
const t1 = tab('T1', 'L1');

test('a session is a trace: spans for it, its navigations and API calls, and records of its console', async () => {
  const { endpoint, received, headers } = await collector();
  const otlp = await open(`${endpoint}/`);
  const { list, startedAt } = eventList()
    .add('page_navigation', { ...t1, url: 'http://a.test/' })
    .add('page_navigation', { ...t1, frame_id: 'F', parent_frame_id: 'T1', url: 'http://frame.test/' })
    .add('page_load', t1)
    .add('page_navigation', { ...t1, url: 'http://a.test/2' })
    .add('api_call', { request_id: 'req_1', operation_id: 'curlBrowser', status: 502, duration_ms: 120 })
    .add('console_log', { ...t1, url: 'http://a.test/2', level: 'warning', text: 'careful' })
    .add('console_error', { ...t1, text: 'x'.repeat(10_000) });
  otlp.event('s1', list[0]!.event); // before the session starts: belongs to no trace
  otlp.sessionStarted({ sessionId: 's1' });
  for (const { event } of list) otlp.event('s1', event);
  otlp.sessionEnded(ended);
  otlp.event('s1', list[0]!.event);
  await otlp.close();

  // On a starved machine the last of it may arrive after close has stopped waiting.
  await expect.poll(() => received, { timeout: 60_000 }).toHaveLength(6);
  expect(headers[0]).toMatchObject({ 'x-team': 'blue', 'content-type': 'application/x-protobuf' });
  const spans = received.filter(({ kind }) => kind === 'span');
  const session = spans.find(({ name }) => name === 'session')!;
  expect(session).toMatchObject({
    parentId: '',
    attributes: { 'corral.session.id': 's1', 'corral.project.id': 'p1', 'corral.end.reason': 'deleted' },
    resource: { 'service.name': 'corral', 'service.version': '1.0', 'service.instance.id': 'node_1' },
  });
  const inside = (one: Received) => [one.name, one.attributes, one.status];
  const children = spans.filter(({ parentId }) => parentId === session.spanId);
  expect(children.map(inside)).toEqual([
    ['navigation', { 'url.full': 'http://a.test/', 'corral.target.id': 'T1' }, 0],
    ['curlBrowser', { 'corral.request.id': 'req_1', 'http.response.status_code': 502 }, 2],
    ['navigation', { 'url.full': 'http://a.test/2', 'corral.target.id': 'T1' }, 0],
  ]);
  expect(spans).toHaveLength(4);
  expect(new Set(received.map(({ traceId }) => traceId))).toEqual(new Set([session.traceId]));
  const at = (ms: number) => BigInt(startedAt + ms * 1000) * 1000n;
  expect([children[0]!.startNs, children[0]!.endNs]).toEqual([at(250), at(750)]);
  expect([children[1]!.startNs, children[1]!.endNs]).toEqual([at(1130), at(1250)]);

  const records = received.filter(({ kind }) => kind === 'log');
  expect(records.map(({ name, status, spanId, attributes }) => [name, status, spanId, attributes])).toEqual([
    [
      'careful',
      13,
      session.spanId,
      { 'corral.session.id': 's1', 'event.name': 'console_log', 'url.full': 'http://a.test/2' },
    ],
    ['x'.repeat(4096), 17, session.spanId, { 'corral.session.id': 's1', 'event.name': 'console_error' }],
  ]);
});

test('a collector that refuses costs one line of the log, and no more memory than the bound', async () => {
  const { endpoint, headers } = await collector(() => 400);
  const lines: object[] = [];
  const otlp = await open(endpoint, { ...silent, warn: (facts, event) => void lines.push({ ...facts, event }) });
  otlp.sessionStarted({ sessionId: 's1' });
  const { list } = eventList().add('console_log', { ...t1, text: 'again' });
  for (let i = 0; i < 10_000; i++) otlp.event('s1', list[0]!.event);
  otlp.sessionEnded(ended);
  await otlp.close();
  await expect.poll(() => headers.length, { timeout: 60_000 }).toBeGreaterThan(1);
  await expect
    .poll(() => lines, { timeout: 60_000 })
    .toEqual([{ reason: expect.any(String) as string, event: 'otlp.failed' }]);
});

test('a collector that never answers does not hold up the end of the service', async () => {
  const { endpoint } = await collector(() => 'hang');
  const otlp = await open(endpoint);
  otlp.sessionStarted({ sessionId: 's1' });
  otlp.sessionEnded(ended);
  await otlp.close();
  expect(true).toBe(true); // close gives up by itself; without that, this test does not end
});
