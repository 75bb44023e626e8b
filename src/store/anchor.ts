import { EventEmitter } from 'node:events';
import net from 'node:net';
import { hostname } from 'node:os';
import pg from 'pg';
import type { Log } from '../lib/log.ts';

/**
 * The one connection that is held for as long as the service runs. It is for state of a connection rather than of
 * a query: the lock on the data directory, and the notifications of other nodes. The lock is an advisory lock: unlike a pid
 * file, it is released when its process dies.
 */
export interface Anchor {
  /** Registers a listener for notifications on the channel. Register before `open`. */
  on(channel: string, listener: (payload: string) => void): void;
  /** Called when notifications may have been missed: the connection was lost and is back. */
  onGap(listener: () => void): void;
  /** False while the database has not answered lately: state that depends on notifications must not be trusted then. */
  readonly listening: boolean;
  close(): Promise<void>;
}

/**
 * How often the connection is checked, and how long the answer may take. A connection can break silently (a firewall
 * drops it, a machine loses its power); notifications would then be missed without an error.
 */
const BEAT_MS = 5000;
/** How long a server may take to let the connection in. Without this bound, a silent server would be waited for without end. */
const CONNECT_MS = 10_000;

export class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse';
}

export async function openAnchor(options: {
  connection: pg.ClientConfig;
  channels: string[];
  nodeId: string;
  dataDir: string;
  recover: () => Promise<void>;
  /** Another process took the lock while the connection was lost: continuing would mean two services on one directory. */
  onLost: (error: Error) => void;
  log: Log;
  beatMs?: number;
}): Promise<Anchor> {
  const { connection, channels, nodeId, dataDir, recover, onLost, log, beatMs = BEAT_MS } = options;
  const events = new EventEmitter();
  const name = `corral on ${hostname()}, process ${process.pid}`;
  let client: pg.Client | undefined;
  /** The server's identity of the last connection. */
  let backend: Backend | undefined;
  let heardAt = -Infinity;
  let closed = false;

  async function hold() {
    const socket = new net.Socket();
    const patience = { keepAlive: true, connectionTimeoutMillis: CONNECT_MS };
    const next = new pg.Client({ ...connection, ...patience, application_name: name, stream: () => socket });
    // Attached first: a client without an error listener crashes the process when its connection breaks.
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

  /** Checks the connection regularly. If an answer is late, the connection is closed. */
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
        () => {}, // the client's `end` event handles it
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
    on: (channel, listener) =>
      void events.on(channel, (payload: string) => {
        try {
          listener(payload);
        } catch (error) {
          // Any client of the database can notify. The payload is not logged: it may be of any size and content.
          log.error({ channel, error: (error as Error).message }, 'store.notification_unread');
        }
      }),
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

/** A process id alone may have been reused by another connection. The time is text: a Date has no microseconds. */
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

/** For the server, a connection that broke silently still exists, and still holds the lock. */
async function endLast(client: pg.Client, last: Backend | undefined) {
  if (!last) return;
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start::text = $2',
    [last.pid, last.since],
  );
}

/** Waits a moment for the old holder: after a kill -9 the server needs a few milliseconds to notice that the old connection is closed. */
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
