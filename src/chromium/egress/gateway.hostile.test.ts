import { once } from 'node:events';
import http from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  cleanUp,
  connect,
  dataFrom,
  gatewayTo,
  get,
  listen,
  offLimits,
  open,
  patience,
  raw,
  request,
  cleanUpAfterEach,
} from '../../../test/support/gateway.ts';

cleanUpAfterEach();

/** What a client may send, and how many of the ports it names are allowed: the first one. */
const cases: [string, (allowed: number, forbidden: number) => string][] = [
  ['a server request', () => 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an asterisk', () => 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a scheme we do not speak', (a) => `GET ftp://127.0.0.1:${a}/ HTTP/1.1\r\n\r\n`],
  ['https without a tunnel', (a) => `GET https://127.0.0.1:${a}/ HTTP/1.1\r\n\r\n`],
  ['a user name that looks like a host', (a, f) => `GET http://127.0.0.1:${a}@127.0.0.1:${f}/ HTTP/1.1\r\n\r\n`],
  ['a user name in a tunnel', (a, f) => `CONNECT 127.0.0.1:${a}@127.0.0.1:${f} HTTP/1.1\r\n\r\n`],
  ['a backslash', (a, f) => `GET http://127.0.0.1:${f}\\@127.0.0.1:${a}/ HTTP/1.1\r\n\r\n`],
  ['a fragment', (a, f) => `GET http://127.0.0.1:${f}#@127.0.0.1:${a}/ HTTP/1.1\r\n\r\n`],
  ['a tunnel without a port', () => 'CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n'],
  ['a tunnel to a path', (a) => `CONNECT 127.0.0.1:${a}/x HTTP/1.1\r\n\r\n`],
  ['a tunnel to nowhere', () => 'CONNECT :80 HTTP/1.1\r\n\r\n'],
  ['a tunnel to port 0', () => 'CONNECT 127.0.0.1:0 HTTP/1.1\r\n\r\n'],
  ['a tunnel to port 65536', () => 'CONNECT 127.0.0.1:65536 HTTP/1.1\r\n\r\n'],
  ['a tunnel to a bare IPv6 address', (_, f) => `CONNECT ::1:${f} HTTP/1.1\r\n\r\n`],
  ['a NUL in the name', (_, f) => `CONNECT 127.0.0.1\0:${f} HTTP/1.1\r\n\r\n`],
  [
    'a length and chunks',
    (a) => `POST http://127.0.0.1:${a}/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  ['two lengths', (a) => `POST http://127.0.0.1:${a}/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd`],
  ['a length that is not a number', (a) => `POST http://127.0.0.1:${a}/ HTTP/1.1\r\nContent-Length: +4\r\n\r\nabcd`],
  ['a folded header', (a) => `GET http://127.0.0.1:${a}/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n`],
  ['a blank before the colon', (a) => `GET http://127.0.0.1:${a}/ HTTP/1.1\r\nContent-Length : 4\r\n\r\n`],
  ['a bare carriage return', (a) => `GET http://127.0.0.1:${a}/ HTTP/1.1\r\nA: b\rX: y\r\n\r\n`],
  [
    'an upgrade with a body',
    (a) =>
      `GET http://127.0.0.1:${a}/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nabcd`,
  ],
  ['headers without end', (a) => `GET http://127.0.0.1:${a}/ HTTP/1.1\r\nA: ${'b'.repeat(100_000)}\r\n\r\n`],
  ['an address without end', (a) => `GET http://127.0.0.1:${a}/${'b'.repeat(100_000)} HTTP/1.1\r\n\r\n`],
  ['a tunnel to a long host', (a) => `CONNECT ${'a.'.repeat(25_000)}:${a} HTTP/1.1\r\n\r\n`],
  ['a long host', (a) => `GET http://${'a'.repeat(301)}:${a}/ HTTP/1.1\r\n\r\n`],
  ['another protocol', () => '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'],
  ['HTTP/2 by prior knowledge', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
];

describe('a hostile client', () => {
  it.each(cases)('gets nowhere with %s', async (_, write) => {
    const allowed = await offLimits();
    const forbidden = await offLimits();
    const { gateway, port } = await gatewayTo([allowed.port]);
    // Closing is our way to know that the gateway has said all it has to say.
    const text = write(allowed.port, forbidden.port).replace(
      '\r\n\r\n',
      '\r\nProxy-Connection: x\r\nConnection: close\r\n\r\n',
    );
    expect(await raw(port, text)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(allowed.visits.filter((visit) => visit !== 'connection')).toEqual([]);
    expect(forbidden.visits).toEqual([]);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it.each([
    [
      'Host',
      (a: number, f: number) =>
        `GET http://127.0.0.1:${f}/ HTTP/1.1\r\nHost: 127.0.0.1:${a}\r\nConnection: close\r\n\r\n`,
    ],
    ['an odd spelling', (_: number, f: number) => `GET http://0x7f.1:${f}/ HTTP/1.1\r\nConnection: close\r\n\r\n`],
    ['a number', (_: number, f: number) => `CONNECT 2130706433:${f} HTTP/1.1\r\n\r\n`],
    ['an IPv4 address in IPv6 clothes', (_: number, f: number) => `CONNECT [::ffff:7f00:1]:${f} HTTP/1.1\r\n\r\n`],
    ['a loopback name', (_: number, f: number) => `CONNECT a.localhost.:${f} HTTP/1.1\r\n\r\n`],
    ['the unspecified address', (_: number, f: number) => `CONNECT 0.0.0.0:${f} HTTP/1.1\r\n\r\n`],
    ['HTTP/1.0', (_: number, f: number) => `GET http://127.0.0.1:${f}/ HTTP/1.0\r\n\r\n`],
    [
      'an upgrade',
      (_: number, f: number) =>
        `GET http://127.0.0.1:${f}/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
  ])('is not let through by %s', async (_, write) => {
    const allowed = await offLimits();
    const forbidden = await offLimits();
    const { gateway, port } = await gatewayTo([allowed.port]);
    const answer = await raw(port, write(allowed.port, forbidden.port));
    expect(answer).toMatch(/^HTTP\/1\.[01] 403 Forbidden\r\n/);
    expect(answer).toContain('destination_refused');
    expect([...allowed.visits, ...forbidden.visits]).toEqual([]);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('cannot hide a request behind another', async () => {
    const allowed = await offLimits();
    const forbidden = await offLimits();
    const { gateway, port } = await gatewayTo([allowed.port]);
    const hidden = get(forbidden.port, '/hidden');
    const answer = await raw(
      port,
      get(allowed.port, '/1', `Connection: content-length\r\nContent-Length: ${hidden.length}\r\n`) +
        hidden +
        get(forbidden.port, '/2') +
        get(allowed.port, '/3', 'Connection: close\r\n'),
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 403', 'HTTP/1.1 200']);
    expect(allowed.visits.filter((visit) => visit !== 'connection').sort()).toEqual(['/1', '/3']);
    expect(forbidden.visits).toEqual([]);
    await gateway.close();
    expect(gateway.counters).toMatchObject({ clients: 0, upstreams: 0 });
  });

  it('is disconnected when it sends many requests without waiting for answers', async () => {
    const dialled: unknown[] = [];
    const { gateway, port } = await gatewayTo([9], { dial: (target) => new Promise(() => dialled.push(target)) });
    expect(await raw(port, get(9, '/').repeat(1000))).toBe('');
    expect(dialled.length).toBeLessThan(10);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('cannot have any number of connections opened by leaving before they are open', async () => {
    const dialled: unknown[] = [];
    const { port } = await gatewayTo([9], {
      dial: (target) => new Promise(() => dialled.push(target)),
      limits: { opening: 3 },
    });
    for (let client = 1; client <= 3; client++) {
      const socket = connect(port);
      socket.write(get(9, '/'));
      await expect.poll(() => dialled.length, patience).toBe(client);
      socket.destroy();
    }
    const answer = await raw(port, get(9, '/', 'Connection: close\r\n'));
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(answer).toContain('X-Corral-Egress: too_many_connections');
    expect(dialled).toHaveLength(3);
  });

  it('has its tunnels opened in several turns of the event loop, also again for another proxy', async () => {
    let turn = 0;
    const counting = setInterval(() => turn++, 0);
    cleanUp.push(() => clearInterval(counting));
    const dialled: number[] = [];
    const { gateway, port } = await gatewayTo([9], {
      dial: (_, { signal }) => {
        dialled.push(turn);
        for (const began = performance.now(); performance.now() - began < 3;); // as if it took 3 ms of work
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    });
    const clients = Array.from({ length: 40 }, () => connect(port));
    await Promise.all(clients.map((client) => once(client, 'connect')));
    await expect.poll(() => gateway.counters.clients, patience).toBe(40);
    for (const client of clients) client.write('CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n');
    await expect.poll(() => dialled.length, patience).toBe(40);
    gateway.setProxy({ protocol: 'http', host: '127.0.0.1', port: 9, bypassHosts: [] });
    await expect.poll(() => dialled.length, patience).toBe(80);
    for (const part of [dialled.slice(0, 40), dialled.slice(40)]) {
      const most = Math.max(...part.map((one) => part.filter((other) => other === one).length));
      expect(most).toBeLessThan(15);
    }
  });

  it('cannot slip words of the gateway into the answer of a server', async () => {
    const target = await listen(
      http.createServer((_, response) => response.writeHead(200, { 'Content-Length': 9 }).write('half')),
    );
    const { gateway, port } = await gatewayTo([target]);
    const socket = connect(port);
    socket.write(get(target, '/'));
    expect(String(await dataFrom(socket))).toMatch(/half$/);
    const rest: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => rest.push(chunk)).on('end', () => socket.end());
    socket.write('nonsense\r\n\r\n');
    await once(socket, 'close');
    expect(Buffer.concat(rest).toString()).toBe('');
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('is not followed by the gateway when an allowed server redirects to a refused one', async () => {
    const forbidden = await offLimits();
    const location = `http://127.0.0.1:${forbidden.port}/`;
    const target = await listen(http.createServer((_, response) => response.writeHead(302, { location }).end()));
    const { port } = await gatewayTo([target]);
    expect(await request(port, `http://127.0.0.1:${target}/`)).toMatchObject({ status: 302, headers: { location } });
    expect((await request(port, location)).status).toBe(403);
    expect(forbidden.visits).toEqual([]);
  });
});
