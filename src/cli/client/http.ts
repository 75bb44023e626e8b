import { request as plain, type IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { withoutEnd } from '../../lib/text.ts';
import { exit, Fault, Refused } from '../fault.ts';

export interface Target {
  url: string;
  key: string;
  project?: string | undefined;
}

/** Lists are repeated, pairs become `name[key]`. */
type Query = Record<string, unknown>;

export interface Question {
  method: string;
  path: string;
  query?: Query;
  /** JSON unless it is bytes or a stream. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** A body that is not JSON. */
export interface Upload {
  stream: Readable;
  bytes?: number;
}

const isUpload = (body: unknown): body is Upload => typeof body === 'object' && body !== null && 'stream' in body;

/**
 * A request to the service with `node:http`, because loading fetch takes twenty milliseconds. Resolves when the answer starts; an error
 * of the service is thrown with its message.
 */
export async function ask(target: Target, question: Question): Promise<IncomingMessage> {
  const url = addressOf(target, question.path, question.query);
  const { body } = question;
  const json = body !== undefined && !isUpload(body) ? Buffer.from(JSON.stringify(body)) : undefined;
  const headers: Record<string, string> = {
    ...(target.key ? { authorization: `Bearer ${target.key}` } : {}),
    ...(target.project ? { 'x-kernel-project': target.project } : {}),
    'user-agent': 'corral-cli',
    ...(json ? { 'content-type': 'application/json', 'content-length': String(json.length) } : {}),
    ...(isUpload(body) && body.bytes !== undefined ? { 'content-length': String(body.bytes) } : {}),
    ...question.headers,
  };
  // node:https is only loaded for TLS: it takes half of the load time of http.
  const open = url.protocol === 'https:' ? (await import('node:https')).request : plain;
  let stop = () => {};
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { method: question.method, headers, ...(question.signal ? { signal: question.signal } : {}) };
    const request = open(url, options, resolve);
    request.on('error', (error) => reject(question.signal?.aborted ? error : unreachable(url, error)));
    if (!isUpload(body)) return request.end(json);
    body.stream.on('error', (error) => request.destroy(error)).pipe(request);
    // A service may refuse an upload before it has received all of it.
    stop = () => {
      body.stream.destroy();
      request.destroy();
    };
  });
  if (answer.statusCode! < 400) return answer;
  const text = (await bytesOf(answer)).toString();
  stop();
  const requestId = answer.headers['x-request-id'];
  throw new Refused(answer.statusCode!, refusalOf(text), typeof requestId === 'string' ? requestId : undefined);
}

/** The JSON of an answer, or undefined when it is empty. */
export async function askJson<T = unknown>(target: Target, question: Question): Promise<T> {
  return jsonOf<T>(await ask(target, question));
}

export async function jsonOf<T>(answer: IncomingMessage): Promise<T> {
  const bytes = await bytesOf(answer);
  if (bytes.length === 0) return undefined as T;
  try {
    return JSON.parse(bytes.toString()) as T;
  } catch {
    throw new Fault(
      'The answer is not JSON: the address is not a Corral service, or a proxy answered. `corral contexts` shows the address.',
      exit.unreachable,
    );
  }
}

export async function bytesOf(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of whole(stream)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The bytes of the answer. A connection that breaks before their end is reported. */
export async function* whole(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* stream;
  } catch (error) {
    if ((error as { code?: string }).code !== 'ECONNRESET') throw error;
    throw new Fault('The connection to the service was lost before its answer was complete.', exit.unreachable);
  }
}

/** The messages of an event stream, parsed. Comments only keep the connection alive. */
export async function* eventsOf<T>(answer: AsyncIterable<Buffer>): AsyncGenerator<T> {
  const decoder = new TextDecoder();
  let text = '';
  let data: string[] = [];
  for await (const chunk of whole(answer)) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split(/\r?\n/);
    text = lines.pop()!;
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
      if (line !== '' || data.length === 0) continue;
      yield JSON.parse(data.join('\n')) as T;
      data = [];
    }
  }
}

export function addressOf(target: Target, path: string, query: Record<string, unknown> = {}): URL {
  const url = new URL(`${withoutEnd(target.url, '/')}${path}`);
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    if (Array.isArray(value)) for (const one of value) url.searchParams.append(name, String(one));
    else if (typeof value === 'object' && value !== null)
      for (const [key, one] of Object.entries(value)) url.searchParams.append(`${name}[${key}]`, String(one));
    else url.searchParams.append(name, textOf(value));
  }
  return url;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function refusalOf(text: string): { code?: string; message?: string } {
  try {
    return JSON.parse(text) as { code?: string; message?: string };
  } catch {
    return {}; // a proxy in between answers with a page
  }
}

function unreachable(url: URL, error: Error & { code?: string }): Fault {
  const reason = error.code === 'ECONNREFUSED' ? 'Nothing listens there.' : error.message || (error.code ?? '');
  return new Fault(
    `The service at ${url.origin} cannot be reached. ${reason} \`corral contexts\` shows the address.`,
    exit.unreachable,
  );
}
