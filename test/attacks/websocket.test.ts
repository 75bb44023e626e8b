import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requireSandbox } from '../support/sandbox.ts';
import { BINARY, close, CLOSE, CONTINUATION, frame, hears, PING, PONG, TEXT } from '../support/frames.ts';
import { startService, type Service } from '../support/service.ts';
import { upgrade } from '../support/upgrade.ts';
import { faults } from '../support/websocket-faults.ts';

await requireSandbox();

/** Bytes on a bare socket, where a client library would keep to the rules: the CDP endpoint of a real session. */
describe('a websocket of a session keeps to RFC 6455', () => {
  let service: Service;
  let address: string;
  const open: Socket[] = [];

  beforeAll(async () => {
    service = await startService();
    const { cdp_ws_url } = await service.sdk().browsers.create({ headless: true, timeout_seconds: 600 });
    address = cdp_ws_url;
  });
  afterAll(async () => {
    for (const socket of open) socket.destroy();
    await service?.close();
  });

  async function attach() {
    const { socket } = await upgrade(address);
    if (!socket) throw new Error('The service refused the websocket.');
    open.push(socket);
    return { socket, server: hears(socket) };
  }
  const command = (id: number, filler = '') =>
    JSON.stringify({ id, method: 'Browser.getVersion', params: filler === '' ? {} : { filler } });

  test.each(faults)('$what is refused with $code', async ({ sends, code }) => {
    const { socket, server } = await attach();
    socket.write(sends);
    expect(await server.close()).toMatchObject({ code });
    expect((await server.end()).length).toBe(0); // and the connection is ended behind it
    socket.end();
  });

  test('an address that is not percent-encoded text is refused as a bad request', async () => {
    const terminal = '/browsers/%zz/process/00000000-0000-4000-8000-000000000000/attach';
    const refused = await upgrade(`${service.url}${terminal}`, { authorization: `Bearer ${service.key}` });
    expect(refused).toMatchObject({ status: 400, body: { code: 'bad_request' } });
  });

  test('a refused upgrade and a connection that is closed for a fault name their request, which the log knows', async () => {
    const logged = (id: unknown, message: string) =>
      service.log.some((line) => line.includes(String(id)) && line.includes(message));
    const refused = await upgrade(`${service.url}/browser/cdp?jwt=none`);
    const { 'x-request-id': id } = refused.headers;
    expect(id).toMatch(/^req_\w+$/);
    expect(refused).toMatchObject({ status: 401, body: { code: 'unauthorized', request_id: id } });
    await expect.poll(() => logged(id, 'socket.refused')).toBe(true);

    const { socket, headers } = await upgrade(address);
    open.push(socket!);
    const server = hears(socket!);
    socket!.write(faults[0]!.sends);
    expect((await server.close())!.reason).toMatch(new RegExp(`. \\(${headers['x-request-id'] as string}\\)$`));
    await expect.poll(() => logged(headers['x-request-id'], 'socket.closed')).toBe(true);
  });

  describe('valid messages', () => {
    const euro = Buffer.from(command(1, 'a€😀ÿ\u{10ffff}￿'));
    test.each([
      ['a text', [frame(euro)]],
      ['a text of 65536 bytes', [frame(command(1, 'x'.repeat(65_536 - Buffer.byteLength(command(1, '.')) + 1)))]],
      ['a text of 3 MiB', [frame(command(1, '€'.repeat(1024 * 1024)))]],
      [
        'a text in fragments of one byte, whose characters they cut',
        [
          frame('', { final: false }),
          ...[...euro].map((byte) => frame(Buffer.from([byte]), { opcode: CONTINUATION, final: false })),
          frame('', { opcode: CONTINUATION }),
        ],
      ],
      [
        'control frames between fragments',
        [
          frame(euro.subarray(0, 10), { final: false }),
          frame('between', { opcode: PING }),
          frame('nobody asked', { opcode: PONG }),
          frame(euro.subarray(10), { opcode: CONTINUATION }),
        ],
      ],
    ] as [string, Buffer[]][])('%s is a command, and gets its answer', async (_what, frames) => {
      const { socket, server } = await attach();
      socket.write(Buffer.concat(frames));
      let heard = await server.next();
      if (heard?.opcode === PONG) heard = await server.next();
      expect(heard?.opcode).toBe(TEXT);
      expect(JSON.parse(String(heard?.payload))).toMatchObject({ id: 1 });
      socket.destroy();
    });

    test.each([0, 1, 125])('a ping of %i bytes comes back as a pong', async (length) => {
      const { socket, server } = await attach();
      const payload = Buffer.alloc(length, 0xfe); // no UTF-8, and it need not be
      socket.write(frame(payload, { opcode: PING }));
      expect(await server.next()).toEqual({ opcode: PONG, payload });
      socket.destroy();
    });

    test('unsolicited pongs get no answer', async () => {
      const { socket, server } = await attach();
      socket.write(
        Buffer.concat([frame('', { opcode: PONG }), frame('x', { opcode: PONG }), frame('', { opcode: PING })]),
      );
      expect(await server.next()).toEqual({ opcode: PONG, payload: Buffer.alloc(0) });
      socket.destroy();
    });
  });

  describe('the end of a connection', () => {
    test.each([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])(
      'a close with code %i is answered with the same',
      async (code) => {
        const { socket, server } = await attach();
        socket.write(close(code, 'a reason, κόσμε'));
        expect(await server.close()).toEqual({ code, reason: '' });
        await server.end();
        socket.end();
      },
    );

    test('a close without a code, and one of 125 bytes, are answered', async () => {
      for (const [sent, code] of [
        [close(), 1000],
        [close(1000, 'x'.repeat(123)), 1000],
      ] as const) {
        const { socket, server } = await attach();
        socket.write(sent);
        expect(await server.close()).toMatchObject({ code });
        await server.end();
        socket.end();
      }
    });

    test('frames after a close are ignored', async () => {
      const { socket, server } = await attach();
      socket.write(
        Buffer.concat([
          frame('{', { final: false }), // a message that is never finished
          close(1000),
          frame('', { opcode: PING }),
          frame(Buffer.from([0xff])),
          close(1005),
          frame(command(1)),
        ]),
      );
      expect(await server.close()).toEqual({ code: 1000, reason: '' });
      expect((await server.end()).length).toBe(0);
      socket.end();
    });

    test('the service closes first, receives the answer and ends the connection; pings in between get no pong', async () => {
      const { session_id, cdp_ws_url } = await service.sdk().browsers.create({ headless: true });
      const { socket } = await upgrade(cdp_ws_url);
      const server = hears(socket!);
      const over = service.sdk().browsers.deleteByID(session_id);
      expect(await server.next()).toMatchObject({ opcode: CLOSE });
      socket!.write(Buffer.concat([frame('late', { opcode: PING }), frame(command(1)), close(1001)]));
      expect((await server.end()).length).toBe(0);
      socket!.end();
      await over;
    });

    test('a client that sends pings and reads no pong does not fill the service', async () => {
      const { socket, server } = await attach();
      socket.pause();
      const pings = Buffer.concat(Array<Buffer>(4096).fill(frame(Buffer.alloc(125), { opcode: PING })));
      const most = process.memoryUsage().arrayBuffers + 32 * 1024 * 1024;
      for (let round = 0; round < 128; round++) {
        if (!socket.write(pings)) await once(socket, 'drain'); // about 64 MiB in all
      }
      // Garbage is freed by the collection; data that waits for this client would remain.
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      const kept = () => (collect(), process.memoryUsage().arrayBuffers);
      await expect.poll(kept).toBeLessThan(most);
      socket.resume();
      socket.write(frame('the last', { opcode: PING }));
      for (let heard = await server.next(); String(heard!.payload) !== 'the last'; heard = await server.next())
        expect(heard).toMatchObject({ opcode: PONG });
      socket.destroy();
    });
  });

  describe('the handshake', () => {
    const ask = (headers: Record<string, string | undefined>) => upgrade(address, headers);

    test.each([
      ['an older version', { 'sec-websocket-version': '8' }],
      ['a newer one', { 'sec-websocket-version': '14' }],
      ['a value that is not a number', { 'sec-websocket-version': '13, 8' }],
      ['none', { 'sec-websocket-version': undefined }],
    ])('version: %s is answered with the supported version', async (_what, headers) => {
      expect(await ask(headers)).toMatchObject({ status: 426, headers: { 'sec-websocket-version': '13' } });
    });

    test.each([
      ['no key', { 'sec-websocket-key': undefined }],
      ['an empty key', { 'sec-websocket-key': '' }],
      ['a key of 15 bytes', { 'sec-websocket-key': Buffer.alloc(15).toString('base64') }],
      ['a key of 17 bytes', { 'sec-websocket-key': Buffer.alloc(17).toString('base64') }],
      ['a key that is no base64', { 'sec-websocket-key': '!'.repeat(22) + '==' }],
    ])('%s is a bad request', async (_what, headers) => {
      expect(await ask(headers)).toMatchObject({ status: 400, body: { code: 'bad_request' } });
    });

    test.each([
      ['POST', 'POST', 'HTTP/1.1'],
      ['HTTP/1.0', 'GET', 'HTTP/1.0'],
    ])('%s opens no websocket', async (_what, method, version) => {
      const { host, hostname, port, pathname, search } = new URL(address);
      const socket = connect(Number(port), hostname).on('error', () => {});
      socket.end(
        `${method} ${pathname}${search} ${version}\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      );
      let text = '';
      socket.setEncoding('latin1').on('data', (part: string) => (text += part));
      await new Promise((resolve) => socket.once('close', resolve)); // by a reset as well
      expect(text).toMatch(/^HTTP\/1\.1 4\d\d /);
    });

    test.each([
      ['tokens in any case', { connection: 'keep-alive, UPGRADE', upgrade: 'WebSocket' }],
      ['more than one protocol', { upgrade: 'foo/1, websocket' }],
      ['extensions and subprotocols, of which none is taken', { 'sec-websocket-extensions': 'permessage-deflate' }],
    ])('%s are understood', async (_what, headers) => {
      const { status, socket } = await ask(headers);
      expect(status).toBe(101);
      socket!.destroy();
    });
  });

  test('the websocket of a terminal takes a binary message of any bytes', async () => {
    const { session_id, base_url } = await service.sdk().browsers.create({ headless: true });
    const { process_id } = await service.sdk().browsers.process.spawn(session_id, { command: 'cat' });
    const { socket } = await upgrade(`${base_url!.replace(/^http/, 'ws')}/process/${process_id}/attach`);
    const server = hears(socket!);
    socket!.write(
      Buffer.concat([
        frame(Buffer.from([0xff, 0xc0]), { opcode: BINARY, final: false }),
        frame(Buffer.alloc(16, 0x80), { opcode: CONTINUATION }),
      ]),
    );
    const printed: Buffer[] = [];
    while (Buffer.concat(printed).length < 18) {
      const heard = await server.next();
      expect(heard?.opcode).toBe(BINARY);
      printed.push(heard!.payload);
    }
    expect(Buffer.concat(printed).toString('hex')).toBe(`ffc0${'80'.repeat(16)}`);
    socket!.destroy();
    await service.sdk().browsers.deleteByID(session_id);
  });
});
