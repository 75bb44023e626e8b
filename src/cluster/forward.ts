import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import { Pool } from 'undici';
import { answeredHeaders, passedOnHeaders } from './headers.ts';

/** The response of the other node. Its body is still arriving. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[]>;
  body: Readable;
}

/**
 * The connection to another node: kept connections for HTTP, and a signal that aborts with the node. Requests have no
 * timeout here: the node itself limits the time, and when a node is declared dead, all requests to it end.
 */
export function wayTo(internalUrl: string) {
  const origin = new URL(new URL(internalUrl).origin);
  const gone = new AbortController();
  const pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5000 } });

  return {
    internalUrl,
    origin,
    /** Aborts when the node is lost. */
    gone: gone.signal,

    /** Forwards a client's request as it arrives, and resolves when the response begins. */
    async forward(
      request: IncomingMessage,
      credential: [name: string, value: string],
      signal: AbortSignal,
    ): Promise<Answer> {
      const { statusCode, headers, body } = await pool.request({
        method: request.method ?? 'GET',
        path: request.url ?? '/',
        headers: [...passedOnHeaders(request), ...credential],
        body: hasBody(request) ? bodyOf(request) : null,
        signal,
      });
      return { status: statusCode, headers: answeredHeaders(headers), body };
    },

    /** A request of this node itself, in JSON. */
    async ask(
      { method, url, body }: { method: string; url: string; body?: string | undefined },
      [name, value]: [name: string, value: string],
      signal?: AbortSignal,
    ): Promise<{ status: number; body: unknown }> {
      const answer = await pool.request({
        method,
        path: url,
        headers: { [name]: value, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body }),
        ...(signal ? { signal } : {}),
      });
      const text = await answer.body.text();
      return { status: answer.statusCode, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
    },

    close() {
      gone.abort();
      void pool.destroy(new Error('The node went away.'));
    },
  };
}

export type Way = ReturnType<typeof wayTo>;

/**
 * The client's body, at the speed at which the other node reads it. Not the request itself: aborting that closes the
 * client's connection, and the client would never read the error.
 */
function bodyOf(request: IncomingMessage): Readable {
  const body = new PassThrough({ highWaterMark: 64 * 1024 });
  request.once('close', () => request.complete || body.destroy(new Error('The client hung up.')));
  body.on('error', () => {}); // the connection gets it too, if it reads the body yet
  body.once('close', () => request.unpipe(body).resume());
  return request.pipe(body);
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
