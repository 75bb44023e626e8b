import { expect, test } from 'vitest';
import type { Isolation } from '../chromium/sandbox/isolation.ts';
import type { Worker } from '../chromium/workshop/worker.ts';
import { silent } from '../lib/log.ts';
import { workerPool } from './workers.ts';

test('a worker is stopped when its memory cannot be read', async () => {
  const pool = workerPool({
    dir: '/nowhere',
    isolation: {} as Isolation,
    start: () => Promise.reject(new Error('none')),
    appOf: () => Promise.reject(new Error('none')),
    memoryBytes: 1,
    diskBytes: 1,
    short: () => false,
    mostIdle: 1,
    log: silent,
  });
  let stopped = 0;
  const worker = {
    alive: true,
    current: true,
    runs: 0,
    memory: () => Promise.reject(new Error('ENOENT')),
    stop: async () => void stopped++,
  } as unknown as Worker;
  await pool.giveBack('d', worker);
  expect(stopped).toBe(1);
  await pool.close();
});
