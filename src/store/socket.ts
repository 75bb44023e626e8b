import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { errorCode } from '../lib/error-code.ts';

/** Only a part of the socket's name: nothing listens on TCP. */
export const PORT = 5432;
export const USER = 'corral';
export const DATABASE = 'postgres';

/**
 * The directory of the cluster's socket, as a client has to name it. The path of a socket is limited to about a hundred
 * bytes, and a data directory may be deeper. Linux also reaches an open directory by its file descriptor.
 */
export function openSocketDirectory(cluster: string): { host: string; close(): void } {
  const room = process.platform === 'linux' ? 107 : 103;
  if (Buffer.byteLength(join(cluster, `.s.PGSQL.${PORT}`)) <= room) return { host: cluster, close() {} };
  if (process.platform !== 'linux') {
    throw new Error(`The path ${cluster} is too long for a socket. Set CORRAL_DATA_DIR to a shorter one.`);
  }
  const fd = openSync(cluster, 'r');
  return { host: `/proc/self/fd/${fd}`, close: () => closeSync(fd) };
}

/** Options for `pg` to connect. */
export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

export function connectionAt(host: string, password: string): Connection {
  return { host, port: PORT, user: USER, password, database: DATABASE };
}

/** A process that answers on the socket is the cluster's server: only the server's user and root may enter its directory. */
export async function answers(connection: Connection): Promise<boolean> {
  try {
    await ask(connection, 'select 1');
    return true;
  } catch (error) {
    if (errorCode(error) === '28P01') throw new WrongPassword('The embedded PostgreSQL has another password.');
    // "Too many connections" is an answer, too.
    return errorCode(error) === '53300';
  }
}

/** The running server was started with another password than the one in the data directory. */
export class WrongPassword extends Error {
  override readonly name = 'WrongPassword';
}

/** Whether another client is connected. */
export async function isInUse(connection: Connection): Promise<boolean> {
  const others = await ask(
    connection,
    `select 1 from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  return others > 0;
}

/** The number of rows that the statement returns. */
async function ask(connection: Connection, statement: string): Promise<number> {
  const client = new Client({ ...connection, ssl: false, connectionTimeoutMillis: 5000, query_timeout: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(statement)).rows.length;
  } finally {
    await client.end().catch(() => {});
  }
}
