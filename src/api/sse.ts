import type { FastifyReply } from 'fastify';
import { memoryShare } from '../lib/memory-share.ts';
import { streamHeartbeatMs } from '../lib/stream-heartbeat.ts';
import { memoryOf } from './large.ts';

const LARGE = 64 * 1024;

/**
 * Server-sent events as the clients of this interface read them: every frame has one `data:` line of JSON (a frame without
 * one breaks their parser), and a heartbeat is sent when idle.
 */
export interface EventStream {
  /**
   * Resolves when there is room for the next event, so that a slow reader slows the source. False: the reader has disconnected.
   * The name is for readers that go by the frame's `event:` line; the others go by a field of the JSON.
   */
  send(event: unknown, name?: string): Promise<boolean>;
  /** The same for an event that is JSON already, with the id that a reader names when it connects again. */
  sendJson(json: string, id: number): Promise<boolean>;
  /**
   * Waits for room for an event of so many bytes, which is sent next: call it before the event is read into memory. A reader that gets no
   * room in time is disconnected.
   */
  reserve(bytes: number): Promise<void>;
  /** Sends a comment, which readers skip. */
  comment(text: string): void;
  end(): void;
  /** Aborts when the reader has disconnected or `end` was called. */
  readonly closed: AbortSignal;
}

/** The heartbeat of a silent stream. */
export type Heartbeat = { everyMs: number; event: () => unknown } | { everyMs: number; comment: string };

/** The time without events before a heartbeat, as the API document says it. */
export const heartbeatAfter = `${streamHeartbeatMs / 1000} s`;

const jsonHeartbeat: Heartbeat = {
  everyMs: streamHeartbeatMs,
  event: () => ({ event: 'sse_heartbeat', timestamp: new Date().toISOString() }),
};

/** For event formats without heartbeats. */
export const commentHeartbeat: Heartbeat = { everyMs: streamHeartbeatMs, comment: 'still here' };

/** The stream ends when `until` aborts or its source ends. */
export function eventStream(
  reply: FastifyReply,
  heartbeat: Heartbeat = jsonHeartbeat,
  until?: AbortSignal,
): EventStream {
  const out = reply.raw;
  const end = () => void out.end();
  const closed = new AbortController();
  /** A large event counts until it is read, like an answer. */
  const room = memoryShare(memoryOf(reply.request), () => out.destroy(), closed.signal);
  let reserved = 0;
  reply.hijack();
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) out.setHeader(name, value);
  out.writeHead(200, {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no', // proxies in front of the service must not buffer events
    'X-SSE-Content-Type': 'application/json',
  });
  out.flushHeaders();

  const beat = setTimeout(() => {
    if ('comment' in heartbeat) comment(heartbeat.comment);
    else void send(heartbeat.event());
    beat.refresh();
  }, heartbeat.everyMs);
  if (until?.aborted) end();
  until?.addEventListener('abort', end, { once: true });
  const left = () => {
    clearTimeout(beat);
    until?.removeEventListener('abort', end);
    closed.abort();
    room.close();
  };
  // No further `close` event comes for a reader that disconnected before this call.
  if (out.destroyed) left();
  else out.once('close', left);
  out.on('error', () => {}); // `close` follows and is handled

  function write(text: string): boolean {
    beat.refresh();
    return out.write(text);
  }

  const send = (event: unknown, name?: string) =>
    sendFrame(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(event)}\n\n`);

  async function reserve(bytes: number): Promise<void> {
    const more = bytes - reserved;
    if (bytes <= LARGE || more <= 0 || closed.signal.aborted) return;
    reserved = bytes;
    await room.add(more).catch(() => void out.destroy());
  }

  async function sendFrame(frame: string): Promise<boolean> {
    await reserve(frame.length);
    if (closed.signal.aborted || out.destroyed || out.writableEnded) return false;
    if (!write(frame)) await drained();
    if (frame.length > LARGE) {
      reserved = 0;
      room.close();
    }
    return !closed.signal.aborted;
  }

  function drained(): Promise<void> {
    return new Promise<void>((resolve) => {
      const done = () => {
        out.off('drain', done);
        closed.signal.removeEventListener('abort', done);
        resolve();
      };
      out.once('drain', done);
      closed.signal.addEventListener('abort', done, { once: true });
    });
  }

  function comment(text: string) {
    if (!closed.signal.aborted && !out.writableEnded) write(`: ${text}\n\n`);
  }

  const sendJson = (json: string, id: number) => sendFrame(`id: ${id}\ndata: ${json}\n\n`);
  return { send, sendJson, reserve, comment, end, closed: closed.signal };
}
