import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { expectDoctorAgrees } from '../support/doctor-agrees.ts';
import { startService, type Answer, type Service } from '../support/service.ts';

let service: Service;
beforeAll(async () => {
  service = await startService({ CORRAL_SESSION_HOSTS: 'http://*.sessions.test' });
});
afterAll(() => service?.close());

test('a session has a host of its own, for clients that keep host and port of an address', async () => {
  const sdk = service.sdk();
  const made = await service.call('POST', '/browsers', { headless: true, headles: true });
  expect(made.body.warnings).toEqual(['headles is not a field here and was ignored. Did you mean headless?']);
  const { session_id: id, base_url } = made.body;
  const { host } = new URL(base_url);
  const { hostname, port } = new URL(service.url);
  const at = (name: string, path: string) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const asked = get({ hostname, port, path, headers: { host: name } }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => (text += part));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      asked.on('error', reject);
    });
  const list = await at(host, '/json/list');
  const [page] = JSON.parse(list.text) as { id: string; webSocketDebuggerUrl: string }[];
  expect(page!.webSocketDebuggerUrl).toBe(`ws://${host}/devtools/page/${page!.id}`);
  const version = JSON.parse((await at(host, '/json/version')).text) as { webSocketDebuggerUrl: string };
  expect(version.webSocketDebuggerUrl).toBe(`ws://${host}/devtools/browser/${id}`);
  const answerAt = async (path: string, message: object): Promise<string> => {
    const socket = new WebSocket(`ws://${hostname}:${port}${path}`, { headers: { host } });
    await once(socket, 'open');
    const answer = new Promise<string>((resolve) => {
      socket.on('message', (data: Buffer) => {
        if ((JSON.parse(String(data)) as { id?: number }).id === 1) resolve(String(data)); // the others are events
      });
    });
    socket.send(JSON.stringify({ id: 1, ...message }));
    return answer.finally(() => socket.close());
  };
  const sum = { method: 'Runtime.evaluate', params: { expression: '6*7' } };
  expect(await answerAt(`/devtools/page/${page!.id}`, sum)).toContain('42');
  expect(await answerAt(`/devtools/browser/${id}`, { method: 'Browser.getVersion' })).toContain('protocolVersion');
  expect((await at(host, '/browsers')).status).toBe(404);
  const another = (host.startsWith('x') ? 'y' : 'x') + host.slice(1);
  expect((await at(another, '/json/version')).status).toBe(401);
  await sdk.browsers.deleteByID(id);
  expect([401, 404]).toContain((await at(host, '/json/version')).status); // ended, or ending
});

describe('without a key', () => {
  test.each(['/health', '/ready', '/openapi.json', '/docs'])('%s answers', async (path) => {
    expect((await fetch(service.url + path)).status).toBe(200);
  });

  test('/docs needs nothing from anywhere else', async () => {
    const page = await (await fetch(`${service.url}/docs/`)).text();
    const assets = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, asset]) => asset!);
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) {
      if (asset.startsWith('data:')) continue; // it is in the page
      expect(new URL(asset, `${service.url}/docs/`).origin).toBe(service.url);
      expect((await fetch(new URL(asset, `${service.url}/docs/`))).status).toBe(200);
    }
  });

  test.each(['/org/projects', '/org/limits', '/org/api_keys', '/audit-logs', '/metrics', '/about'])(
    '%s is shut',
    async (path) => {
      const response = await fetch(service.url + path);
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ code: 'unauthorized', message: expect.stringContaining('Bearer') });
    },
  );
});

describe('a key that does not fit', () => {
  test.each([
    ['unknown', 'Bearer sk_0000000000000000000000000000000000000000'],
    ['empty', 'Bearer '],
    ['of another scheme', 'Basic dTpw'],
    ['with spaces', 'Bearer a b'],
    ['enormous', `Bearer ${'x'.repeat(8000)}`],
  ])('%s is a 401', async (_, authorization) => {
    expect(await service.call('GET', '/org/projects', undefined, { authorization })).toMatchObject({
      status: 401,
      body: { code: 'unauthorized' },
    });
  });

  test('is refused before its body is read', async () => {
    const answer = await service.call('POST', '/org/projects', 'x'.repeat(2_000_000), {
      authorization: 'Bearer sk_no',
    });
    expect(answer.status).toBe(401);
  });
});

// Each is refused with a code and a sentence that names the field, and changes nothing.
describe('bad input', () => {
  const count = async () => (await service.call('GET', '/org/projects?limit=100')).body.length as number;

  test.each<[string, string, string, unknown, number, string]>([
    ['malformed JSON', 'POST', '/org/projects', '{"name": ', 400, 'JSON'],
    ['JSON that is not an object', 'POST', '/org/projects', '[1]', 400, 'body must be an object'],
    ['JSON null', 'POST', '/org/projects', 'null', 400, 'body must be an object'],
    ['no body at all', 'POST', '/org/projects', undefined, 400, 'name is missing'],
    ['an empty JSON body', 'POST', '/org/projects', '', 400, 'name is missing'],
    ['a wrong type', 'POST', '/org/projects', { name: 5 }, 400, 'name must be a string'],
    ['an empty name', 'POST', '/org/projects', { name: '' }, 400, 'name must have at least 1 character'],
    ['a name of 256 characters', 'POST', '/org/projects', { name: 'x'.repeat(256) }, 400, 'at most 255'],
    ['a NUL in a name', 'POST', '/org/projects', { name: 'a\0b' }, 400, 'NUL'],
    ['a newline in a name', 'POST', '/org/projects', { name: 'a\r\nX-Evil: 1' }, 400, 'name has characters'],
    ['a prototype in the body', 'POST', '/org/projects', '{"name":"x","__proto__":{"a":1}}', 400, '__proto__'],
    [
      'an unknown enum value',
      'PATCH',
      '/org/projects/Default',
      { status: 'gone' },
      400,
      'status must be one of active, archived',
    ],
    ['a negative limit', 'PATCH', '/org/limits', { default_project_max_concurrent_sessions: -1 }, 400, 'at least 0'],
    ['a fraction', 'PATCH', '/org/limits', { default_project_max_concurrent_sessions: 1.5 }, 400, 'an integer'],
    [
      'days out of range',
      'POST',
      '/org/api_keys',
      { name: 'k', days_to_expire: 3651 },
      400,
      'days_to_expire must be at most 3650',
    ],
    ['zero days', 'POST', '/org/api_keys', { name: 'k', days_to_expire: 0 }, 400, 'days_to_expire must be at least 1'],
    ['a project that is not there', 'POST', '/org/api_keys', { name: 'k', project_id: 'proj_no' }, 404, 'proj_no'],
    ['a limit of 0', 'GET', '/org/projects?limit=0', undefined, 400, 'query parameter limit must be at least 1'],
    ['a limit of 101', 'GET', '/org/projects?limit=101', undefined, 400, 'limit must be at most 100'],
    ['a limit that is no number', 'GET', '/org/projects?limit=ten', undefined, 400, 'limit must be an integer'],
    ['two limits', 'GET', '/org/projects?limit=1&limit=2', undefined, 400, 'limit must be an integer'],
    ['a negative offset', 'GET', '/org/projects?offset=-1', undefined, 400, 'offset must be at least 0'],
    ['an offset beyond everything', 'GET', '/org/projects?offset=1e300', undefined, 400, 'offset must be at most'],
    ['a NUL in the query', 'GET', '/org/projects?query=%00', undefined, 400, 'NUL'],
    ['a NUL in the path', 'GET', '/org/projects/%00', undefined, 400, 'NUL'],
    ['slashes in an id', 'GET', '/org/projects/a%2F..%2Fb', undefined, 404, "'a/../b'"],
    ['an endless id', 'GET', `/org/projects/${'x'.repeat(1000)}`, undefined, 404, 'xxx'],
    ['broken percent signs', 'GET', '/org/projects/%zz', undefined, 400, '%zz'],
    ['a path that is not served', 'GET', '/nothing/here', undefined, 404, '/nothing/here'],
    ['a method that is not served', 'PUT', '/org/projects', {}, 404, 'PUT /org/projects'],
  ])('%s', async (_, method, path, body, status, message) => {
    const before = await count();
    const answer = await service.call(method, path, body);
    expect(answer).toMatchObject({
      status,
      body: { code: expect.any(String), message: expect.stringContaining(message) },
    });
    expect(answer.text).not.toMatch(/\bat .*\.[jt]s:\d+/);
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    expect(await count()).toBe(before);
  });

  test('a megabyte of garbage is a 413, and 900 KB of it a 400', async () => {
    expect(await service.call('POST', '/org/projects', 'x'.repeat(1024 * 1024 + 1))).toMatchObject({
      status: 413,
      body: { code: 'payload_too_large' },
    });
    expect(await service.call('POST', '/org/projects', 'x'.repeat(900_000))).toMatchObject({ status: 400 });
  });

  test('another content type is a 415', async () => {
    const answer = await service.call('POST', '/org/projects', '<name/>', { 'content-type': 'text/xml' });
    expect(answer).toMatchObject({ status: 415, body: { message: expect.stringContaining('text/xml') } });
  });

  test.each([
    ['a header with a newline in it', `GET /health HTTP/1.1\r\nHost: x\r\nX-Kernel-Project-Id: a\nb\r\n\r\n`, '400'],
    ['nonsense', 'HELLO there\r\n\r\n', '400'],
    ['binary', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]), '400'],
    ['headers without end', `GET /health HTTP/1.1\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`, '431'],
    [
      'two lengths',
      'POST /org/projects HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      '400',
    ],
  ])('%s is answered and hung up on', async (_, bytes, status) => {
    const { hostname, port } = new URL(service.url);
    const answer = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect(Number(port), hostname, () => socket.write(bytes));
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('error', () => {}); // what it did not read of our bytes resets the connection behind its answer
      socket.on('close', () => resolve(text));
    });
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain('"code":"bad_request"');
  });

  test('none of it was our fault', () => {
    expect(service.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
  });
});

describe('manners', () => {
  test('fields we do not know are passed over, and said', async () => {
    const answer = await service.call('POST', '/org/projects', { name: 'tolerant', colour: 'red', flags: [] });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('x-ignored-fields')).toBe('colour, flags');
    expect(answer.body.warnings).toEqual([
      'colour is not a field here and was ignored.',
      'flags is not a field here and was ignored.',
    ]);
  });

  test('a client that prefers strict handling gets an error for unknown fields, with the nearest names', async () => {
    const wrong = { headles: true, viewport: { widht: 800, width: 800, height: 600 } };
    const strict = await service.call('POST', '/browsers', wrong, { Prefer: 'wait=5, handling=strict' });
    expect([strict.status, strict.headers.get('preference-applied')]).toEqual([400, 'handling=strict']);
    expect(strict.body).toMatchObject({
      code: 'invalid_input',
      message:
        'headles is not a field here. Did you mean headless? viewport.widht is not a field here. Did you mean viewport.width?',
    });
  });

  test('an optional body may be missing, empty or {}', async () => {
    for (const body of [undefined, '', {}]) {
      const { body: key } = await service.call('POST', '/org/api_keys', { name: 'rotated' });
      expect(await service.call('POST', `/org/api_keys/${key.id}/rotate`, body)).toMatchObject({ status: 201 });
    }
  });

  test('an empty answer carries no JSON label', async () => {
    const { body } = await service.call('POST', '/org/projects', { name: 'to delete' });
    const answer = await service.call('DELETE', `/org/projects/${body.id}`);
    expect(answer).toMatchObject({ status: 204, text: '' });
    expect(answer.headers.get('content-type')).toBeNull();
  });

  test('an invitation to HTTP/2 is declined by answering, body, next request and all', async () => {
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    let heard = '';
    socket.on('data', (data) => (heard += data.toString()));
    const invitation = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n';
    const common = `Host: ${hostname}\r\nAuthorization: Bearer ${service.key}\r\n`;
    const body = JSON.stringify({ name: 'Invited' });
    socket.write(
      `POST /org/projects HTTP/1.1\r\n${common}${invitation}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
    );
    await sleep(50); // the rest comes later, as from a client that sends head and body apart
    socket.write(body.slice(5));
    await expect.poll(() => heard).toMatch(/^HTTP\/1\.1 201 .*"name":"Invited"/s);
    heard = '';
    socket.write(`GET /org/projects HTTP/1.1\r\n${common}${invitation}\r\n`);
    await expect.poll(() => heard).toMatch(/^HTTP\/1\.1 200 .*"name":"Invited"/s);
    socket.destroy();
  });

  test('a request id is in the response and in the log', async () => {
    const answer = await service.call('POST', '/org/projects', { name: 'logged' });
    const id = answer.headers.get('x-request-id')!;
    await expect.poll(() => service.log.some((line) => line.includes(id))).toBe(true);
  });

  test('no key is ever in the log', async () => {
    const { body } = await service.call('POST', '/org/api_keys', { name: 'quiet' });
    await service.call('GET', `/org/projects?token=${body.key}`, undefined, { authorization: `Bearer ${body.key}` });
    expect(service.log.join('')).not.toContain(body.key);
    expect(service.log.join('')).not.toContain(service.key);
  });

  test('/about shows versions, settings without secrets and the findings of the doctor', async () => {
    const asked = [service.call('GET', '/about'), service.call('GET', '/about')];
    const [{ status, body, text }, other] = (await Promise.all(asked)) as [Answer, Answer];
    expect(status).toBe(200);
    expect(body.public_url).toBe(service.url);
    expect(body.versions).toMatchObject({
      corral: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.versions.node,
      chromium: expect.stringMatching(/^\d+\.\d+/),
      postgresql: expect.stringMatching(/^\d+/),
    });
    expect(body.settings).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'CORRAL_DATA_DIR', value: service.dataDir, is_default: false }),
        expect.objectContaining({ name: 'CORRAL_SESSION_HOSTS', value: 'http://*.sessions.test', redacted: false }),
        expect.objectContaining({ name: 'CORRAL_PUBLIC_URL', value: service.url, is_default: true }),
        expect.objectContaining({ name: 'CORRAL_API_KEY', value: '', is_default: true }),
      ]),
    );
    expect(text).not.toContain(service.key);
    expect(body.doctor).toMatchObject({ failure: null, checked_at: expect.any(String) });
    expect(body.doctor.findings).toEqual(
      expect.arrayContaining([
        { name: 'node', well: true, saw: process.versions.node },
        expect.objectContaining({ name: 'sandbox' }),
      ]),
    );
    expect(other.body.doctor).toEqual(body.doctor); // one check of the machine serves both requests
    await expectDoctorAgrees((path) => service.call('GET', path));
  }, 300_000);

  test('/about and /metrics report for how long the event loop was blocked', async () => {
    const end = Date.now() + 200; // the service runs in this process
    while (Date.now() < end);
    const eventLoop = async () => (await service.call('GET', '/about')).body.event_loop;
    await expect.poll(async () => (await eventLoop()).longest_stop_ms).toBeGreaterThanOrEqual(200);
    expect(await eventLoop()).toMatchObject({
      longest_stop_since_start_ms: expect.any(Number),
      longest_stop_at: expect.stringMatching(/^20.*Z$/),
    });
    const { text } = await service.call('GET', '/metrics');
    expect(Number(/^corral_event_loop_longest_stop_seconds (.*)$/m.exec(text)?.[1])).toBeGreaterThanOrEqual(0.2);
    expect(Number(/^corral_event_loop_stop_seconds_count (.*)$/m.exec(text)?.[1])).toBeGreaterThan(0);
  });

  test('/ready says what each part does, and /metrics has figures by route', async () => {
    const ready = await service.call('GET', '/ready');
    expect(ready.body).toMatchObject({
      status: expect.stringMatching(/ready|degraded/),
      parts: expect.arrayContaining([
        { name: 'store', ok: true },
        { name: 'browser', ok: true },
      ]),
    });
    const { text } = await service.call('GET', '/metrics');
    expect(text).toContain(
      'corral_http_request_duration_seconds_count{method="POST",route="/org/projects",status="201"}',
    );
  });
});
