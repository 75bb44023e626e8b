import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net, { type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../../test/support/listen.ts';
import type { Log } from '../../lib/log.ts';
import { destinations, parseAllowList } from './destinations.ts';
import { directDial, type Dial } from './dial.ts';
import { startGateway, type Gateway, type GatewayOptions } from './gateway.ts';

// Every address in this file is a loopback address: a guard that fails here sends no packet anywhere.

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function listen(server: Server): Promise<number> {
  const { port, close } = await listenOnLoopback(server);
  cleanUp.push(close);
  return port;
}

/** A gateway that lets browsers reach `ports` of 127.0.0.1, and nothing else on this machine. */
async function gatewayTo(ports: number[], options: Partial<GatewayOptions> = {}) {
  const server = net.createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  const lines: { facts: Record<string, unknown>; event: string }[] = [];
  const write = (facts: object, event: string) => void lines.push({ facts: { ...facts }, event });
  const log: Log = { debug: write, info: write, warn: write, error: write };
  const allow = destinations({ allow: parseAllowList(ports.map((each) => `127.0.0.1:${each}`).join(',')) });
  const gateway = startGateway(server, { allow, log, ...options });
  cleanUp.push(() => gateway.close());
  return { gateway, port, lines };
}

/** A server that counts who came, for the tests in which nobody should. */
async function offLimits() {
  const visits: string[] = [];
  const server = http.createServer((request, response) => {
    visits.push(request.url ?? '');
    response.end('you should not see this');
  });
  server.on('connection', () => visits.push('connection'));
  return { port: await listen(server), visits };
}

function connect(port: number): Socket {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  cleanUp.push(() => socket.destroy());
  return socket;
}

/** Sends bytes as they are, and reads until the gateway hangs up. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port);
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk) => (answer += chunk));
  socket.on('end', () => socket.end());
  socket.write(text, 'latin1');
  await once(socket, 'end').catch(() => {});
  return answer;
}

async function openTunnel(port: number, target: string): Promise<Socket> {
  const socket = connect(port);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const established = 'HTTP/1.1 200 Connection Established\r\n\r\n';
  const head = await dataFrom(socket);
  expect(head.toString('latin1', 0, established.length)).toBe(established);
  return socket;
}

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

function request(
  port: number,
  url: string,
  options: http.RequestOptions = {},
  body?: string | Buffer,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({ port, host: '127.0.0.1', path: url, agent: false, ...options }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      incoming.on('end', () =>
        resolve({ status: incoming.statusCode!, headers: incoming.headers, body: Buffer.concat(chunks).toString() }),
      );
    });
    outgoing.on('error', reject).end(body);
  });
}

/** The invariant of every test that ends connections: whatever happened, in the end this is 0. */
function open({ counters }: Gateway): number {
  return counters.clients + counters.upstreams;
}
const patience = { timeout: 20_000 };

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen on a port');
  return address.port;
}

function responseTo(outgoing: http.ClientRequest): Promise<http.IncomingMessage> {
  return new Promise((resolve) => outgoing.once('response', resolve));
}

function dataFrom(stream: Socket | http.IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => stream.once('data', resolve));
}

function get(port: number, path: string, headers = ''): string {
  return `GET http://127.0.0.1:${port}${path} HTTP/1.1\r\n${headers}\r\n`;
}

async function echo() {
  return listen(net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket)));
}

describe('tunnels', () => {
  it('carry bytes both ways, half-closes too, and count them', async () => {
    const target = await echo();
    const { gateway, port } = await gatewayTo([target]);
    const socket = await openTunnel(port, `127.0.0.1:${target}`);
    expect(gateway.counters).toMatchObject({ clients: 1, upstreams: 1, refused: 0 });
    const sent = Buffer.alloc(5_000_000, 'corral');
    const received: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    socket.end(sent);
    await once(socket, 'end');
    expect(Buffer.concat(received).equals(sent)).toBe(true);
    await expect.poll(() => open(gateway), patience).toBe(0);
    expect(gateway.counters).toMatchObject({ up: sent.length, down: sent.length });
  });

  it('pass on what the client sent along with its CONNECT', async () => {
    const target = await echo();
    const { port } = await gatewayTo([target]);
    const socket = connect(port);
    socket.end(`CONNECT 127.0.0.1:${target} HTTP/1.1\r\n\r\nearly bird`);
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    await once(socket, 'end');
    expect(answer).toBe('HTTP/1.1 200 Connection Established\r\n\r\nearly bird');
  });

  it('wait for a slow reader instead of filling memory', async () => {
    let written = 0;
    const chunk = Buffer.alloc(65_536);
    const target = await listen(
      net.createServer((socket) => {
        const pump = () => {
          while (written < 200_000_000 && socket.write(chunk)) written += chunk.length;
        };
        socket.on('drain', pump);
        pump();
      }),
    );
    const { gateway, port } = await gatewayTo([target]);
    const socket = await openTunnel(port, `127.0.0.1:${target}`);
    socket.pause();
    let before = -1;
    await expect.poll(() => before === (before = gateway.counters.down), { interval: 200, timeout: 20_000 }).toBe(true);
    expect(gateway.counters.down).toBeLessThan(50_000_000);
    socket.destroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it.each(['client ends', 'client resets', 'upstream ends', 'upstream resets', 'both reset', 'the gateway closes'])(
    'leave nothing open when %s in the middle',
    async (exit) => {
      const accepted: Socket[] = [];
      const target = await listen(
        net.createServer((socket) => {
          accepted.push(socket);
          socket.resume();
        }),
      );
      const { gateway, port } = await gatewayTo([target]);
      const sockets = await Promise.all(Array.from({ length: 8 }, () => openTunnel(port, `127.0.0.1:${target}`)));
      for (const socket of [...sockets, ...accepted]) socket.resume().write(Buffer.alloc(100_000));
      if (exit === 'client ends') for (const socket of sockets) socket.end();
      if (exit === 'client resets' || exit === 'both reset') for (const socket of sockets) socket.resetAndDestroy();
      if (exit === 'upstream ends') for (const socket of accepted) socket.end();
      if (exit === 'upstream resets' || exit === 'both reset') for (const socket of accepted) socket.resetAndDestroy();
      if (exit === 'upstream ends') for (const socket of sockets) socket.on('end', () => socket.end());
      if (exit === 'the gateway closes') {
        await gateway.close();
      }
      await expect.poll(() => open(gateway), patience).toBe(0);
    },
  );

  it('do not outlive a peer that has said its last word and then keeps still', async () => {
    const target = await listen(net.createServer({ allowHalfOpen: true }, (socket) => socket.resume()));
    const { gateway, port } = await gatewayTo([target], { limits: { halfOpenMs: 100 } });
    const socket = await openTunnel(port, `127.0.0.1:${target}`);
    socket.end('last word');
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('are let go of when the client leaves while they are being dialled', async () => {
    const signals: AbortSignal[] = [];
    const dial: Dial = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signals.push(signal);
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const { gateway, port } = await gatewayTo([9], { dial });
    const socket = connect(port);
    socket.write('CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n');
    await expect.poll(() => signals.length).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
    expect(signals[0]?.aborted).toBe(true);
    expect(gateway.counters.refused).toBe(0);
  });
});

describe('plain http', () => {
  it('passes requests and answers on, without the headers that concern only one connection', async () => {
    const seen: http.IncomingMessage[] = [];
    const target = await listen(
      http.createServer((incoming, response) => {
        seen.push(incoming);
        response.sendDate = false;
        response.writeHead(201, 'Made It', {
          'Set-Cookie': ['a=1', 'b=2'],
          Connection: 'close, X-Private',
          'X-Private': '1',
          'Proxy-Authenticate': 'Basic',
          'X-Odd-Case': 'yes',
        });
        incoming.pipe(response);
      }),
    );
    const { gateway, port } = await gatewayTo([target]);
    const headers = {
      Host: 'elsewhere.example',
      'Proxy-Connection': 'keep-alive',
      'Proxy-Authorization': 'Basic eDp5',
      Connection: 'keep-alive, X-Secret, Content-Length',
      'X-Secret': 'hush',
      'X-Kept': 'yes',
    };
    const url = `http://127.0.0.1:${target}/a/../b?c=%20#`.slice(0, -1);
    const answer = await request(port, url, { method: 'POST', headers }, 'some text');
    expect(answer).toMatchObject({ status: 201, body: 'some text' });
    expect(answer.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2'], 'x-odd-case': 'yes' });
    expect(answer.headers).not.toHaveProperty('x-private');
    expect(answer.headers).not.toHaveProperty('proxy-authenticate');
    expect(answer.headers).not.toHaveProperty('date'); // the server sent none, and the gateway leaves no traces
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/a/../b?c=%20' });
    expect(seen[0]!.headers).toMatchObject({ host: `127.0.0.1:${target}`, 'x-kept': 'yes', 'content-length': '9' });
    for (const name of ['proxy-connection', 'proxy-authorization', 'x-secret', 'transfer-encoding']) {
      expect(seen[0]!.headers).not.toHaveProperty(name);
    }
    expect(gateway.counters.refused).toBe(0);
  });

  it('keeps connections, to the client and to the server', async () => {
    let accepted = 0;
    const server = http.createServer((_, response) => response.end('ok')).on('connection', () => (accepted += 1));
    const target = await listen(server);
    const { gateway, port } = await gatewayTo([target]);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    cleanUp.push(() => agent.destroy());
    for (let i = 0; i < 5; i++)
      expect((await request(port, `http://127.0.0.1:${target}/${i}`, { agent })).body).toBe('ok');
    expect(accepted).toBe(1);
    expect(gateway.counters).toMatchObject({ clients: 1, upstreams: 1 });
    agent.destroy();
    server.closeIdleConnections();
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('asks again when a kept connection turns out to be closed', async () => {
    const connections: Socket[] = [];
    let requests = 0;
    const server = http.createServer((incoming, response) => {
      requests += 1;
      if (requests === 2) return void incoming.socket.resetAndDestroy();
      return void response.end(`answer ${requests}`);
    });
    server.on('connection', (socket) => connections.push(socket));
    const target = await listen(server);
    const { port } = await gatewayTo([target]);
    expect((await request(port, `http://127.0.0.1:${target}/`)).body).toBe('answer 1');
    expect((await request(port, `http://127.0.0.1:${target}/`)).body).toBe('answer 3');
    expect(connections).toHaveLength(2);
  });

  it.each(['with a length', 'in chunks'])('keeps every byte of a body %s, however slowly it is read', async (how) => {
    const body = randomBytes(20_000_000);
    const target = await listen(
      http.createServer((_, response) => {
        if (how === 'with a length') response.setHeader('content-length', body.length);
        response.write(body.subarray(0, 5));
        response.end(body.subarray(5));
      }),
    );
    const { gateway, port } = await gatewayTo([target]);
    const agent = new http.Agent({ keepAlive: true });
    cleanUp.push(() => agent.destroy());
    for (let round = 0; round < 2; round++) {
      const outgoing = http.request({ port, host: '127.0.0.1', path: `http://127.0.0.1:${target}/`, agent }).end();
      const incoming = await responseTo(outgoing);
      await expect.poll(() => gateway.counters.down, { interval: 50 }).toBeGreaterThan(0);
      const before = gateway.counters.down;
      if (round === 0) expect(before).toBeLessThan(body.length); // nobody reads yet, so it waits
      const hash = createHash('sha256');
      let pieces = 0;
      for await (const piece of incoming) {
        hash.update(piece as Buffer);
        if (++pieces % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      expect(hash.digest('hex')).toBe(createHash('sha256').update(body).digest('hex'));
    }
    expect(gateway.counters.clients).toBe(1);
  });

  it('streams chunked bodies both ways', async () => {
    const target = await listen(http.createServer((incoming, response) => void incoming.pipe(response)));
    const { port } = await gatewayTo([target]);
    const outgoing = http.request({ port, host: '127.0.0.1', path: `http://127.0.0.1:${target}/`, method: 'PUT' });
    outgoing.write('first');
    const incoming = await responseTo(outgoing);
    const chunks: string[] = [];
    for await (const chunk of incoming) {
      chunks.push(String(chunk));
      if (chunks.length === 1) outgoing.end('second');
    }
    expect(chunks).toEqual(['first', 'second']);
  });

  it('asks the server before it lets the client send a body that waits to be asked for', async () => {
    const server = http.createServer();
    server.on('checkContinue', (incoming: http.IncomingMessage, response: http.ServerResponse) => {
      if (incoming.url === '/no') return void response.writeHead(413).end();
      response.writeContinue();
      return void incoming.pipe(response);
    });
    const target = await listen(server);
    const { port } = await gatewayTo([target]);
    const ask = (path: string) => {
      const headers = { Expect: '100-continue', 'Content-Length': '4' };
      return http.request({
        port,
        host: '127.0.0.1',
        path: `http://127.0.0.1:${target}${path}`,
        method: 'POST',
        headers,
      });
    };
    const yes = ask('/yes');
    yes.flushHeaders();
    await once(yes, 'continue');
    yes.end('body');
    const answer = await responseTo(yes);
    expect(String(await dataFrom(answer))).toBe('body');
    const no = ask('/no').on('error', () => {});
    no.flushHeaders();
    no.once('continue', () => expect.unreachable());
    expect((await responseTo(no)).statusCode).toBe(413);
    no.destroy();
  });

  it('passes websocket upgrades on, and refusals of them', async () => {
    const server = http.createServer((_, response) => response.writeHead(426).end('no'));
    server.on('upgrade', (incoming: http.IncomingMessage, socket: Socket) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${incoming.headers.upgrade}\r\n\r\nhello`,
      );
      socket.on('error', () => {}).pipe(socket);
    });
    const target = await listen(server);
    const plain = await listen(http.createServer((_, response) => response.writeHead(426).end('not here')));
    const { gateway, port } = await gatewayTo([target, plain]);
    const ask = (to: number) =>
      http
        .request({
          port,
          host: '127.0.0.1',
          path: `http://127.0.0.1:${to}/`,
          headers: { Connection: 'Upgrade', Upgrade: 'websocket' },
        })
        .on('error', () => {})
        .end();
    const socket = await new Promise<Socket>((resolve) => {
      ask(target).once('upgrade', (answer, _, head) => {
        answer.socket.unshift(head);
        resolve(answer.socket);
      });
    });
    expect(String(await dataFrom(socket))).toBe('hello');
    socket.write('ping');
    expect(String(await dataFrom(socket))).toBe('ping');
    socket.destroy();
    const no = await responseTo(ask(plain));
    expect([no.statusCode, String(await dataFrom(no))]).toEqual([426, 'not here']);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it.each(['the client leaves', 'the server leaves', 'the gateway closes'])(
    'leaves nothing open when %s in the middle',
    async (exit) => {
      const answers: http.ServerResponse[] = [];
      const target = await listen(
        http.createServer((_, response) => {
          answers.push(response);
          response.write(Buffer.alloc(100_000));
        }),
      );
      const { gateway, port } = await gatewayTo([target]);
      const outgoing = http
        .request({ port, host: '127.0.0.1', path: `http://127.0.0.1:${target}/` })
        .on('error', () => {});
      outgoing.end();
      const incoming = await responseTo(outgoing);
      const cut = new Promise((resolve) => incoming.on('error', resolve).resume());
      if (exit === 'the client leaves') outgoing.destroy();
      if (exit === 'the server leaves') answers[0]!.socket!.resetAndDestroy();
      if (exit === 'the gateway closes') await gateway.close();
      await cut; // a body cut short is never taken for a whole one
      await expect.poll(() => open(gateway), patience).toBe(0);
    },
  );
});

describe('refusals', () => {
  it('are a page that says what was refused, why, and what to do', async () => {
    const { port: forbidden, visits } = await offLimits();
    const refusals: string[] = [];
    const { gateway, port, lines } = await gatewayTo([], {
      onRefuse: ({ code }, target) => refusals.push(`${code} ${target}`),
    });
    const answer = await request(port, `http://127.0.0.1:${forbidden}/path`);
    expect(answer.status).toBe(403);
    expect(answer.headers).toMatchObject({
      'x-corral-egress': 'destination_refused',
      'content-type': 'text/html; charset=utf-8',
    });
    expect(answer.body).toContain(`127.0.0.1:${forbidden}, which is a loopback address`);
    expect(answer.body).toContain(`<code>CORRAL_ALLOW_PRIVATE_HOSTS=127.0.0.1:${forbidden}</code>`);
    expect(lines).toMatchObject([{ event: 'egress.refused', facts: { code: 'destination_refused' } }]);
    expect(refusals).toEqual([`destination_refused http://127.0.0.1:${forbidden}/path`]);
    expect(gateway.counters).toMatchObject({ refused: 1, up: 0, down: 0 });
    expect(visits).toEqual([]);
  });

  it('are the same for a tunnel', async () => {
    const { port: forbidden, visits } = await offLimits();
    const { gateway, port } = await gatewayTo([]);
    const answer = await raw(port, `CONNECT 127.0.0.1:${forbidden} HTTP/1.1\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
    expect(answer).toContain('X-Corral-Egress: destination_refused\r\n');
    expect(visits).toEqual([]);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('have a code for every failure', async () => {
    const deaf = await listen(net.createServer((socket) => socket.destroy()));
    const babble = await listen(net.createServer((socket) => socket.end('SSH-2.0-nothing\r\n\r\n')));
    const both = await listen(
      net.createServer((socket) =>
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
      ),
    );
    const switching = await listen(net.createServer((socket) => socket.end('HTTP/1.1 101 Surprise\r\n\r\n')));
    const upgrading = await listen(
      net.createServer((socket) =>
        socket.end('HTTP/1.1 101 Surprise\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'),
      ),
    );
    const closed = await listen(net.createServer());
    await cleanUp.pop()!();
    const { gateway, port } = await gatewayTo([deaf, babble, both, switching, upgrading, closed]);
    const codeOf = async (url: string) => (await request(port, url)).headers['x-corral-egress'];
    expect(await codeOf(`http://127.0.0.1:${deaf}/`)).toBe('connect_failed');
    expect(await codeOf(`http://127.0.0.1:${babble}/`)).toBe('bad_answer');
    expect(await codeOf(`http://127.0.0.1:${both}/`)).toBe('bad_answer');
    expect(await codeOf(`http://127.0.0.1:${switching}/`)).toBe('bad_answer');
    expect(await codeOf(`http://127.0.0.1:${upgrading}/`)).toBe('bad_answer');
    expect(await codeOf(`http://127.0.0.1:${closed}/`)).toBe('connect_failed');
    expect(await raw(port, `CONNECT 127.0.0.1:${closed} HTTP/1.1\r\n\r\n`)).toContain('502 Bad Gateway');
    expect(gateway.counters.refused).toBe(7);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('come in time when the network does not answer', async () => {
    const target = await deafPort();
    const { gateway, port } = await gatewayTo([target], { dial: directDial({ timeoutMs: 300, staggerMs: 50 }) });
    const answer = await request(port, `http://127.0.0.1:${target}/`);
    expect([answer.status, answer.headers['x-corral-egress']]).toEqual([504, 'connect_timeout']);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('are logged sparingly when there are many', async () => {
    const { gateway, port, lines } = await gatewayTo([]);
    for (let i = 0; i < 50; i++) await request(port, `http://127.0.0.1:9/${i}`);
    expect(gateway.counters.refused).toBe(50);
    expect(lines).toHaveLength(20);
  });
});

/** A port on loopback whose owner never accepts and whose backlog is full: the kernel lets further callers wait. */
async function deafPort(): Promise<number> {
  const code = `
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      require('node:fs').writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  cleanUp.push(() => child.kill('SIGKILL'));
  const port = Number(String(await once(child.stdout, 'data')));
  // One more than fits, as a full backlog is known by the one that does not get in.
  const callers = Array.from({ length: 4 }, () => connect(port));
  await expect.poll(() => callers.filter((caller) => !caller.connecting).length).toBeGreaterThan(0);
  return port;
}

describe('dialling', () => {
  it('goes on to the next address when one fails or keeps still, and keeps to those that were checked', async () => {
    const target = await echo();
    const dial = directDial({ staggerMs: 50 });
    const { signal } = new AbortController();
    const socket = await dial(
      { host: 'a.example', port: target, addresses: ['::1', '127.0.0.2', '127.0.0.1'] },
      { signal },
    );
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.destroy();
  });
});

describe('a hostile client', () => {
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
    [
      'two lengths',
      (a) => `POST http://127.0.0.1:${a}/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd`,
    ],
    ['a length that is no number', (a) => `POST http://127.0.0.1:${a}/ HTTP/1.1\r\nContent-Length: +4\r\n\r\nabcd`],
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
    ['another protocol', () => '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'],
    ['HTTP/2 by prior knowledge', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ];

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

  it('who drips its headers, or sends none, is shown the door', async () => {
    const { gateway, port } = await gatewayTo([], { limits: { headersMs: 200 } });
    const silent = connect(port);
    const dripping = connect(port);
    dripping.write('GET http://127.0.0.1:9/ HTTP/1.1\r\nX-');
    const drip = setInterval(() => dripping.write('Y'), 20);
    cleanUp.push(() => clearInterval(drip));
    const closed = [silent, dripping].map((socket) => {
      // A drop that falls after the door is shut resets the connection.
      socket
        .resume()
        .on('error', () => {})
        .on('end', () => socket.end());
      return new Promise((resolve) => socket.on('close', resolve));
    });
    await Promise.all(closed);
    expect(gateway.counters.refused).toBe(0);
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('cannot open more connections than a session may have', async () => {
    const target = await echo();
    const { gateway, port } = await gatewayTo([target], { limits: { clients: 3 } });
    const tunnels = await Promise.all([1, 2, 3].map(() => openTunnel(port, `127.0.0.1:${target}`)));
    const answer = await raw(port, '');
    expect(answer).toMatch(/^HTTP\/1\.1 503 /);
    expect(answer).toContain('X-Corral-Egress: too_many_connections');
    for (const tunnel of tunnels) tunnel.destroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
    (await openTunnel(port, `127.0.0.1:${target}`)).destroy();
    await expect.poll(() => open(gateway), patience).toBe(0);
  });
});

it('closing twice is fine, and nobody gets in afterwards', async () => {
  const { gateway, port } = await gatewayTo([]);
  await Promise.all([gateway.close(), gateway.close()]);
  expect(open(gateway)).toBe(0);
  const error = await new Promise((resolve) => net.connect({ port, host: '127.0.0.1' }).once('error', resolve));
  expect(error).toMatchObject({ code: 'ECONNREFUSED' });
});
