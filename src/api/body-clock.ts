import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { PassThrough, type Readable } from 'node:stream';
import type { Multipart } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import { gatherChunks } from '../lib/gathered-chunks.ts';
import { pipeInTurns } from '../lib/pipe-in-turns.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `stream`: the handler reads the body while it arrives. `form`: the same, part by part. Other bodies are JSON and read whole. */
    body?: 'stream' | 'form';
  }
}

/** A body that arrives more slowly counts as stalled. */
const slowestBytesPerSecond = 500;
/** A body that is read whole may take this many times the deadline in all: until then it takes memory and does nothing. */
const wholeBodies = 2;
/** Another node watches its own client, and its refusal is the one to answer. This node's clock is for a node that froze. */
const forwardedBodies = 2;

const clocks = new WeakMap<IncomingMessage, BodyClock>();

/** Starts the clock of every body before anything else is done with its request, so that no refusal leaves a connection to stall. */
export function watchBodies(server: Server, seconds: number): void {
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.headers['transfer-encoding'] !== undefined) gatherChunks(request);
    if (hasBody(request)) clocks.set(request, new BodyClock(request, response, seconds));
  });
}

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

export const clockOf = ({ raw }: Pick<FastifyRequest, 'raw'>): BodyClock | undefined => clocks.get(raw);

/**
 * How long a client may let the service wait for the rest of its body. Each second of waiting uses one up, and received bytes
 * add time: a body that stops, or trickles, runs out of time, and a large body that flows never does.
 * Time in which the service does not read is not counted.
 */
class BodyClock {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #stalled = new AbortController();
  readonly #everySeconds: number;
  readonly #tick: NodeJS.Timeout;
  #most: number;
  #left: number;
  #inAll = Infinity;
  #seen: number;
  #looked = performance.now();

  constructor(request: IncomingMessage, response: ServerResponse, seconds: number) {
    this.#request = request;
    this.#response = response;
    this.#most = this.#left = seconds;
    this.#seen = request.socket.bytesRead;
    this.#everySeconds = seconds / 10;
    this.#tick = setTimeout(() => this.#look(), this.#everySeconds * 1000).unref();
    request.once('close', () => clearTimeout(this.#tick));
  }

  /** Aborts when the time is used up, with the refusal to answer. */
  get stalled(): AbortSignal {
    return this.#stalled.signal;
  }

  readWhole() {
    this.#inAll = this.#most * wholeBodies;
  }

  fromAnotherNode() {
    this.#most *= forwardedBodies;
    this.#left *= forwardedBodies;
  }

  #look() {
    const { complete, readableLength, socket } = this.#request;
    if (complete || socket.destroyed) return;
    const now = performance.now();
    // A service that was held up for longer has not read either.
    const waited = Math.min((now - this.#looked) / 1000, 2 * this.#everySeconds);
    const arrived = socket.bytesRead - this.#seen;
    this.#looked = now;
    this.#seen = socket.bytesRead;
    if (readableLength === 0) {
      this.#left = Math.min(this.#most, this.#left - waited + arrived / slowestBytesPerSecond);
      this.#inAll -= waited;
    }
    if (this.#left > 0 && this.#inAll > 0) this.#tick.refresh();
    else this.#runOut();
  }

  #runOut() {
    const { socket } = this.#request;
    if (this.#response.headersSent) return void socket.destroy(); // only the connection is left
    const seconds = this.#left > 0 ? this.#most * wholeBodies : this.#most;
    this.#stalled.abort(errors.body_timeout({ seconds }));
    // The answer closes the connection. A route that does not read its body answers later, or not in time.
    const late = setTimeout(() => socket.destroy(), this.#most * 1000).unref();
    socket.once('close', () => clearTimeout(late));
  }
}

/**
 * The body as a stream that fails when it stalls. The request itself would take the connection with it, and the answer. The bodies of all
 * clients are read in turns.
 */
export function guarded(request: FastifyRequest, body: Readable): Readable {
  const clock = clockOf(request);
  if (!clock) return body;
  const through = new PassThrough();
  const fail = () => through.destroy(clock.stalled.reason as Error);
  if (clock.stalled.aborted) fail();
  clock.stalled.addEventListener('abort', fail, { once: true });
  body.once('close', () => request.raw.complete || through.destroy(new Error('The client hung up.')));
  const stop = pipeInTurns(body, through, request.clientIp, () => request.raw.complete);
  through.once('close', () => {
    stop();
    body.resume();
  });
  through.on('error', () => {}); // the reader gets it too, if there is one yet
  return through;
}

/** The parts of a form as they arrive. Fails when the form stalls, between its parts or in the middle of a file. */
export async function* partsOf(request: FastifyRequest): AsyncGenerator<Multipart> {
  if (!request.isMultipart()) throw errors.bad_request({ detail: 'The body must be multipart/form-data.' });
  const stalled = clockOf(request)?.stalled ?? new AbortController().signal;
  const parts = request.parts();
  for (;;) {
    const { value: part, done } = await unlessAborted(stalled, parts.next());
    if (done) return;
    const cut = () => part.type === 'file' && part.file.destroy(stalled.reason as Error);
    stalled.addEventListener('abort', cut);
    try {
      yield part;
    } finally {
      stalled.removeEventListener('abort', cut);
    }
  }
}

function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
