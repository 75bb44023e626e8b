import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newKey } from '../../src/lib/seal.ts';
import { silent } from '../../src/lib/log.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded.ts';
import { visitStore } from '../../src/store/open.ts';
import type { Sql } from '../../src/store/sql.ts';
import { newDatabase } from './new-database.ts';
import { spawnService } from './process.ts';
import type { Answer } from './service.ts';

export type Node = Awaited<ReturnType<Nodes['start']>>;
export type Nodes = Awaited<ReturnType<typeof startNodes>>;

/** A PostgreSQL on a socket, and services as users start them, each a process with a data directory of its own. */
export async function startNodes() {
  const dir = await mkdtemp(join(tmpdir(), 'corral-nodes-'));
  await newDatabase(dir);
  const postgres = await startEmbeddedPostgres({ dataDir: dir, log: silent });
  const { host, password } = postgres.connection;
  const databaseUrl = `postgres://corral:${password}@/postgres?host=${encodeURIComponent(host)}`;
  const key = 'sk_operators_own_key';
  const secretKey = newKey();
  const running = new Set<{ kill(signal?: NodeJS.Signals): Promise<void> }>();
  let count = 0;

  async function ask<R>(query: Sql): Promise<R[]> {
    const store = await visitStore({ dataDir: dir, databaseUrl, log: silent });
    try {
      return await store.db.rows<R>(query);
    } finally {
      await store.close();
    }
  }

  return {
    databaseUrl,
    key,
    secretKey,
    ask,

    async start(env: Record<string, string> = {}) {
      const dataDir = env['CORRAL_DATA_DIR'] ?? join(dir, `node${++count}`);
      const service = await spawnService({
        DATABASE_URL: databaseUrl,
        CORRAL_SECRET_KEY: secretKey,
        CORRAL_API_KEY: key,
        CORRAL_WARM_SPARES: 'off',
        ...env,
        CORRAL_DATA_DIR: dataDir,
      });
      running.add(service);
      const { url } = service;

      async function call(
        method: string,
        path: string,
        body?: unknown,
        headers: Record<string, string> = {},
      ): Promise<Answer> {
        const response = await fetch(url + path, {
          method,
          headers: {
            authorization: `Bearer ${key}`,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...headers,
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        const text = await response.text();
        const json = response.headers.get('content-type')?.includes('json') && text !== '';
        return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : undefined };
      }

      return {
        ...service,
        dataDir,
        call,
        id: async () => (await readFile(join(dataDir, 'node-id'), 'utf8')).trim(),
        /** An address of another node, as if a client came to this one with it. */
        here: (address: string) => address.replace(/^(\w+):\/\/[^/]+/, `$1://${new URL(url).host}`),
        async members(): Promise<{ id: string; public_url: string; running: number }[]> {
          const { body } = await call('GET', '/ready');
          return body.parts.find(({ name }: { name: string }) => name === 'nodes').nodes;
        },
        async metric(line: string): Promise<number> {
          const { text } = await call('GET', '/metrics');
          return Number(
            text
              .split('\n')
              .find((one) => one.startsWith(`${line} `))
              ?.slice(line.length),
          );
        },
        async kill(signal: NodeJS.Signals = 'SIGTERM') {
          running.delete(service);
          await service.kill(signal);
        },
      };
    },

    async close() {
      await Promise.all([...running].map((service) => service.kill()));
      await postgres.stop();
      await rm(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
