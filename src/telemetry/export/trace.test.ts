import { buffer } from 'node:stream/consumers';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import yauzl from 'yauzl';
import { eventList, onePixel, sourceOf, tab } from '../../../test/support/telemetry-events.ts';
import type { EventSource, StoredEvent } from './source.ts';
import { traceZip } from './trace.ts';

const t1 = tab('T1', 'L1');
const about = { sessionId: 's1', startedAt: Date.UTC(2026, 10, 16, 8) * 1000 };

type Line = Record<string, unknown> & { type: string };

async function unzipped(source: EventSource) {
  const files = new Map<string, Buffer>();
  const zip = await yauzl.fromBufferPromise(await buffer(traceZip(source, about)));
  for await (const entry of zip.eachEntry()) {
    files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)));
  }
  const lines = (name: string) =>
    files
      .get(name)!
      .toString()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line);
  return { files, trace: lines('trace.trace'), network: lines('trace.network') };
}

describe('the trace of a session', () => {
  test('lists the actions, with pictures before and after', async () => {
    const { list } = eventList()
      .add('page_tab_opened', { target_id: 'T1', target_type: 'page', url: '', opener_id: 'T0' })
      .add('page_navigation', { ...t1, url: 'http://a.test/' })
      .add('page_navigation', { ...t1, frame_id: 'F', parent_frame_id: 'T1', url: 'http://b.test/' })
      .add('monitor_screenshot', { png: onePixel })
      .add('page_load', t1)
      .add('interaction_click', { ...t1, x: 3, y: 4, selector: '#buy', tag: 'BUTTON', text: ' Buy\n now ' })
      .add('monitor_screenshot', { png: onePixel })
      .add('api_call', { request_id: 'r', operation_id: 'curl', status: 502, duration_ms: 100 })
      .add('page_navigation', { ...t1, url: 'http://a.test/2' });
    const { files, trace } = await unzipped(sourceOf(list).source);
    expect([...files.keys()]).toEqual([
      'trace.trace',
      'trace.network',
      'resources/screenshot-4.png',
      'resources/screenshot-7.png',
    ]);
    expect(files.get('resources/screenshot-4.png')).toEqual(Buffer.from(onePixel, 'base64'));
    expect(trace[0]).toMatchObject({ version: 8, type: 'context-options', title: 'Session s1' });

    const of = (type: string) => trace.filter((line) => line.type === type);
    expect(of('before').map(({ callId, title, method }) => ({ callId, title, method }))).toEqual([
      { callId: 'call@2', title: 'Navigate to "http://a.test/"', method: 'goto' },
      { callId: 'call@6', title: 'Click "Buy now"', method: 'click' },
      { callId: 'call@8', title: 'API curl', method: 'telemetry' },
      { callId: 'call@9', title: 'Navigate to "http://a.test/2"', method: 'goto' },
    ]);
    const t0 = about.startedAt / 1000;
    expect(
      of('after').map(({ callId, endTime, point, error }) => ({
        callId,
        endTime,
        ...(point ? { point } : {}),
        ...(error ? { error } : {}),
      })),
    ).toEqual([
      { callId: 'call@2', endTime: t0 + 1250 },
      { callId: 'call@6', endTime: t0 + 1500, point: { x: 3, y: 4 } },
      {
        callId: 'call@8',
        endTime: t0 + 2000,
        error: { name: 'Error', message: 'The call was answered with status 502.' },
      },
      { callId: 'call@9', endTime: t0 + 2250 },
    ]);
    expect(of('screencast-frame').map(({ sha1, width, height }) => ({ sha1, width, height }))).toEqual([
      { sha1: 'screenshot-4.png', width: 1, height: 1 },
      { sha1: 'screenshot-7.png', width: 1, height: 1 },
    ]);
    expect(of('screenshot').map(({ callId, phase, file }) => [callId, phase, file])).toEqual([
      ['call@2', 'after', 'resources/screenshot-4.png'],
      ['call@6', 'before', 'resources/screenshot-4.png'],
      ['call@6', 'after', 'resources/screenshot-7.png'],
      ['call@8', 'before', 'resources/screenshot-7.png'],
      ['call@9', 'before', 'resources/screenshot-7.png'],
    ]);
    expect(of('event')).toMatchObject([{ method: 'page', params: { pageId: 'T1', openerPageId: 'T0' } }]);
  });

  test('has the console, and uncaught errors apart from console.error', async () => {
    const { list } = eventList()
      .add('console_log', { ...t1, level: 'warning', text: 'careful', args: ['careful', '2'] })
      .add('console_error', {
        ...t1,
        level: 'error',
        text: 'bad',
        source_url: 'http://a.test/x.js',
        line: 7,
        column: 2,
      })
      .add('console_error', { ...t1, text: 'Error: thrown' }, { event: 'Runtime.exceptionThrown' });
    const { trace } = await unzipped(sourceOf(list).source);
    expect(trace.slice(1)).toMatchObject([
      { type: 'console', messageType: 'warning', text: 'careful', args: [{ preview: 'careful' }, { preview: '2' }] },
      {
        type: 'console',
        messageType: 'error',
        text: 'bad',
        location: { url: 'http://a.test/x.js', lineNumber: 7, columnNumber: 2 },
      },
      { type: 'event', method: 'pageError', params: { error: { error: { message: 'Error: thrown' } } } },
    ]);
  });

  test('has its requests as entries of HAR, with the bodies of answers as files', async () => {
    const request = { ...t1, request_id: 'L1', url: 'http://a.test/', method: 'GET', resource_type: 'Document' };
    const { list } = eventList()
      .add('network_request', { ...request, headers: {} })
      .add('network_response', { ...request, status: 200, mime_type: 'text/html', headers: {}, body: '<p>ä' })
      .add('network_request', { ...request, request_id: '2', resource_type: 'Image', headers: {} })
      .add('network_response', { ...request, request_id: '2', status: 200, mime_type: 'image/png', headers: {} });
    const { files, network, trace } = await unzipped(sourceOf(list).source);
    expect(trace).toHaveLength(1);
    expect(network).toMatchObject([
      {
        type: 'resource-snapshot',
        snapshot: {
          pageref: 'T1',
          request: { method: 'GET', url: 'http://a.test/' },
          response: { status: 200, content: { mimeType: 'text/html', _sha1: 'body-2.txt' } },
        },
      },
      { snapshot: { response: { content: { mimeType: 'image/png' } } } },
    ]);
    expect(files.get('resources/body-2.txt')?.toString()).toBe('<p>ä');
    expect(files.size).toBe(3);
  });

  test('is there without events too', async () => {
    const { trace, network } = await unzipped(sourceOf([]).source);
    expect(trace).toMatchObject([{ type: 'context-options', wallTime: about.startedAt / 1000 }]);
    expect(network).toEqual([]);
  });
});

/** More than fits into the buffers on the way: 50 MB of pictures. */
function* manyPictures(): Generator<StoredEvent> {
  const png = Buffer.concat([Buffer.from(onePixel, 'base64'), Buffer.alloc(500_000)]).toString('base64');
  for (let seq = 1; seq <= 100; seq++) {
    yield {
      seq,
      event: { ts: seq, type: 'monitor_screenshot', category: 'screenshot', source: { kind: 'cdp' }, data: { png } },
    };
  }
}

test('a client that leaves in the middle ends the reading of the archive', async () => {
  const { source, count } = sourceOf({ [Symbol.iterator]: manyPictures });
  const zip = traceZip(source, about);
  let taken = 0;
  for await (const piece of zip) if ((taken += (piece as Buffer).length) > 2_000_000) break; // amid the pictures
  await expect.poll(() => count.endedEarly, { timeout: 60_000 }).toBe(1);
  expect(zip.destroyed).toBe(true);
});

test('an archive that cannot be read on breaks the answer off', async () => {
  const broken: EventSource = {
    async *read(...args) {
      yield* sourceOf([...manyPictures()].slice(0, 2)).source.read(...args);
      throw new Error('The disk is gone.');
    },
  };
  const zip = traceZip(broken, about);
  zip.resume();
  const [error] = (await once(zip, 'error').catch((error: unknown) => [error])) as [Error];
  expect(error.message).toBe('The disk is gone.');
});
