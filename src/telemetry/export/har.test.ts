import { describe, expect, test } from 'vitest';
import { eventList, sourceOf, tab } from '../../../test/support/telemetry-events.ts';
import type { HarEntry } from './har-entry.ts';
import { harDocument } from './har.ts';
import type { StoredEvent } from './source.ts';

interface Har {
  log: {
    version: string;
    creator: { name: string; version: string };
    comment: string;
    pages: {
      id: string;
      title: string;
      startedDateTime: string;
      pageTimings: { onContentLoad: number; onLoad: number };
    }[];
    entries: HarEntry[];
  };
}

async function har(list: Iterable<StoredEvent>): Promise<Har['log']> {
  let text = '';
  for await (const piece of harDocument(sourceOf(list).source.read('s1', {}), { version: '1.0', sessionId: 's1' }))
    text += piece;
  return (JSON.parse(text) as Har).log;
}

const t1 = tab('T1', 'L1');
const get = (id: string, url: string, more: object = {}) => ({
  ...t1,
  request_id: id,
  url,
  method: 'GET',
  resource_type: 'Fetch',
  headers: {},
  ...more,
});

describe('a request and its answer', () => {
  test('become an entry with every field of HAR 1.2', async () => {
    const { list } = eventList()
      .add(
        'network_request',
        get('1', 'http://a.test/p?q=1&q=%C3%A4#part', {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', accept: '*/*' },
          post_data: '{"ä":1}',
          initiator_type: 'script',
        }),
        { metadata: { cdp_timestamp: '1000' } },
      )
      .add(
        'network_response',
        {
          ...t1,
          request_id: '1',
          url: 'http://a.test/p',
          method: 'POST',
          status: 201,
          status_text: 'Created',
          mime_type: 'application/json',
          headers: { 'content-length': '9000', link: 'one\ntwo' },
          body: '{"cut":"…',
        },
        {
          metadata: {
            cdp_timestamp: '1000.5',
            head_timestamp: '1000.25',
            protocol: 'h2',
            encoded_data_length: '9100',
            server_ip: '2001:db8::1',
          },
        },
      );
    const { entries, pages, version, creator } = await har(list);
    expect({ version, creator, pages }).toEqual({
      version: '1.2',
      creator: { name: 'Corral', version: '1.0' },
      pages: [],
    });
    expect(entries).toEqual([
      {
        startedDateTime: '2026-11-16T08:00:00.250Z',
        time: 500,
        request: {
          method: 'POST',
          url: 'http://a.test/p?q=1&q=%C3%A4',
          httpVersion: 'h2',
          cookies: [],
          headers: [
            { name: 'Content-Type', value: 'application/json' },
            { name: 'accept', value: '*/*' },
          ],
          queryString: [
            { name: 'q', value: '1' },
            { name: 'q', value: 'ä' },
          ],
          postData: { mimeType: 'application/json', text: '{"ä":1}' },
          headersSize: -1,
          bodySize: 8,
        },
        response: {
          status: 201,
          statusText: 'Created',
          httpVersion: 'h2',
          cookies: [],
          headers: [
            { name: 'content-length', value: '9000' },
            { name: 'link', value: 'one' },
            { name: 'link', value: 'two' },
          ],
          content: { size: 9000, mimeType: 'application/json', text: '{"cut":"…', comment: 'The body is shortened.' },
          redirectURL: '',
          headersSize: -1,
          bodySize: 9000,
          _transferSize: 9100,
        },
        serverIPAddress: '2001:db8::1',
        cache: {},
        timings: { blocked: -1, dns: -1, connect: -1, send: 0, wait: 250, receive: 250, ssl: -1 },
        _resourceType: 'fetch',
        _initiator: { type: 'script' },
      },
    ]);
  });

  test('each redirect is an entry of its own, also when its answer is lost', async () => {
    const moved = { status: 307, status_text: 'Temporary Redirect', mime_type: '', headers: { Location: '/b' } };
    const { list } = eventList()
      .add('network_request', get('1', 'http://a.test/a'))
      .add('network_response', get('1', 'http://a.test/a', moved))
      .add('network_request', get('1', 'http://a.test/b', { is_redirect: true, redirect_url: 'http://a.test/a' }))
      .add('network_request', get('1', 'http://a.test/c', { is_redirect: true, redirect_url: 'http://a.test/b' }))
      .add('network_response', get('1', 'http://a.test/c', { status: 204, status_text: '', mime_type: '' }));
    const seen = (await har(list)).entries.map(({ request, response, comment }) => ({
      url: request.url,
      status: response.status,
      to: response.redirectURL,
      noted: comment !== undefined,
    }));
    expect(seen).toEqual([
      { url: 'http://a.test/a', status: 307, to: '/b', noted: false },
      { url: 'http://a.test/b', status: 302, to: 'http://a.test/c', noted: true },
      { url: 'http://a.test/c', status: 204, to: '', noted: false },
    ]);
  });

  test('a request that fails, one without an end and an answer without its request are different entries', async () => {
    const { list } = eventList()
      .add('network_response', get('0', 'http://a.test/early', { status: 200, mime_type: 'text/plain' }))
      .add('network_request', get('1', 'http://a.test/refused'))
      .add('network_request', get('2', 'http://a.test/hangs'))
      .add('network_loading_failed', { ...t1, request_id: '1', error_text: 'net::ERR_CONNECTION_REFUSED' })
      .add('network_loading_failed', { ...t1, request_id: 'unknown', error_text: 'net::ERR_FAILED' });
    const { entries } = await har(list);
    expect(entries.map(({ request, response, comment }) => [request.url, response.status, response['_error'], comment]))
      .toMatchInlineSnapshot(`
        [
          [
            "http://a.test/early",
            200,
            undefined,
            "Capturing began after the request was sent.",
          ],
          [
            "http://a.test/refused",
            0,
            "net::ERR_CONNECTION_REFUSED",
            undefined,
          ],
          [
            "http://a.test/hangs",
            0,
            undefined,
            "The record has no answer to this request.",
          ],
        ]
      `);
  });

  test('requests of a browser that was started again are not mixed with those of its successor', async () => {
    const { list } = eventList()
      .add('network_request', get('1', 'http://a.test/before'))
      .add('monitor_disconnected', { reason: 'chrome_restarted' })
      .add('network_response', get('1', 'http://a.test/after', { status: 200, mime_type: 'text/plain' }));
    const { entries } = await har(list);
    expect(entries.map(({ request, response }) => [request.url, response.status])).toEqual([
      ['http://a.test/before', 0],
      ['http://a.test/after', 200],
    ]);
  });
});

test('requests belong to the page that asked for them, from the request for its document on', async () => {
  const frame = { ...t1, frame_id: 'F', target_id: 'F', target_type: 'other' };
  const { list } = eventList()
    .add('network_request', get('L1', 'http://a.test/old', { resource_type: 'Document' }))
    .add('network_request', get('L1', 'http://a.test/', { resource_type: 'Document', is_redirect: true }))
    .add('network_response', get('L1', 'http://a.test/', { status: 200, mime_type: 'text/html' }))
    .add('page_navigation', { ...t1, url: 'http://a.test/' })
    .add('page_navigation', { ...frame, parent_frame_id: 'T1', url: 'http://b.test/' })
    .add('network_request', get('2', 'http://b.test/x.js', frame))
    .add('network_response', get('2', 'http://b.test/x.js', { ...frame, status: 200, mime_type: 'text/javascript' }))
    .add('page_dom_content_loaded', t1)
    .add('page_load', t1)
    .add('page_navigation', { ...tab('T1', 'L2'), url: 'about:blank' })
    .add('network_request', get('3', 'http://a.test/sw.js', { target_id: 'W', frame_id: undefined }))
    .add('network_response', get('3', 'http://a.test/sw.js', { status: 200, mime_type: 'text/javascript' }));
  const { pages, entries } = await har(list);
  expect(pages).toEqual([
    {
      startedDateTime: '2026-11-16T08:00:00.250Z',
      id: 'page_1',
      title: 'http://a.test/',
      pageTimings: { onContentLoad: 1750, onLoad: 2000 },
    },
    {
      startedDateTime: '2026-11-16T08:00:02.500Z',
      id: 'page_2',
      title: 'about:blank',
      pageTimings: { onContentLoad: -1, onLoad: -1 },
    },
  ]);
  expect(entries.map(({ pageref }) => pageref)).toEqual(['page_1', 'page_1', 'page_1', undefined]);
});

test('websockets and events without data are left out, and the comment says so', async () => {
  const { list } = eventList()
    .add('network_request', get('1', 'ws://a.test/', { resource_type: 'WebSocket' }))
    .add('network_response');
  const { entries, comment } = await har(list);
  expect(entries).toEqual([]);
  expect(comment).toContain('Websockets are left out (1 here)');
  expect(comment).toContain('1 network events were too large to keep');
});

test('a value of many lines is one header', async () => {
  const headers = { few: 'one\ntwo', many: '\n'.repeat(8000) };
  const { list } = eventList().add('network_request', get('1', 'http://a.test/', { headers }));
  const { entries } = await har(list);
  expect(entries[0]!.request.headers.map(({ name }) => name)).toEqual(['few', 'few', 'many']);
});

describe('memory', () => {
  function* requests(many: number, more: object = {}): Generator<StoredEvent> {
    for (let seq = 1; seq <= many; seq++) {
      const data = get(String(seq), `http://a.test/${seq}`, more);
      yield { seq, event: { ts: seq, type: 'network_request', category: 'network', source: { kind: 'cdp' }, data } };
    }
  }

  /** The pieces of the document, one after the other. */
  const document = (list: Iterable<StoredEvent>) =>
    harDocument(sourceOf(list).source.read('s1', {}), { version: '1.0', sessionId: 's1' });

  test('holds the open requests only, and no more than a few thousand of them', async () => {
    const pieces: string[] = [];
    for await (const piece of document(requests(8000))) pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(1);
    const { log } = JSON.parse(pieces.join('')) as Har;
    expect(new Set(log.entries.map(({ request }) => request.url)).size).toBe(8000);
  });

  test('holds no more than 16 MiB of open requests', async () => {
    let read = 0;
    function* counted() {
      for (const one of requests(100, { post_data: 'x'.repeat(900_000) })) {
        read++;
        yield one;
      }
    }
    for await (const piece of document(counted())) {
      expect(piece).toContain('"http://a.test/1"');
      break;
    }
    expect(read).toBeLessThan(20);
  });

  test('holds no more than 16 MiB of addresses of pages', async () => {
    const path = 'x'.repeat(16_000);
    function* visits(): Generator<StoredEvent> {
      for (let at = 0; at < 1200; at++) {
        const data = { ...tab(`T${at}`, `L${at}`), url: 'http://a.test/' };
        yield { seq: at, event: { ts: at, type: 'page_navigation', category: 'page', source: { kind: 'cdp' }, data } };
      }
      for (let at = 0; at < 1200; at++) {
        const data = { ...tab(`T${at}`, `L${at}`), url: `http://a.test/${path}` };
        yield { seq: at, event: { ts: at, type: 'page_navigation', category: 'page', source: { kind: 'cdp' }, data } };
      }
    }
    const { pages } = await har(visits());
    expect(pages).toHaveLength(1200);
    const bytes = pages.reduce((sum, { title }) => sum + title.length, 0);
    expect(bytes).toBeLessThanOrEqual(16 * 2 ** 20);
    expect(bytes).toBeGreaterThan(15 * 2 ** 20);
  });
});

test('requests without an end and pages are written in small pieces, and others have their turn in between', async () => {
  function* events(): Generator<StoredEvent> {
    for (let seq = 1; seq <= 1000; seq++) {
      const data = get(String(seq), `http://a.test/${'x'.repeat(8000)}`, { resource_type: 'Document' });
      yield { seq, event: { ts: seq, type: 'network_request', category: 'network', source: { kind: 'cdp' }, data } };
    }
  }
  let [turns, over] = [0, false];
  const tick = () => void (over || (turns++, setImmediate(tick)));
  setImmediate(tick);
  let longest = 0;
  let text = '';
  for await (const piece of harDocument(sourceOf(events()).source.read('s1', {}), {
    version: '1.0',
    sessionId: 's1',
  })) {
    longest = Math.max(longest, piece.length);
    text += piece;
  }
  over = true;
  const { log } = JSON.parse(text) as Har;
  expect([log.entries.length, log.pages.length]).toEqual([1000, 1000]);
  expect(longest).toBeLessThan(100_000);
  expect(turns).toBeGreaterThan(1);
});
