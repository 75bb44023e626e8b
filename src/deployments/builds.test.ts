import { expect, test } from 'vitest';
import { silent } from '../lib/log.ts';
import { BuildError } from '../chromium/workshop/build.ts';
import { builds, type BuildsDeps } from './builds.ts';
import { runHub } from './hub.ts';
import type { LineWriter } from './logs.ts';
import type { DeploymentRow, DeploymentStore } from './store.ts';

const row = { id: 'd', project_id: 'proj', source_type: 'file' } as DeploymentRow;
const lines = {
  add() {},
  hide: (text: string) => text,
  tail: () => [],
  flush: async () => {},
  close: async () => {},
} as LineWriter;

/** One deployment that waits, and a build that fails. */
function lineOf(more: Partial<BuildsDeps>) {
  const waiting = [row];
  const failed: string[] = [];
  const released: string[] = [];
  const line = builds({
    store: {
      claim: async () => waiting.shift(),
      removeFiles: async () => {},
      apply: async () => undefined,
      tell: async () => undefined,
    } as unknown as DeploymentStore,
    hub: runHub(),
    nodeId: 'node',
    build: async () => {
      throw new BuildError('It does not compile.');
    },
    uploads: { take: async () => ({ path: '/zip', remove: async () => {} }) } as unknown as BuildsDeps['uploads'],
    storage: { claim: () => ({ cover: async () => {}, release: async () => void released.push('claim') }) },
    offenders: () => [],
    linesOf: async () => lines,
    envOf: async () => ({}),
    tokenOf: async () => undefined,
    unpack: async () => 0,
    publish: async () => {},
    fail: async (_id, reason) => void failed.push(reason),
    log: silent,
    ...more,
  });
  return { line, failed, released };
}

test('a failure that cannot be written is written when the database is back', async () => {
  let attempts = 0;
  const written: string[] = [];
  const { line } = lineOf({
    async fail(_id, reason) {
      if (++attempts < 3) throw new Error('The database is away.');
      written.push(reason);
    },
  });
  await line.look();
  await expect.poll(() => written, { timeout: 10_000 }).toEqual(['It does not compile.']);
  await line.close();
});

test('a service that closes does not wait for a database that is away', async () => {
  let attempts = 0;
  const { line } = lineOf({
    async fail() {
      attempts++;
      throw new Error('The database is away.');
    },
  });
  await line.look();
  await expect.poll(() => attempts).toBeGreaterThan(0);
  await line.close();
});

test('a build without a log has failed, and the next is taken', async () => {
  const { line, failed } = lineOf({
    linesOf: async () => {
      throw new Error('The secrets cannot be read.');
    },
  });
  await line.look();
  await expect.poll(() => failed).toEqual([expect.stringContaining('Deploy it again')]);
  await line.close();
});

test('a zip that cannot be removed keeps no claim on storage', async () => {
  const remove = async () => {
    throw new Error('EIO');
  };
  const { line, released } = lineOf({
    uploads: { take: async () => ({ path: '/zip', remove }) } as unknown as BuildsDeps['uploads'],
  });
  await line.look();
  await expect.poll(() => released).toEqual(['claim']);
  await line.close();
});
