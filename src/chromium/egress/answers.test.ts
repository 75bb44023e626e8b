import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import {
  cleanUp,
  connect,
  gatewayTo,
  listen,
  offLimits,
  open,
  patience,
  raw,
  request,
  cleanUpAfterEach,
} from '../../../test/support/gateway.ts';
import { directDial } from './dial.ts';

cleanUpAfterEach();

describe('refusals', () => {
  it('are a page with the refused address, the reason and the remedy', async () => {
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
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: identity\r\n\r\n0'),
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
    const codes: string[] = [];
    const { gateway, port } = await gatewayTo([deaf, babble, both, switching, upgrading, closed], {
      onRefuse: ({ code }) => codes.push(code),
    });
    const codeOf = async (url: string) => {
      await expect(request(port, url)).rejects.toThrow('socket hang up'); // and no page, which would be taken for the site's
      return codes.pop();
    };
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
    const codes: string[] = [];
    const { gateway, port } = await gatewayTo([target], {
      dial: directDial({ timeoutMs: 300, staggerMs: 50 }),
      onRefuse: ({ code }) => codes.push(code),
    });
    await expect(request(port, `http://127.0.0.1:${target}/`)).rejects.toThrow('socket hang up');
    const answer = await raw(port, `CONNECT 127.0.0.1:${target} HTTP/1.1\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 504 [\s\S]*X-Corral-Egress: connect_timeout\r\n/);
    expect(codes).toEqual(['connect_timeout', 'connect_timeout']);
    expect(gateway.findings.failure(`127.0.0.1:${target}`)).toBe('net::ERR_CONNECTION_TIMED_OUT');
    await expect.poll(() => open(gateway), patience).toBe(0);
  });

  it('are logged sparingly when there are many', async () => {
    vi.useFakeTimers({ toFake: ['Date'] }); // the bound is one of lines in a time, and the machine may be slow
    cleanUp.push(() => vi.useRealTimers());
    const { gateway, port, lines } = await gatewayTo([]);
    for (let i = 0; i < 50; i++) await request(port, `http://127.0.0.1:9/${i}`);
    expect(gateway.counters.refused).toBe(50);
    expect(lines).toHaveLength(20);
  });
});

/** A loopback port with a full backlog and an owner that never accepts. The kernel lets further callers wait. */
async function deafPort(): Promise<number> {
  const code = `
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      require('node:fs').writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  cleanUp.push(() => child.kill('SIGKILL'));
  const port = Number(String(await once(child.stdout, 'data')));
  // One more than fits, because only a refused connection shows that the backlog is full.
  const callers = Array.from({ length: 4 }, () => connect(port));
  await expect.poll(() => callers.filter((caller) => !caller.connecting).length).toBeGreaterThan(0);
  return port;
}
