import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../../test/support/listen.ts';
import type { Log } from '../../lib/log.ts';
import { destinations, parseAllowList } from './destinations.ts';
import { startGateway, type Gateway, type GatewayOptions } from './gateway.ts';
import type { Proxy } from './proxy.ts';
import { connectHandshake, socksHandshake, type Handshake } from './proxy-handshake.ts';

// Proxies that misbehave, made by hand; those that behave are real ones, in test/acceptance/proxies.test.ts. All on loopback.

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function listen(server: Server): Promise<number> {
  const { port, close } = await listenOnLoopback(server);
  cleanUp.push(close);
  return port;
}

/** A proxy that handles each connection with a function, and records the received bytes. */
async function proxyThat(serve: (socket: Socket, heard: () => string) => void): Promise<Proxy & { heard: string[] }> {
  const heard: string[] = [];
  const server = net.createServer((socket) => {
    const mine = heard.push('') - 1;
    socket.on('data', (chunk) => (heard[mine] += chunk.toString('latin1')));
    serve(socket, () => heard[mine]!);
  });
  return { protocol: 'http', host: '127.0.0.1', port: await listen(server), bypassHosts: [], heard };
}

async function gatewayBy(proxy: Proxy | undefined, options: Partial<GatewayOptions> = {}) {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const codes: unknown[] = [];
  const write = (facts: object) => void codes.push('code' in facts ? facts.code : undefined);
  const log: Log = { debug: write, info: write, warn: write, error: write };
  const allow = destinations({ allow: parseAllowList('127.0.0.1/32') });
  const gateway = startGateway(server, { allow, proxy, log, ...options });
  cleanUp.push(() => gateway.close());
  return { gateway, port, codes };
}

/** Sends bytes as they are, and reads until the gateway hangs up. */
async function raw(port: number, text: string): Promise<string> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
  cleanUp.push(() => socket.destroy());
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk) => (answer += chunk));
  socket.on('end', () => socket.end());
  socket.write(text, 'latin1');
  await once(socket, 'close').catch(() => {});
  return answer;
}
const tunnelTo = (target: string) => `CONNECT ${target} HTTP/1.1\r\n\r\n`;
const get = (url: string) => `GET ${url} HTTP/1.1\r\nConnection: close\r\n\r\n`;
const openAt = ({ counters }: Gateway) => counters.clients + counters.upstreams;
const patience = { timeout: 60_000 };

describe('handshakes', () => {
  /** Feeds the answers one byte at a time; returns the sent bytes and the rest. */
  function talk(handshake: Handshake, ...answers: (string | number[])[]) {
    const sent = [handshake.hello];
    const bytes = Buffer.concat(answers.map((answer) => Buffer.from(answer as string)));
    for (let i = 0; i < bytes.length; i++) {
      const next = handshake.feed(bytes.subarray(i, i + 1));
      if (next && 'send' in next) sent.push(next.send);
      if (next && 'through' in next) return { sent, rest: bytes.subarray(i + 1) };
    }
    return { sent, rest: undefined };
  }
  const login = { username: 'änn', password: 'wörd' };

  it('CONNECT asks by name, with the login, and leaves what comes after it', () => {
    const { sent, rest } = talk(
      connectHandshake({ host: 'shop.test', port: 443 }, login),
      'HTTP/1.1 200 OK\r\nVia: x\r\n\r\nhello',
    );
    expect(String(sent[0])).toBe(
      `CONNECT shop.test:443 HTTP/1.1\r\nHost: shop.test:443\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic ${Buffer.from('änn:wörd').toString('base64')}\r\n\r\n`,
    );
    expect(String(rest)).toBe('hello');
  });

  it('SOCKS5 sends names as names, addresses as addresses, and the login when the proxy requests it', () => {
    const through = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    const byName = talk(socksHandshake({ host: 'shop.test', port: 443 }, login), [5, 2], [1, 0], through, 'hi');
    expect(byName.sent.map((part) => [...part])).toEqual([
      [5, 2, 0, 2],
      [1, 4, ...Buffer.from('änn'), 5, ...Buffer.from('wörd')],
      [5, 1, 0, 3, 9, ...Buffer.from('shop.test'), 1, 187],
    ]);
    expect(String(byName.rest)).toBe('hi');
    const v4 = talk(socksHandshake({ host: '1.2.3.4', port: 80 }, undefined), [5, 0], [5, 0, 0, 3, 1, 97, 0, 0]);
    expect(v4.sent.map((part) => [...part])).toEqual([
      [5, 1, 0],
      [5, 1, 0, 1, 1, 2, 3, 4, 0, 80],
    ]);
    expect(v4.rest).toHaveLength(0);
    const v6 = talk(socksHandshake({ host: '2001:db8::1', port: 80 }, undefined), [5, 0]);
    expect([...v6.sent[1]!.subarray(3, 8)]).toEqual([4, 32, 1, 13, 184]);
  });

  it.each<[string, () => Handshake, string | number[]]>([
    ['proxy_auth_failed', connect, 'HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n'],
    ['proxy_refused', connect, 'HTTP/1.1 403 Forbidden\r\n\r\n'],
    ['proxy_connect_failed', connect, 'HTTP/1.0 503 Sorry\r\n\r\n'],
    ['proxy_bad_answer', connect, 'SSH-2.0-OpenSSH\r\n'],
    ['proxy_bad_answer', connect, 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['proxy_bad_answer', connect, 'HTTP/1.1 2000\r\n\r\n'],
    ['proxy_bad_answer', connect, `HTTP/1.1 200 OK\r\n${'x'.repeat(20_000)}`],
    ['proxy_auth_failed', socks, [5, 255]],
    ['proxy_auth_failed', socks, [5, 2, 1, 1]],
    ['proxy_refused', socks, [5, 0, 5, 2]],
    ['proxy_connect_failed', socks, [5, 0, 5, 5]],
    ['proxy_bad_answer', socks, 'HTTP/1.1 400 Bad Request'],
    ['proxy_bad_answer', socks, [5, 0, 5, 0, 0, 9, 0]],
  ])('%s: %o', (code, make, answer) => {
    expect(() => talk(make(), answer)).toThrow(expect.objectContaining({ code }));
  });
  function connect() {
    return connectHandshake({ host: 'shop.test', port: 443 }, undefined);
  }
  function socks() {
    return socksHandshake({ host: 'shop.test', port: 443 }, login);
  }

  it('a proxy that requires more than Basic has its own error', () => {
    const answer = 'HTTP/1.1 407 No\r\nProxy-Authenticate: Digest realm="x"\r\n\r\n';
    expect(() => talk(connect(), answer)).toThrow(/asks for Digest/);
  });
});

describe('a proxy that', () => {
  // Only without an answer: an answer may take longer on a busy machine.
  const limitsFor = (status: 502 | 504) => (status === 504 ? { handshakeMs: 200, proxyAnswerMs: 200 } : {});
  const refuses = (answer: string) =>
    proxyThat((socket, heard) => socket.on('data', () => void (heard().includes('\r\n\r\n') && socket.end(answer))));

  it.each<[string, string, () => Promise<Proxy>, 502 | 504]>([
    ['takes the connection and never answers', 'proxy_timeout', () => proxyThat(() => {}), 504],
    [
      'answers 407',
      'proxy_auth_failed',
      () => refuses('HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n'),
      502,
    ],
    ['hangs up at once', 'proxy_unreachable|proxy_bad_answer|connect_failed', () => proxyThat((s) => s.destroy()), 502],
    ['speaks something else', 'proxy_bad_answer|bad_answer', () => refuses('220 mail.example ESMTP\r\n\r\n'), 502],
    [
      'is not there',
      'proxy_unreachable',
      async () => {
        const proxy = await proxyThat(() => {});
        await cleanUp.pop()!();
        return proxy;
      },
      502,
    ],
    [
      'is on an address that is off limits',
      'proxy_unreachable',
      async () => ({ ...(await proxyThat(() => {})), host: '127.0.0.9' }),
      502,
    ],
    [
      'is spoken to over TLS and does not know it',
      'proxy_bad_answer',
      async () => ({
        ...(await proxyThat((s) => s.once('data', () => s.end('HTTP/1.1 400 Bad\r\n\r\n')))),
        protocol: 'https',
      }),
      502,
    ],
  ])('%s fails the request, with a code', async (_, code, make, status) => {
    const { gateway, port, codes } = await gatewayBy(await make(), { limits: limitsFor(status) });
    const answer = await raw(port, tunnelTo('shop.test:443'));
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*X-Corral-Egress: (${code})\\r\\n[\\s\\S]*</html>`));
    expect(answer).not.toContain('127.0.0.'); // the address of the proxy is not shown to the client
    expect(await raw(port, get('http://shop.test/'))).toBe(''); // a page would be taken for the site's
    expect(codes.join()).toMatch(new RegExp(`^(${code}),(${code})$`));
    await expect.poll(() => openAt(gateway), patience).toBe(0);
  });

  it('dies in the middle of a download takes the download along and nothing else', async () => {
    const proxy = await proxyThat((socket, heard) =>
      socket.once('data', () => {
        const plain = heard().startsWith('GET');
        socket.write(plain ? 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n' : 'HTTP/1.1 200 OK\r\n\r\n');
        socket.write('x'.repeat(1000));
        setTimeout(() => socket.resetAndDestroy(), 50);
      }),
    );
    const { gateway, port } = await gatewayBy(proxy);
    for (const request of [tunnelTo('shop.test:443'), get('http://shop.test/')]) {
      expect(await raw(port, request)).toMatch(/\r\n\r\nx{1000}$/);
    }
    await expect.poll(() => openAt(gateway), patience).toBe(0);
    expect(gateway.counters.refused).toBe(0);
  });

  it('is being asked when the client leaves, or the gateway closes, is let go of', async () => {
    const proxy = await proxyThat(() => {});
    const { gateway, port } = await gatewayBy(proxy);
    const leaving = net.connect(port, '127.0.0.1').on('error', () => {});
    leaving.write(tunnelTo('shop.test:443'));
    await expect.poll(() => proxy.heard.length).toBe(1);
    leaving.resetAndDestroy();
    await expect.poll(() => openAt(gateway), patience).toBe(0);
    const asking = [raw(port, tunnelTo('shop.test:443')), raw(port, get('http://shop.test/'))];
    await expect.poll(() => proxy.heard.length).toBe(3);
    await gateway.close();
    await Promise.all(asking);
    expect(openAt(gateway)).toBe(0);
  });
});

describe('through a proxy', () => {
  it('literal private addresses, loopback names and mail ports stay refused, and the proxy never hears of them', async () => {
    const proxy = await proxyThat(() => {});
    const allow = destinations({ allow: parseAllowList(`127.0.0.1:${proxy.port}`) });
    const { port } = await gatewayBy(proxy, { allow });
    for (const host of ['10.0.0.1', '127.0.0.1', '[::1]', '169.254.169.254', '0x7f.1', 'localhost', 'a.localhost']) {
      expect(await raw(port, tunnelTo(`${host}:443`))).toContain('destination_refused');
      expect(await raw(port, get(`http://${host}/`))).toContain('destination_refused');
    }
    expect(await raw(port, tunnelTo('mail.test:25'))).toContain('destination_refused');
    expect(proxy.heard).toEqual([]);
  });

  it('plain http goes in absolute form with the login, over a connection that is kept', async () => {
    const seen: string[] = [];
    const keepAliveTimeout = 60_000; // a busy machine may let the usual five seconds pass between two requests
    const server = http.createServer({ keepAliveTimeout }, (request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.host} ${request.headers['proxy-authorization']}`);
      response.end('from the proxy');
    });
    let connections = 0;
    server.on('connection', () => connections++);
    const login = { username: 'ann', password: 'secret' };
    const proxy: Proxy = { protocol: 'http', host: '127.0.0.1', port: await listen(server), login, bypassHosts: [] };
    const { port } = await gatewayBy(proxy);
    for (const host of ['a.test', 'b.test:8080']) {
      expect(await raw(port, get(`http://${host}/x?y`))).toMatch(/^HTTP\/1.1 200 [\s\S]*from the proxy/);
    }
    const word = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
    expect(seen).toEqual([`GET http://a.test/x?y a.test ${word}`, `GET http://b.test:8080/x?y b.test:8080 ${word}`]);
    expect(connections).toBe(1);
  });

  it('hosts that bypass it are reached without it', async () => {
    const proxy = await proxyThat((socket) => socket.end('HTTP/1.1 403 No\r\n\r\n'));
    const allow = destinations({
      allow: parseAllowList('127.0.0.1/32'),
      resolve: async () => ['127.0.0.1'],
    });
    const web = await listen(
      http.createServer((request, response) => response.end(`straight to ${request.headers.host}`)),
    );
    const { port } = await gatewayBy({ ...proxy, bypassHosts: ['shop.test', '*.shop.test'] }, { allow });
    for (const host of ['shop.test', 'SHOP.test.', 'a.b.shop.test']) {
      expect(await raw(port, get(`http://${host}:${web}/`))).toContain('straight to');
    }
    expect(await raw(port, get(`http://notshop.test:${web}/`))).toMatch(/^HTTP\/1.1 403 No/);
    expect(proxy.heard).toHaveLength(1);
  });
});

describe('swapping the proxy', () => {
  const answering = (word: string) =>
    listen(
      http
        .createServer((_, response) => response.end(word))
        .on('connect', (_, socket: Socket) => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n');
          socket.on('data', () => socket.write(word));
        }),
    );
  const by = (port: number): Proxy => ({ protocol: 'http', host: '127.0.0.1', port, bypassHosts: [] });

  it('closes tunnels, lets plain requests finish, and takes the next ones the new way', async () => {
    const finish: (() => void)[] = [];
    const slow = await listen(
      http
        .createServer((_, response) => {
          response.write('first ');
          finish.push(() => response.end('proxy'));
        })
        .on('connect', (_, socket: Socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n')),
    );
    const { gateway, port } = await gatewayBy(by(slow));
    const underWay = raw(port, get('http://shop.test/'));
    const tunnel = raw(port, tunnelTo('shop.test:443'));
    await expect.poll(() => finish.length + gateway.counters.upstreams).toBe(3);
    gateway.setProxy(by(await answering('second')));
    expect(await tunnel).toBe('HTTP/1.1 200 Connection Established\r\n\r\n'); // closed, and by no other side
    expect(await raw(port, get('http://shop.test/'))).toMatch(/second/);
    finish[0]!();
    expect(await underWay).toMatch(/first [\s\S]*proxy/);
    gateway.setProxy(undefined);
    await expect.poll(() => openAt(gateway), patience).toBe(0);
  });

  it('applies to connections that are being opened, and does not send the password of the last proxy to the next', async () => {
    const dead = await proxyThat(() => {});
    const { gateway, port } = await gatewayBy({ ...dead, login: { username: 'ann', password: 'secret' } });
    const asked = raw(port, `${tunnelTo('shop.test:443')}hello`);
    await expect.poll(() => dead.heard.join()).toContain('shop.test');
    const next = await proxyThat((socket, heard) =>
      socket.on('data', () => {
        if (heard().endsWith('hello')) socket.end('next');
        else socket.write('HTTP/1.1 200 OK\r\n\r\n');
      }),
    );
    gateway.setProxy(next);
    expect(await asked).toMatch(/next$/);
    expect(next.heard.join()).not.toMatch(/authorization/i);
  });
});
