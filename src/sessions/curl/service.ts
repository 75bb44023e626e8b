import type { Readable } from 'node:stream';
import { LARGEST_BODY, requestThrough, type BrowserResponse } from '../../chromium/pages/browser-request.ts';
import { TransportError } from '../../chromium/pages/net-errors.ts';
import { errors } from '../../errors.ts';
import { memoryShare, type MemoryShare } from '../../lib/memory-share.ts';
import { GrowingBytes } from '../../lib/growing-bytes.ts';
import { jsonStringParts } from '../../lib/json-parts.ts';
import { urlOf } from '../../lib/urls.ts';
import type { Hold } from '../holds.ts';
import { checkedHeaders } from './headers.ts';
import type { CurlRequest } from './schema.ts';

/** An answer that is put into JSON is in memory several times. */
const largestBuffered = 32 * 1024 * 1024;

/** A whole exchange, from JSON to the parts of JSON. */
export async function curl({ engine }: Hold, request: CurlRequest, hungUp: AbortSignal): Promise<Buffer[]> {
  const started = performance.now();
  const headers = checkedHeaders(request.headers ?? {});
  const body = bodyOf(request);
  const url = checkedUrl(request.url);
  const { method = 'GET', timeout_ms = 30_000, response_encoding = 'utf8' } = request;
  return withDeadline(timeout_ms, hungUp, async (signal) => {
    const response = await requestThrough(engine.hidden, { url, method, headers, body }, signal);
    const stopped = new TransportError('The answer stopped in the middle while others waited for room.');
    const room = memoryShare(engine.memory, () => response.body.destroy(stopped), signal);
    try {
      const bytes = await collect(response.body, largestBuffered, room);
      if (!bytes) {
        throw new TransportError(
          `The answer is larger than ${largestBuffered} bytes. Read it in a stream, at /curl/raw below the session's base_url.`,
        );
      }
      const first = { status: response.status, headers: gathered(response.headers) };
      const parts: Buffer[] = [Buffer.from(`${JSON.stringify(first).slice(0, -1)},"body":`)];
      for await (const part of jsonStringParts(bytes, response_encoding)) {
        parts.push(part);
        await room.add(part.length);
      }
      return [...parts, Buffer.from(`,"duration_ms":${Math.round(performance.now() - started)}}`)];
    } finally {
      room.close();
    }
  });
}

/** A streamed exchange. The deadline applies to the headers of the answer; its body takes as long as its reader. */
export async function curlRaw(
  { engine }: Hold,
  request: { url: string; method: string; headers: [string, string][]; body: Readable; timeoutMs: number },
  hungUp: AbortSignal,
): Promise<BrowserResponse> {
  const url = checkedUrl(request.url);
  const room = memoryShare(engine.memory, () => request.body.destroy(), hungUp);
  try {
    const body = await collect(request.body, LARGEST_BODY, room);
    if (!body) throw errors.payload_too_large({ limit: LARGEST_BODY });
    room.whole();
    const { method, headers } = request;
    return await withDeadline(request.timeoutMs, hungUp, async (signal) => {
      const asked = { url, method, headers, body: body.length > 0 ? body : undefined };
      const response = await requestThrough(engine.hidden, asked, signal);
      if (response.status >= 200 && response.status <= 599) return response;
      response.body.destroy(); // the page that it holds would never be free
      throw new TransportError(`The site answered with the status ${response.status}, which is not passed on.`);
    });
  } finally {
    room.close();
  }
}

function checkedUrl(text: string): string {
  const url = urlOf(text);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw errors.invalid_input({ detail: 'url must be an absolute address that begins with http:// or https://.' });
  }
  url.hash = ''; // a navigation to an address that differs only in its hash sends no request
  return url.href;
}

function bodyOf({ method = 'GET', body }: CurlRequest): Buffer | undefined {
  if (body === undefined || body === '') return undefined;
  if (method === 'GET' || method === 'HEAD') {
    throw errors.invalid_input({ detail: `body does not go with ${method}; use POST, or leave it out.` });
  }
  return Buffer.from(body);
}

/** Runs `work` until the deadline passes or the client hangs up, and translates its errors into those of the API. */
async function withDeadline<T>(ms: number, hungUp: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new TransportError(`No answer within ${ms} ms (timeout_ms).`, 'ERR_TIMED_OUT')),
    ms,
  );
  try {
    return await work(AbortSignal.any([late.signal, hungUp]));
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    const { netError } = error;
    throw errors.transport_failed(
      { detail: error.message },
      {
        body: netError ? { net_error: netError.number, net_error_name: netError.name } : {},
        headers: { 'x-should-retry': 'false' }, // only the client knows whether the request may be sent twice
        cause: error,
      },
    );
  } finally {
    clearTimeout(timer);
  }
}

/** Undefined when there are more bytes than `most`. */
async function collect(stream: Readable, most: number, room: MemoryShare): Promise<Buffer | undefined> {
  const whole = new GrowingBytes();
  for await (const part of stream as AsyncIterable<Buffer>) {
    if (whole.size + part.length > most) return undefined; // leaving the loop destroys the stream
    whole.add(part);
    await room.add(part.length);
  }
  return whole.all();
}

function gathered(headers: readonly (readonly [string, string])[]): Record<string, string[]> {
  const all: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const [name, value] of headers) (all[name.toLowerCase()] ??= []).push(value);
  return all;
}
