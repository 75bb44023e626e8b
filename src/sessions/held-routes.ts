import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf, projectOf } from '../api/caller.ts';
import { hungUp } from '../api/hung-up.ts';
import { commentHeartbeat, eventStream } from '../api/sse.ts';
import { takeStreamPlace } from '../api/stream-places.ts';
import type { Addresses, Minter } from './addresses.ts';
import type { Hold } from './holds.ts';
import type { SessionService } from './service.ts';

/** A session that a request uses. */
export interface Use {
  sessionId: string;
  held: Hold;
  /** Aborts when the client hangs up before it is answered, and when the lease that the session was used under ends. */
  gone: AbortSignal;
  /** The key and the project of the request. */
  minter: Minter;
}

/** Sends events to a reader until they end or the reader disconnects, which may happen before the first event. */
type Telling = (reader: {
  /** Resolves when there is room for more; false: the reader has disconnected. */
  send(event: unknown): Promise<boolean>;
  readonly closed: AbortSignal;
}) => Promise<void>;

export type HeldSessions = ReturnType<typeof heldSessions>;

/**
 * The ways in which a route uses a session. The session is held from before it wakes until the request is answered or its client
 * disconnects, at any stage: a session that stays held never sleeps and never ends.
 */
export function heldSessions({
  sessions,
  addresses,
}: {
  sessions: Pick<SessionService, 'idOf' | 'hold'>;
  addresses?: Pick<Addresses, 'admit'>;
}) {
  /** The session by the token of its base_url, or by project and id or name. */
  async function sessionOf(request: FastifyRequest): Promise<{ sessionId: string; minter: Minter }> {
    const { token, id } = request.params as { token?: string; id?: string };
    if (addresses && token !== undefined) return addresses.admit(token, 'base');
    const projectId = projectOf(request).id;
    return {
      sessionId: await sessions.idOf(projectId, id ?? '', false),
      minter: { keyId: callerOf(request).keyId, projectId },
    };
  }

  /** Listens for the client's disconnect before the first await, since a connection reports it only once. */
  async function hold(request: FastifyRequest, reply: FastifyReply): Promise<Use> {
    const left = hungUp(reply);
    const { sessionId, minter } = await sessionOf(request);
    const held = await sessions.hold(sessionId);
    const gone = new AbortController();
    const leave = () => gone.abort(left.reason);
    const returned = () => gone.abort(held.until.reason);
    if (left.aborted) leave();
    else left.addEventListener('abort', leave, { once: true });
    if (held.until.aborted) returned();
    else held.until.addEventListener('abort', returned, { once: true });
    const release = () => {
      held.until.removeEventListener('abort', returned);
      held.release();
    };
    return { sessionId, minter, gone: gone.signal, held: { ...held, release } };
  }

  /** Holds the session for as long as `work` takes. */
  async function using<T>(request: FastifyRequest, reply: FastifyReply, work: (use: Use) => Promise<T>): Promise<T> {
    const use = await hold(request, reply);
    try {
      return await work(use);
    } finally {
      use.held.release();
    }
  }

  return {
    using,

    /** Streams events out of the session, and holds it until they end or the reader disconnects. */
    sendEvents: (request: FastifyRequest, reply: FastifyReply, open: (use: Use) => Promise<Telling>): Promise<void> =>
      using(request, reply, async (use) => {
        use.gone.throwIfAborted();
        takeStreamPlace(use.sessionId, reply);
        const follow = await open(use);
        const events = eventStream(reply, commentHeartbeat, use.held.until);
        await follow(events).finally(() => events.end());
      }),

    /**
     * Streams bytes out of the session, and holds it until the last one is sent or the reader disconnects. The end of the lease breaks the
     * connection, so that the reader does not take the part it has for the whole.
     */
    async sendBytes(
      request: FastifyRequest,
      reply: FastifyReply,
      open: (use: Use) => Promise<{ content: Readable; close?: () => void }>,
    ): Promise<FastifyReply> {
      const use = await hold(request, reply);
      try {
        use.gone.throwIfAborted();
        const { content, close } = await open(use);
        const over = () => {
          close?.();
          content.destroy();
          use.held.release();
        };
        if (use.gone.aborted) over();
        use.gone.throwIfAborted();
        reply.raw.once('close', over);
        use.gone.addEventListener('abort', () => reply.raw.destroy(), { once: true });
        return reply.send(content);
      } catch (error) {
        use.held.release();
        throw error;
      }
    },
  };
}

/** Sends the items of a source in order. Closes the source when it ends or the reader disconnects. */
export const eachOf =
  (source: { next(): Promise<unknown>; close(): void }): Telling =>
  async ({ send, closed }) => {
    closed.addEventListener('abort', () => source.close(), { once: true });
    try {
      for (let event; !closed.aborted && (event = await source.next());) if (!(await send(event))) break;
    } finally {
      source.close();
    }
  };
