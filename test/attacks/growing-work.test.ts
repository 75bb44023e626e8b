import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { zipOf } from '../support/extension-zip.ts';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { startPages, type Pages } from '../support/pages.ts';

/** As many fields and buttons as are read of one frame, each with long words. */
const frame = Array.from({ length: 200 }, (_, at) => {
  const words = `please enter code number ${at} of your account `.repeat(4);
  return `<p>${words}${at}</p><input title="${words}"><button type=button>${words}</button>`;
}).join('');
const requests = `<script>(async () => {
  const ask = (at) => fetch('/answer?' + at).then((answer) => answer.text());
  for (let at = 0; at < 400; at += 20) await Promise.all(Array.from({ length: 20 }, (_, more) => ask(at + more)));
  document.title = 'Done';
})()</script>`;

/** JSON escapes half of it. */
const large = 'ж"'.repeat(9 * 2 ** 20);

let pages: Pages;
let service: Awaited<ReturnType<typeof measuredService>>;
beforeAll(async () => {
  pages = await startPages({
    '/login': `<title>Log in</title>${frame}${'<iframe src=/frame></iframe>'.repeat(19)}`,
    '/frame': frame,
    '/requests': requests,
    '/large': large,
  });
  service = await measuredService({ CORRAL_ALLOW_PRIVATE_HOSTS: pages.host });
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

async function made(path: string, body: object): Promise<Record<string, string>> {
  const answer = await service.call('POST', path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body as Record<string, string>;
}

/** Uploads a zip as an extension, which must be refused. */
async function extensionRefused(zip: Uint8Array) {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(zip)]), 'extension.zip');
  const headers = { authorization: `Bearer ${service.key}` };
  const { status } = await fetch(`${service.url}/extensions`, { method: 'POST', headers, body: form });
  expect(status).toBe(400);
}

/** JSON of about this many bytes that takes long to parse. */
const worst = {
  'many empty objects': (bytes: number) => `[${'{},'.repeat(bytes / 3)}{}]`,
  'many names': (bytes: number) => {
    let names = '"timeout_seconds":"none"';
    for (let at = 0; names.length < bytes; at++) names += `,"k${at.toString(36)}":0`;
    return `{${names}}`;
  },
  'deep nesting': (bytes: number) => `{"tags":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`,
  'many escapes': (bytes: number) => `{"name":"${'\\n'.repeat(bytes / 2)}"}`,
  'many letters of two bytes': (bytes: number) => `{"name":"${'ж'.repeat(bytes / 2)}"}`,
};

test.each(Object.entries(worst))('a body of %s does not stop the service', async (_shape, make) => {
  const body = make(5.9 * 2 ** 20);
  const stop = await service.longestStop(async () => {
    const { status } = await service.call('POST', '/browsers', body).catch(() => ({ status: 413 })); // it may be cut off
    expect([400, 413]).toContain(status);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

/** The largest bodies that routes take, each as one long string. */
const long = {
  letters: (bytes: number) => 'x'.repeat(bytes),
  'letters of two bytes': (bytes: number) => 'ж'.repeat(bytes / 2),
  escapes: (bytes: number) => '\\n'.repeat(bytes / 2),
  'escaped letters': (bytes: number) => '\\u0436'.repeat(bytes / 6),
};

test.each(Object.entries(long))(
  'bodies of the largest size with a string of %s do not stop the service',
  async (_, make) => {
    const { session_id = '' } = await made('/browsers', { headless: true });
    const ways: [path: string, mib: number, before: string, after: string][] = [
      ['/session', 32, '{"capabilities":{"alwaysMatch":{"browserName":"', '"}}}'],
      ['/session', 6, '{"capabilities":{"alwaysMatch":{"browserName":"', '"}}}'],
      [`/browsers/${session_id}/curl`, 24, '{"url":"http://nowhere.invalid/","method":"POST","body":"', '"}'],
      [`/browsers/${session_id}/curl`, 8, '{"url":"http://nowhere.invalid/","method":"POST","body":"', '"}'],
      ['/v1/sessions', 16, '{"userAgent":"', '"}'],
      ['/v1/sessions', 8, '{"userAgent":"', '"}'],
      [`/browsers/${session_id}/process/exec`, 8, '{"command":"true","args":["', '"]}'],
    ];
    const stops: Record<string, number> = {};
    for (const [path, mib, before, after] of ways) {
      const body = before + make(mib * 2 ** 20 - 200) + after;
      stops[`${path} ${mib}`] = await service.longestStop(async () => {
        const { status } = await service.call('POST', path, body).catch(() => ({ status: 413 })); // it may be cut off
        expect(status).toBeGreaterThanOrEqual(400);
      });
    }
    expect(Math.max(...Object.values(stops)), JSON.stringify(stops)).toBeLessThan(mostStopMs);
  },
);

test('a request through the browser with a large body, or with a large answer, does not stop the service', async () => {
  const { session_id, base_url } = await made('/browsers', { headless: true });
  const body = Buffer.alloc(32 * 2 ** 20, 'x');
  const raw = `${base_url}/curl/raw?url=${encodeURIComponent('http://nowhere.invalid/')}`;
  const stops = {
    body: await service.longestStop(async () => {
      const answer = await fetch(raw, { method: 'POST', body });
      expect(answer.status).toBe(502); // the body was sent to the browser; there is no such host
      await answer.arrayBuffer();
    }),
    answer: await service.longestStop(async () => {
      const answer = await service.call('POST', `/browsers/${session_id}/curl`, { url: `${pages.url}large` });
      expect(answer.body.body).toHaveLength(large.length);
    }),
  };
  expect(Math.max(...Object.values(stops)), JSON.stringify(stops)).toBeLessThan(mostStopMs);
});

test('a request through the browser with tens of thousands of headers is refused, and does not stop the service', async () => {
  const { session_id } = await made('/browsers', { headless: true });
  const value = 'x'.repeat(130);
  const headers = Object.fromEntries(Array.from({ length: 49_000 }, (_, i) => [`x-${i}`, value]));
  const body = JSON.stringify({ url: 'http://nowhere.invalid/', headers });
  const stop = await service.longestStop(async () => {
    const answer = await service.call('POST', `/browsers/${session_id}/curl`, body);
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('headers')]);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test.each(['Application/JSON', '\u00A0application/json', 'APPLICATION/json; charset=utf-8'])(
  'a body of the type %j is weighed as JSON',
  async (type) => {
    const body = worst['many empty objects'](5.9 * 2 ** 20);
    const stop = await service.longestStop(async () => {
      const answer = service.call('POST', '/browsers', body, { 'content-type': type });
      expect((await answer.catch(() => ({ status: 413 }))).status).toBe(413); // it may be cut off
    });
    expect(stop).toBeLessThan(mostStopMs);
  },
);

test('a body that grows too large, and then too heavy, ends no more than its own request', async () => {
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  const head = `POST /console/sign_in HTTP/1.1\r\nHost: corral\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const { hostname, port } = new URL(service.url);
  for (let times = 0; times < 20; times++) {
    const socket = connect(Number(port), hostname).on('error', () => {}); // the service may reset it
    socket.write(head + chunk(' '.repeat(1.2 * 2 ** 20)) + chunk(','.repeat(200 * 1024)));
    await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    socket.destroy();
  }
  expect((await service.call('GET', '/browsers')).status).toBe(200);
  expect(service.child.exitCode ?? service.child.signalCode, service.output()).toBeNull();
  expect(service.output()).not.toContain('"fault"');
});

test.each([
  ['with many unknown arguments', Object.fromEntries(Array.from({ length: 49_000 }, (_, at) => [`k${at}`, 0])), 413],
  ['with many wrong items', { action: 'create', extensions: Array.from({ length: 9000 }, () => 0) }, 200],
])('a call of a tool %s does not stop the service', async (_shape, args, status) => {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'manage_browsers', arguments: args } };
  const stop = await service.longestStop(async () => {
    const accept = 'application/json, text/event-stream';
    expect((await service.call('POST', '/mcp', call, { accept })).status).toBe(status);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test('calls of many tools at once do not stop the service', async () => {
  const accept = 'application/json, text/event-stream';
  const listed = await service.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { accept });
  const names = listed.body.result.tools.map(({ name }: { name: string }) => name).slice(0, 20);
  const calls = names.map((name: string, id: number) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: { no: 'argument' } },
  }));
  const stop = await service.longestStop(async () => {
    const { status, body } = await service.call('POST', '/mcp', calls, { accept });
    expect([status, body.length]).toEqual([200, calls.length]);
  });
  expect(stop).toBeLessThan(mostStopMs);
});

test('a small body with as many names as it can have does not stop the service', async () => {
  const body = worst['many names'](64 * 1024 - 20);
  const stop = await service.longestStop(() => service.call('POST', '/profiles', body));
  expect(stop).toBeLessThan(mostStopMs);
});

test('a zip whose names have hundreds of directories each does not stop the service', async () => {
  const deep = (levels: number, at: number) => `${at}/${'d/'.repeat(levels)}f`;
  const filesOf = (levels: number, many: number) =>
    Object.fromEntries(Array.from({ length: many }, (_, at) => [deep(levels, at), '']));
  for (const [levels, many] of [
    [500, 1500],
    [95, 4000],
  ] as const) {
    const zip = await zipOf(filesOf(levels, many));
    expect(await service.longestStop(() => extensionRefused(zip))).toBeLessThan(mostStopMs);
  }
});

test('a manifest of many values does not stop the service', async () => {
  const zip = await zipOf({ 'manifest.json': worst['many empty objects'](1_000_000) });
  expect(await service.longestStop(() => extensionRefused(zip))).toBeLessThan(mostStopMs);
});

test('code that returns a million values does not stop the service', async () => {
  const { session_id: id } = await made('/browsers', { headless: true, timeout_seconds: 600 });
  const stop = await service.longestStop(async () => {
    const code = 'return Array.from({ length: 1_000_000 }, () => ({}))';
    const answer = await service.call('POST', `/browsers/${id}/playwright/execute`, { code });
    expect(answer.body.result).toHaveLength(1_000_000);
  });
  expect(stop).toBeLessThan(mostStopMs);
  await service.call('DELETE', `/browsers/${id}`);
});

test('the export of hundreds of requests does not stop the service', async () => {
  const telemetry = { browser: { network: { enabled: true } } };
  const { session_id: id } = await made('/browsers', {
    headless: true,
    timeout_seconds: 600,
    telemetry,
    start_url: `${pages.url}requests`,
  });
  await vi.waitFor(
    async () => {
      const code = 'return page.title()';
      const { body } = await service.call('POST', `/browsers/${id}/playwright/execute`, { code });
      expect(body.result).toBe('Done');
    },
    { timeout: 120_000, interval: 1000 },
  );
  for (const kind of ['har', 'trace']) {
    const stop = await service.longestStop(async () => {
      const { status, text } = await service.call('GET', `/browsers/${id}/telemetry/${kind}`);
      expect(status).toBe(200);
      expect(text.length).toBeGreaterThan(50_000);
    });
    expect(stop).toBeLessThan(mostStopMs);
  }
  await service.call('DELETE', `/browsers/${id}`);
});

test('a login page of 20 frames with 400 elements each does not stop the service', async () => {
  let run = 0;
  const stop = await service.longestStop(async () => {
    const { id } = await made('/auth/connections', {
      domain: pages.host,
      profile_name: `profile-${run++}`,
      login_url: `${pages.url}login`,
    });
    await made(`/auth/connections/${id}/login`, {});
    await vi.waitFor(
      async () => {
        const { body } = await service.call('GET', `/auth/connections/${id}`);
        expect(body.flow_step).toBe('AWAITING_INPUT'); // the page has been read
      },
      { timeout: 110_000, interval: 1000 },
    );
    await service.call('DELETE', `/auth/connections/${id}`);
  });
  expect(stop).toBeLessThan(mostStopMs);
});
