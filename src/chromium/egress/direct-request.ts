import http from 'node:http';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { GrowingBytes } from '../../lib/growing-bytes.ts';
import { boundInterimAnswers } from '../../lib/interim-answers.ts';
import type { Destinations } from './destinations.ts';
import { directDial, type Dial } from './dial.ts';
import { cheapCiphers } from './handshake-cost.ts';
import { EgressError } from './refusals.ts';

interface DirectRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: Uint8Array | undefined;
  /** PEM certificates that vouch for the server, instead of those the system trusts. */
  ca?: string | undefined;
  timeoutMs: number;
  /** An answer with more bytes is refused. */
  mostBytes: number;
}

interface DirectAnswer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** A request by the service itself. It throws an `EgressError` whenever no whole answer came back. */
export type RequestDirectly = (url: URL, request: DirectRequest) => Promise<DirectAnswer>;

/** Requests to addresses that users wrote, by the rules for sessions: each name is resolved once, checked, and dialled by address. */
export function directRequests({ allow, dial = directDial() }: { allow: Destinations; dial?: Dial }): RequestDirectly {
  return async (url, request) => {
    const secure = url.protocol === 'https:';
    const port = Number(url.port) || (secure ? 443 : 80);
    const giveUp = new AbortController();
    const late = setTimeout(() => giveUp.abort(), request.timeoutMs);
    const opened: Socket[] = [];
    try {
      const destination = await allow.check(url.hostname, port);
      const socket = await dial(destination, { signal: giveUp.signal });
      opened.push(socket);
      const line = secure ? await overTls(socket, url.hostname, request.ca, giveUp.signal) : socket;
      opened.push(line);
      return await ask(line, url, request, giveUp.signal);
    } catch (error) {
      if (error instanceof EgressError) throw error;
      if (giveUp.signal.aborted)
        throw new EgressError('connect_timeout', `${url.host} did not answer within ${request.timeoutMs / 1000} s.`);
      const { code, message } = error as NodeJS.ErrnoException;
      throw new EgressError('bad_answer', `The connection to ${url.host} failed (${code ?? message}).`, {
        cause: error,
      });
    } finally {
      clearTimeout(late);
      giveUp.abort();
      for (const socket of opened) socket.destroy();
    }
  };
}

function overTls(socket: Socket, hostname: string, ca: string | undefined, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    const named = /[a-z]/i.test(host) && !host.includes(':');
    const trusted = ca === undefined ? {} : { ca };
    const options = { socket, host, ciphers: cheapCiphers, ...(named ? { servername: host } : {}), ...trusted };
    const secure = connectTls(options);
    secure.once('secureConnect', () => resolve(secure));
    secure.on('error', reject);
    signal.addEventListener('abort', () => secure.destroy(new Error('it took too long')), { once: true });
  });
}

function ask(socket: Socket, url: URL, request: DirectRequest, signal: AbortSignal): Promise<DirectAnswer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body, mostBytes } = request;
    const length = body ? { 'Content-Length': String(body.byteLength) } : {};
    const asked = http.request({
      method,
      path: `${url.pathname}${url.search}`,
      headers: {
        'User-Agent': 'corral',
        Accept: 'application/json',
        ...headers,
        ...length,
        Host: url.host,
        Connection: 'close',
      },
      signal,
      createConnection: () => socket,
    });
    boundInterimAnswers(asked).on('error', reject);
    // An answer that switches protocols ends the request without a response and without an error.
    asked.once('close', () => reject(new Error('it ended without an answer')));
    asked.once('response', (response) => {
      const bytes = new GrowingBytes();
      response.on('data', (chunk: Buffer) => {
        bytes.add(chunk);
        if (bytes.size > mostBytes) {
          reject(new EgressError('bad_answer', `${url.host} sent more than ${mostBytes} bytes.`));
          asked.destroy();
        }
      });
      response.once('end', () => {
        const texts = Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(', ')]);
        resolve({ status: response.statusCode!, headers: Object.fromEntries(texts), body: bytes.all() });
      });
      response.on('error', reject);
      response.once('close', () => reject(new Error('the answer broke off')));
    });
    asked.end(body);
  });
}
