import pg from 'pg';
import { errors } from '../errors.ts';
import { fairPlaces } from '../lib/fair-places.ts';
import { withoutOwner } from '../lib/scope.ts';
import type { Sql } from './sql.ts';

/** Of the ten connections of the pool. */
const PAGES_AT_ONCE = 3;
const PAGE_SECONDS = 10;
const QUERY_CANCELED = '57014';

/** What a room's store.ts works with: queries in, rows out, and transactions. */
export interface Db {
  rows<R>(query: Sql): Promise<R[]>;
  /**
   * Rows of a list with filters that may read all of a project's data. Such queries have a few of the connections, one for each project at
   * a time, and a time limit: `search_too_slow`.
   */
  page<R>(projectId: string | null, query: Sql, seconds?: number): Promise<R[]>;
  /** The first row, or undefined when there is none. */
  row<R>(query: Sql): Promise<R | undefined>;
  /** Runs `work` in a transaction. A nested `transaction` continues the same one. */
  transaction<T>(work: (db: Db) => Promise<T>): Promise<T>;
}

/** The name of the unique index or constraint that refused a row, if that is the error. */
export function uniqueViolation(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && error.code === '23505' ? (error.constraint ?? '') : undefined;
}

/** The name of the constraint that refused a row because a referenced row is missing, if that is the error. */
export function missingReference(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && error.code === '23503' ? (error.constraint ?? '') : undefined;
}

/** Whether the database refused a value itself (SQLSTATE class 22), and would refuse it at the next attempt. */
export function isDataError(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('22') === true;
}

/**
 * `recover` restarts the server when connecting fails (the embedded one may have been killed); then connecting is tried
 * once more. A query that was under way when the connection broke is not repeated: whether it took effect is unknown, so
 * the caller gets `store_unavailable`.
 */
export function database(pool: pg.Pool, recover: () => Promise<void>): Db {
  const inPlace = fairPlaces(PAGES_AT_ONCE, (waiting) => errors.search_too_slow({ waiting }));

  async function connect(): Promise<pg.PoolClient> {
    try {
      return await pool.connect();
    } catch (error) {
      if (!isConnectionError(error)) throw error;
      try {
        await recover();
        return await pool.connect();
      } catch (again) {
        throw errors.store_unavailable({}, { cause: again });
      }
    }
  }

  async function using<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await withoutOwner(connect); // the next caller gets the same connection
    let broken: Error | undefined;
    // A broken connection is reported twice: to the query, and as an event, which ends the process if it has no listener.
    const breaks = (error: Error) => (broken = error);
    client.on('error', breaks);
    try {
      return await work(client);
    } catch (error) {
      if (!broken && !isConnectionError(error)) throw error;
      broken ??= error as Error;
      throw errors.store_unavailable({}, { cause: error });
    } finally {
      client.off('error', breaks);
      withoutOwner(() => client.release(broken)); // the pool may open another in its place
    }
  }

  return {
    rows: (query) => using((client) => run(client, query)),
    row: (query) => using(async (client) => (await run<never>(client, query))[0]),
    page: (projectId, query, seconds = PAGE_SECONDS) =>
      inPlace(projectId, () => using((client) => runWithin(seconds, client, query))),
    transaction: (work) =>
      using(async (client) => {
        await client.query('begin');
        try {
          const result = await work(inTransaction(client));
          await client.query('commit');
          return result;
        } catch (error) {
          await client.query('rollback').catch(() => {});
          throw error;
        }
      }),
  };
}

function inTransaction(client: pg.ClientBase): Db {
  const db: Db = {
    rows: (query) => run(client, query),
    row: async (query) => (await run<never>(client, query))[0],
    page: (_, query) => run(client, query),
    transaction: (work) => work(db),
  };
  return db;
}

async function run<R>(client: pg.ClientBase, { name, text, values }: Sql): Promise<R[]> {
  const result = await client.query({ name, text, values: values as unknown[] });
  return result.rows as R[];
}

async function runWithin<R>(seconds: number, client: pg.ClientBase, query: Sql): Promise<R[]> {
  await client.query(`begin read only; set local statement_timeout = ${Math.ceil(seconds * 1000)}`);
  try {
    return await run<R>(client, query);
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === QUERY_CANCELED)
      throw errors.search_too_slow({ seconds }, { cause: error });
    throw error;
  } finally {
    await client.query('rollback').catch(() => {});
  }
}

/** Classes 08 (connection) and 57P (the server is shutting down or starting), and errors of the socket itself. */
function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: string }).code ?? '';
  return (
    /^(08|57P)/.test(code) ||
    ['ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EPIPE', 'ETIMEDOUT'].includes(code) ||
    /Connection terminated|timeout exceeded when trying to connect/.test(error.message)
  );
}
