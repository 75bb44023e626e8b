import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import { Pool } from 'undici';
import { answeredHeaders, passedOnHeaders } from './headers.ts';

/** What the other node answers. Its body is still coming. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[]>;
  body: Readable;
}

/**
 * The ways to another node: kept connections for HTTP, and what ends with the node. Nothing here waits for an answer in
 * vain: the node itself bounds how long it takes, and a node that is given up ends everything that was on its way to it.
 */
export function wayTo(internalUrl: string) {
  const origin = new URL(new URL(internalUrl).origin);
  const gone = new AbortController();
  const pool = new Pool(origin, { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5000 } });

  return {
    internalUrl,
    origin,
    /** Aborts when the node is no longer there. */
    gone: gone.signal,

    /** Sends a client's request on as it comes in, and answers as the answer begins. */
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

    /** A request of our own, in JSON. */
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
 * What the client sends, at the speed at which the other node takes it. Not the request itself: whoever gives up on that
 * closes the client's connection, and the client would never read why.
 */
function bodyOf(request: IncomingMessage): Readable {
  const body = new PassThrough({ highWaterMark: 64 * 1024 });
  request.once('close', () => request.complete || body.destroy(new Error('The client hung up.')));
  body.once('close', () => request.unpipe(body).resume());
  return request.pipe(body);
}

const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
