import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import net, { type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  cleanUp,
  dataFrom,
  gatewayTo,
  listen,
  open,
  patience,
  request,
  responseTo,
  cleanUpAfterEach,
} from '../../../test/support/gateway.ts';

cleanUpAfterEach();

/** Keeps idle connections for longer than the usual five seconds, which a busy machine may let pass between two requests. */
const keepAliveTimeout = 60_000;

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
    const server = http
      .createServer({ keepAliveTimeout }, (_, response) => response.end('ok'))
      .on('connection', () => (accepted += 1));
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

  it.each([
    [
      'Content-Length: 3\r\nTransfer-Encoding: chunked',
      '4\r\nread\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake',
    ],
    ['Transfer-Encoding: Chunked\r\nContent-Length: 900', '4\r\nread\r\n0\r\n\r\n'],
  ])('reads an answer with %j as Chromium does, and nothing after it', async (framing, body) => {
    let accepted = 0;
    const server = net.createServer((socket) => {
      accepted += 1;
      socket.on('error', () => {});
      socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n${body}`));
    });
    const target = await listen(server);
    const { port } = await gatewayTo([target]);
    for (let round = 1; round <= 2; round++) {
      const answer = await request(port, `http://127.0.0.1:${target}/`);
      expect(answer).toMatchObject({ status: 200, body: 'read' });
      expect(answer.headers).not.toHaveProperty('content-length');
      expect(accepted).toBe(round); // a connection of its own for each
    }
  });

  it('reads an answer with lines that end without a carriage return', async () => {
    const target = await listen(net.createServer((socket) => socket.end('HTTP/1.1 200 OK\nContent-Length: 4\n\nread')));
    const { port } = await gatewayTo([target]);
    expect(await request(port, `http://127.0.0.1:${target}/`)).toMatchObject({ status: 200, body: 'read' });
  });

  it('asks again when a kept connection turns out to be closed', async () => {
    const connections: Socket[] = [];
    let requests = 0;
    const server = http.createServer({ keepAliveTimeout }, (incoming, response) => {
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
});

describe('a body of plain http', () => {
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
      if (round === 0) expect(before).toBeLessThan(body.length); // the client does not read yet, so it waits
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

  it('does not hold back the head of an answer until its body begins', async () => {
    const answers: http.ServerResponse[] = [];
    const target = await listen(
      http.createServer((_, response) => {
        answers.push(response);
        response.flushHeaders();
      }),
    );
    const { port } = await gatewayTo([target]);
    const outgoing = http.request({ port, host: '127.0.0.1', path: `http://127.0.0.1:${target}/` }).end();
    const incoming = await responseTo(outgoing);
    answers[0]!.end('the first event');
    expect(String(await dataFrom(incoming))).toBe('the first event');
  });

  it('asks the server before the client sends a body with Expect: 100-continue', async () => {
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
