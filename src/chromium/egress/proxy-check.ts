import http from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { boundInterimAnswers } from '../../lib/interim-answers.ts';
import type { Destinations } from './destinations.ts';
import { directDial, type Dial } from './dial.ts';
import { cheapCiphers } from './handshake-cost.ts';
import { loginRefused } from './proxy-handshake.ts';
import { proxyWay, type Proxy } from './proxy.ts';
import { EgressError } from './refusals.ts';

/** The answer that came through a proxy, and the time since the connection to the proxy was started. */
export interface Reached {
  status: number;
  body: string;
  latencyMs: number;
}

const mostBytes = 64 * 1024;

/**
 * Requests an address the way a session does: CONNECT or SOCKS for https, absolute form for plain http where the
 * proxy takes it. Throws an `EgressError` whenever no answer came back.
 */
export async function reachThrough(
  proxy: Proxy,
  url: URL,
  { allow, dial = directDial(), timeoutMs = 15_000 }: { allow: Destinations; dial?: Dial; timeoutMs?: number },
): Promise<Reached> {
  const way = proxyWay(proxy, { allow, dial, handshakeMs: timeoutMs });
  const secure = url.protocol === 'https:';
  const target = { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(url.port) || (secure ? 443 : 80) };
  const giveUp = new AbortController();
  const late = setTimeout(() => giveUp.abort(), timeoutMs);
  const started = performance.now();
  const opened: Socket[] = [];
  try {
    const { signal } = giveUp;
    const plain = secure ? undefined : way.forward;
    const socket = await (plain ? plain.connect({ signal }) : way.tunnel(target, { signal }));
    opened.push(socket);
    const line = secure ? await over(socket, target.host, signal) : socket;
    opened.push(line);
    const answer = await ask(line, {
      path: plain ? url.href : `${url.pathname}${url.search}`,
      headers: ['Host', url.host, 'User-Agent', 'corral', 'Accept', '*/*', ...(plain?.headers ?? [])],
      signal,
    });
    if (plain && answer.status === 407) throw loginRefused('');
    return { ...answer, latencyMs: Math.max(1, Math.round(performance.now() - started)) };
  } catch (error) {
    if (error instanceof EgressError) throw error;
    if (giveUp.signal.aborted)
      throw new EgressError('proxy_timeout', `Nothing came back through the proxy within ${timeoutMs / 1000} s.`);
    const { message } = error as Error;
    throw new EgressError('bad_answer', `The response through the proxy is not valid: ${message}.`, {
      cause: error,
    });
  } finally {
    clearTimeout(late);
    giveUp.abort();
    for (const socket of opened) socket.destroy();
  }
}

/** TLS with the site through the tunnel, so that the proxy cannot answer in its place. */
function over(socket: Socket, host: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const named = /[a-z]/i.test(host) && !host.includes(':');
    const secure = connectTls({ socket, host, ciphers: cheapCiphers, ...(named ? { servername: host } : {}) });
    secure.once('secureConnect', () => resolve(secure));
    secure.on('error', reject);
    signal.addEventListener('abort', () => secure.destroy(new Error('it took too long')), { once: true });
  });
}

function ask(
  socket: Socket,
  { path, headers, signal }: { path: string; headers: string[]; signal: AbortSignal },
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    const request = http.request({
      path,
      headers: [...headers, 'Connection', 'close'],
      setHost: false,
      signal,
      createConnection: () => socket,
    });
    boundInterimAnswers(request).on('error', reject);
    // An answer that switches protocols ends the request without a response and without an error.
    request.once('close', () => reject(new Error('it ended without an answer')));
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const done = () => resolve({ status: response.statusCode!, body: Buffer.concat(chunks).toString('utf8') });
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk.subarray(0, mostBytes - length));
        length += chunk.length;
        if (length < mostBytes) return;
        done(); // enough to know that the site answers
        request.destroy();
      });
      response.once('end', done).on('error', reject);
    });
    request.end();
  });
}
