import Kernel from '@onkernel/sdk';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AppOptions } from '../../src/app/ground.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { openLogger } from '../../src/logger.ts';
import { newDatabase, newToolbox } from './new-database.ts';
import { expectRefusalsDeclared } from './reference.ts';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a service answers is for each test to judge
  body: any;
}

/** The whole service in this process, on a data directory and an embedded PostgreSQL of its own, on a free port. */
export async function startService(
  settings: Record<string, string> = {},
  replaced: Pick<AppOptions, 'space' | 'timings'> = {},
) {
  const dataDir = settings['CORRAL_DATA_DIR'] ?? (await mkdtemp(join(tmpdir(), 'corral-test-')));
  const config = readConfig({
    CORRAL_PORT: '0',
    CORRAL_LOG_LEVEL: 'debug',
    CORRAL_WARM_SPARES: 'off',
    CORRAL_PROXY_CHECK_URL: 'off', // tests stay on this machine
    ...settings,
    CORRAL_DATA_DIR: dataDir,
  });
  if (!config.databaseUrl) await newDatabase(dataDir);
  await newToolbox(dataDir);
  const log: string[] = [];
  const logger = openLogger(config.logLevel, { write: (line: string) => void log.push(line) });
  const fatal: Error[] = [];
  const app = await buildApp({
    config,
    logger,
    onFatal: (error) => void fatal.push(error),
    ...replaced,
  });
  const url = await app.http.listen({ host: config.host, port: config.port });
  const key = config.apiKey || (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();

  /** Raw HTTP, by default with the first key. A string body is sent unchanged. */
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
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.includes('json') && text !== '';
    return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : undefined };
  }

  return {
    app,
    url,
    key,
    dataDir,
    call,
    fatal,
    /** Every line that was logged so far. */
    log,
    /** The client users already have. */
    sdk: (apiKey = key, options: { projectID?: string } = {}) => new Kernel({ apiKey, baseURL: url, ...options }),
    async close({ keep = false } = {}) {
      await app.close();
      if (!keep) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
      expectRefusalsDeclared(log);
    },
  };
}

export type Service = Awaited<ReturnType<typeof startService>>;
