import createClient from 'openapi-fetch';
import { become, identity } from './identity.ts';
import type { paths } from './schema.gen.d.ts';

/** An error of the service, with its message and the request id for its log. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string;
  readonly requestId: string;
  constructor(status: number, code: string, message: string, requestId: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

function authHeaders(): Record<string, string> {
  const caller = identity();
  return {
    ...(caller ? { Authorization: `Bearer ${caller.key}` } : {}),
    ...(caller?.project ? { 'X-Kernel-Project-Id': caller.project } : {}),
  };
}

/** The console uses only the public API, so a program can do the same. */
export const api = createClient<paths>({ baseUrl: location.origin });

api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(authHeaders()))
      if (!request.headers.has(name)) request.headers.set(name, value);
    return request;
  },
});

type Reply<T> = { data?: T; error?: unknown; response: Response };

/** The answer, or an ApiError. */
export async function ask<T>(reply: Promise<Reply<T>>): Promise<T> {
  return (await answerOf(reply)).data;
}

export interface Page<T> {
  items: T[];
  more: boolean;
  /** The token of the next page, for a list without offsets. */
  next?: string | undefined;
}

/** One page of a list, and whether another page follows. */
export async function askPage<T>(reply: Promise<Reply<T[]>>): Promise<Page<T>> {
  const { data, response } = await answerOf(reply);
  const { headers } = response;
  return {
    items: data,
    more: headers.get('X-Has-More') === 'true',
    next: headers.get('X-Next-Page-Token') ?? undefined,
  };
}

async function answerOf<T>(reply: Promise<Reply<T>>): Promise<{ data: T; response: Response }> {
  const { data, error, response } = await reply.catch((failure: unknown) => {
    throw unreachable(failure);
  });
  if (!response.ok) throw refusalOf(response, error);
  return { data: data as T, response };
}

/** A request that the typed client does not support: bytes, streams. */
export async function fetchRaw(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { ...authHeaders(), ...(init.headers as Record<string, string> | undefined) };
  const response = await fetch(path, { ...init, headers }).catch((failure: unknown) => {
    if (init.signal?.aborted) throw failure;
    throw unreachable(failure);
  });
  if (!response.ok) throw refusalOf(response, await response.json().catch(() => undefined));
  return response;
}

function refusalOf(response: Response, body: unknown): ApiError {
  const { code = `http_${response.status}`, message = `The service answered ${response.status}.` } = (body ??
    {}) as Partial<{ code: string; message: string }>;
  const refusal = new ApiError(response.status, code, message, response.headers.get('X-Request-Id') ?? '');
  // The key was revoked or has expired while the page was open.
  if (response.status === 401 && identity()) become(null, message);
  return refusal;
}

const unreachable = (failure: unknown) =>
  new ApiError(0, 'unreachable', 'The service cannot be reached. It is tried again in a moment.', String(failure));
