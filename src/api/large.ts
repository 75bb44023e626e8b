import { Readable, Transform } from 'node:stream';
import type { FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { errors } from '../errors.ts';
import { hungUp } from './hung-up.ts';
import { memory, type Group, type Share } from '../lib/byte-budget.ts';
import { JsonWeight, MOST_ESCAPES, MOST_WEIGHT } from '../lib/json-weight.ts';
import { memoryShare, type MemoryShare } from '../lib/memory-share.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** How many names and values its JSON may have, where reading them costs more than parsing them. */
    mostValues?: number;
  }
}

/** Bodies and responses are counted from this size on. */
const LARGE = 64 * 1024;
const SLICE = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/** Requests with bodies that were weighed on arrival. */
const weighed = new WeakSet<FastifyRequest>();

/** A large body, which is counted until the connection is closed and nothing in the service uses the body any more. */
interface LargeBody {
  readonly share: Share;
  /** Whether all of it has arrived: the handler gets it, although the client may have disconnected. */
  readonly isWhole: () => boolean;
  /** Whether its handler was called, and is over. */
  state: 'waits' | 'runs' | 'over';
  closed: boolean;
}

const bodies = new WeakMap<FastifyRequest, LargeBody>();

/** What the bytes of a request and of its answer are counted for: its project, or the address of a client without a key. */
export const memoryOf = ({ project, caller, clientIp }: FastifyRequest): Group =>
  memory.project(project?.id ?? caller?.keyId ?? clientIp);

/**
 * A body that is read whole. When the memory budget is used up, its sender is paused; a sender that stalls while others
 * wait is cut off. It is counted twice until it is parsed, for its text and for the parsed value, and then once until the request is
 * answered. The body of a disconnected client is counted until its handler ends: many of them could wait for their turns in a
 * session. JSON is weighed as it arrives: parsing it is one piece of work, which may not take long.
 */
export function countedBody(request: FastifyRequest, reply: FastifyReply, payload: Readable): Readable {
  if (Number(request.headers['content-length'] ?? Infinity) <= LARGE) return payload;
  const share = memory.share(memoryOf(request), 'sender', () => request.raw.destroy());
  const body: LargeBody = { share, isWhole: () => request.raw.complete, state: 'waits', closed: false };
  bodies.set(request, body);
  reply.raw.once('close', () => {
    body.closed = true;
    release(body);
  });
  const weight = isJson(request) ? new JsonWeight() : undefined;
  if (weight) weighed.add(request);
  const limit = request.routeOptions.bodyLimit ?? Infinity;
  let size = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (size > limit) return done(); // the reader refuses the body: the rest is discarded
      size += chunk.length;
      if (weight?.add(chunk, mostValues(request)) === false) return done(tooHeavy(request, weight));
      if (share.grow(2 * chunk.length, () => done(null, chunk))) done(null, chunk);
    },
    flush(done) {
      share.hold(true); // all of it has arrived: the handler may take as long as it needs
      done();
    },
  });
  counted.on('close', () => release(body)); // what arrived after the connection was closed is counted too
  counted.on('error', () => {}); // the reader gets it too, unless it has refused the body and listens no more
  payload.on('error', (error) => counted.destroy(error));
  return payload.pipe(counted);
}

/** The text of the body is not kept any longer. */
export function countParsed(request: FastifyRequest): void {
  const share = bodies.get(request)?.share;
  if (share) share.set(share.bytes / 2);
}

/** The same handler, which counts the body of its request until it is over. */
export function countingHandler(handle: RouteHandlerMethod): RouteHandlerMethod {
  return function (request, reply) {
    const body = bodies.get(request);
    const handled = handle.call(this, request, reply);
    if (!body || !(handled instanceof Promise)) return handled;
    body.state = 'runs';
    const over = () => {
      body.state = 'over';
      release(body);
    };
    handled.then(over, over);
    return handled;
  };
}

/** The request is answered. If its handler was never called, such as for a body that is not valid, nothing needs the body any more. */
export function countAnswered(request: FastifyRequest): void {
  const body = bodies.get(request);
  if (!body || body.state === 'runs') return;
  body.state = 'over';
  release(body);
}

/** The service failed in the work of the request. Its handler may never end, so the body is not counted any longer. */
export function countFailed(request: FastifyRequest): void {
  const body = bodies.get(request);
  if (!body) return;
  body.state = 'over';
  release(body);
}

function release({ share, isWhole, state, closed }: LargeBody): void {
  if (closed && (!isWhole() || state === 'over')) share.close();
}

/** Refuses JSON that would take long to parse. Bodies of every type are weighed before they are parsed. */
export function refuseHeavy(request: FastifyRequest, body: Buffer): void {
  if (weighed.has(request) || body.length <= mostValues(request)) return; // every unit of the weight takes a byte
  const weight = new JsonWeight();
  if (!weight.add(body, mostValues(request))) throw tooHeavy(request, weight);
}

const mostValues = ({ routeOptions }: FastifyRequest) => routeOptions.config.mostValues ?? MOST_WEIGHT;

const tooHeavy = (request: FastifyRequest, { escapes }: JsonWeight) =>
  escapes > MOST_ESCAPES
    ? errors.payload_too_large({ limit: MOST_ESCAPES, unit: 'escapes' })
    : errors.payload_too_large({ limit: mostValues(request), unit: 'values' });

/** Whether the body is parsed here. A driver gets what else WebDriver sends as it comes. */
function isJson({ headers, routeOptions: { config } }: FastifyRequest): boolean {
  return config.webdriver === undefined
    ? String(headers['content-type']).trim().toLowerCase().startsWith('application/json')
    : config.webdriver === 'new';
}

/**
 * Runs work that reads a large answer into memory and sends it. `room` counts it until then: the answer is counted by itself. The work does
 * not resolve with the reply, which would resolve when the client has read the answer.
 */
export async function withRoom(
  request: FastifyRequest,
  reply: FastifyReply,
  work: (room: MemoryShare) => Promise<void>,
): Promise<never> {
  const stalled = new AbortController();
  const until = AbortSignal.any([hungUp(reply), stalled.signal]);
  const room = memoryShare(memoryOf(request), () => stalled.abort(errors.memory_full()), until);
  try {
    await work(room);
  } finally {
    room.close();
  }
  return reply as never;
}

/** A complete response, sent as fast as the client reads. A client that stops reading while others wait is cut off. */
export function countedAnswer(reply: FastifyReply, payload: unknown): unknown {
  const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload);
  if (!isWhole || payload.length <= LARGE) return payload;
  return countedParts(reply, [typeof payload === 'string' ? Buffer.from(payload) : payload]);
}

/** The same for text in parts: to join them would take long, unless they are small. */
export function countedParts(reply: FastifyReply, parts: Buffer[]): Readable | string {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  if (size <= LARGE) return Buffer.concat(parts).toString();
  void reply.header('content-length', size);
  if (reply.raw.destroyed) return Readable.from([]); // no further `close` would come
  const share = memory.share(memoryOf(reply.request), 'reader', () => reply.raw.destroy());
  share.set(size);
  reply.raw.once('close', () => share.close());
  return Readable.from(slices(parts, size, share), { objectMode: false, highWaterMark: SLICE });
}

async function* slices(parts: Buffer[], size: number, share: { set(bytes: number): void }) {
  let left = size;
  for (const [index, part] of parts.entries()) {
    for (let at = 0; at < part.length; at += SLICE) {
      share.set(left);
      const slice = part.subarray(at, at + SLICE);
      left -= slice.length;
      yield slice;
    }
    parts[index] = NOTHING; // it is read
  }
}
