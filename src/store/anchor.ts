import { EventEmitter } from 'node:events';
import net from 'node:net';
import { hostname } from 'node:os';
import pg from 'pg';
import type { Log } from '../lib/log.ts';

/**
 * The one connection that is held for as long as the service lives. It carries what belongs to a connection rather
 * than to a query: the lock that says "this data directory is mine", and the notifications other nodes send.
 */
export interface Anchor {
  /** Called with what was notified on the channel. Register before `open`. */
  on(channel: string, listener: (payload: string) => void): void;
  /** Called when notifications may have been missed: the connection was lost and is back. */
  onGap(listener: () => void): void;
  /** False while the database was not heard from lately: what rests on notifications must not be trusted then. */
  readonly listening: boolean;
  close(): Promise<void>;
}

/**
 * How often the connection is tried, and how long the answer may take. A connection can go away without a word (a firewall forgets it, a
 * machine loses its power); nothing would be heard on it any more, and nothing would say so.
 */
const BEAT_MS = 5000;

export class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse';
}

export async function openAnchor(options: {
  connection: pg.ClientConfig;
  channels: string[];
  nodeId: string;
  dataDir: string;
  recover: () => Promise<void>;
  /** The lock was taken by another process while the connection was lost: going on would be two services on one directory. */
  onLost: (error: Error) => void;
  log: Log;
  beatMs?: number;
}): Promise<Anchor> {
  const { connection, channels, nodeId, dataDir, recover, onLost, log, beatMs = BEAT_MS } = options;
  const events = new EventEmitter();
  const name = `corral on ${hostname()}, process ${process.pid}`;
  let client: pg.Client | undefined;
  /** How the server knows the connection that was last held. */
  let backend: Backend | undefined;
  let heardAt = -Infinity;
  let closed = false;

  async function hold() {
    const socket = new net.Socket();
    const next = new pg.Client({ ...connection, application_name: name, keepAlive: true, stream: () => socket });
    // Attached first: a client without an error listener takes the process down when its connection breaks.
    next.on('error', (error) => log.warn({ error: error.message }, 'store.anchor_error'));
    try {
      await next.connect();
      await endLast(next, backend);
      await takeLock(next, nodeId, dataDir);
      backend = await backendOf(next);
      for (const channel of channels) await next.query(`listen "${channel}"`);
    } catch (error) {
      await next.end().catch(() => {});
      throw error;
    }
    next.on('notification', ({ channel, payload }) => events.emit(channel, payload ?? ''));
    const beating = beat(next, socket);
    next.on('end', () => {
      clearInterval(beating);
      if (client !== next) return;
      client = undefined;
      if (!closed) void holdAgain();
    });
    client = next;
    heardAt = performance.now();
  }

  /** Asks now and then whether it is still there. An answer that does not come in time is the connection's end. */
  function beat(client: pg.Client, socket: net.Socket): NodeJS.Timeout {
    let waiting = false;
    return setInterval(() => {
      if (waiting) return void socket.destroy(new Error(`The database was silent for ${beatMs} ms.`));
      waiting = true;
      client.query('select 1').then(
        () => {
          waiting = false;
          heardAt = performance.now();
        },
        () => {}, // its end is told by the client
      );
    }, beatMs).unref();
  }

  async function holdAgain() {
    log.warn({}, 'store.anchor_lost');
    for (let wait = 50; ; wait = Math.min(wait * 2, 2000)) {
      if (closed) return;
      try {
        await recover();
        await hold();
        events.emit('gap');
        log.info({}, 'store.anchor_back');
        return;
      } catch (error) {
        if (error instanceof DataDirInUse) return onLost(error);
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }

  await hold();
  return {
    on: (channel, listener) => void events.on(channel, listener),
    onGap: (listener) => void events.on('gap', listener),
    get listening() {
      return client !== undefined && performance.now() - heardAt < 3 * beatMs;
    },
    async close() {
      closed = true;
      await client?.end();
    },
  };
}

/** A process number alone may mean another connection by now. The time is text: a Date has no microseconds. */
interface Backend {
  pid: number;
  since: string;
}

const backendOf = async (client: pg.Client) =>
  (
    await client.query<Backend>(
      'select pid, backend_start::text as since from pg_stat_activity where pid = pg_backend_pid()',
    )
  ).rows[0];

/** A connection that went away without a word is still there for the server, with the lock that it holds. */
async function endLast(client: pg.Client, last: Backend | undefined) {
  if (!last) return;
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start::text = $2',
    [last.pid, last.since],
  );
}

/**
 * Waits a moment for a holder that is going away: after a kill -9 the server needs a few milliseconds to notice that
 * the old connection is gone.
 */
async function takeLock(client: pg.Client, nodeId: string, dataDir: string) {
  const key = `corral node ${nodeId}`;
  const deadline = Date.now() + 3000;
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as taken',
      [key],
    );
    if (rows[0]?.taken) return;
    if (Date.now() > deadline) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { rows } = await client.query<{ application_name: string }>(
    `select application_name from pg_locks join pg_stat_activity using (pid)
     where locktype = 'advisory' and granted and objsubid = 1
       and ((classid::bigint << 32) | objid::bigint) = hashtextextended($1, 0)`,
    [key],
  );
  const holder = rows[0]?.application_name ?? 'another process';
  throw new DataDirInUse(
    `The data directory ${dataDir} is in use by ${holder}. Stop that one first, or give this one a CORRAL_DATA_DIR of its own.`,
  );
}
