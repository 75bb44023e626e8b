import { lstat, lutimes, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import { fullUse, type DiskUse } from '../sandbox/disk-use.ts';
import type { Isolation } from '../sandbox/isolation.ts';
import { move, removeTree } from '../sandbox/outside.ts';

/** Each may have the size of a build. The least recently used is deleted. */
const MOST = 16;

export type PackageCaches = ReturnType<typeof packageCaches>;

/**
 * The packages that builds have downloaded, separate for each project. A build runs code of its project, which may put anything there: so
 * no other project's build ever sees it.
 */
export function packageCaches({
  dir,
  isolation,
  most,
  count,
  log,
}: {
  dir: string;
  isolation: Isolation;
  /** What one may have. */
  most: DiskUse;
  /** Counts it for its project; 0 for none. False: the project may not have so much. */
  count: (projectId: string, bytes: number) => Promise<boolean>;
  log: Log;
}) {
  const kept = (projectId: string) => ({ dir, within: [], name: projectId });
  const inHome = (cell: string) => ({ dir: cell, within: ['home'], name: '.npm' });
  const names = () => readdir(dir).catch(() => [] as string[]);

  async function remove(projectId: string): Promise<void> {
    await removeTree(join(dir, projectId), isolation);
    await count(projectId, 0);
  }

  /** The most recently used first. */
  async function byAge(): Promise<string[]> {
    const used = await Promise.all(
      (await names()).map(async (name) => {
        const found = await lstat(join(dir, name)).catch(() => undefined); // a build has taken it
        return found ? [{ name, at: found.mtimeMs }] : [];
      }),
    );
    return used
      .flat()
      .sort((a, b) => b.at - a.at)
      .map(({ name }) => name);
  }

  /** Removes it if it has more than it may, with holes in its files or without. */
  async function weigh(projectId: string): Promise<void> {
    const { bytes, inodes } = await fullUse(join(dir, projectId), most);
    const fits = bytes <= most.bytes && inodes <= most.inodes && (await count(projectId, bytes));
    if (!fits) await remove(projectId);
  }

  return {
    /** Moves it into the home of a build's cell. Of two builds of a project at the same time, one gets it: a rename succeeds once. */
    async take(projectId: string, cell: string): Promise<void> {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      if (await move(kept(projectId), inHome(cell))) await count(projectId, 0); // its size now counts for the build
    },

    /** Keeps the cache as the build left it. */
    async keep(projectId: string, cell: string): Promise<void> {
      try {
        await remove(projectId);
        if (!(await move(inHome(cell), kept(projectId)))) return;
        await lutimes(join(dir, projectId), new Date(), new Date()); // the build can set any time, and the oldest are removed
        await weigh(projectId);
        for (const name of (await byAge()).slice(MOST)) await remove(name);
      } catch (error) {
        log.warn({ error: (error as Error).message }, 'build.cache_not_kept');
      }
    },

    /** After a start: counts the existing ones. */
    async weighAll(): Promise<void> {
      for (const name of await names())
        await weigh(name).catch((error: Error) => log.warn({ error: error.message }, 'build.cache_not_counted'));
    },

    /** Deletes them while the disk is almost full, the least recently used first. */
    async makeRoom(short: () => boolean): Promise<void> {
      for (const name of (await byAge()).reverse()) {
        if (!short()) return;
        await remove(name);
      }
    },

    projects: names,
    remove,
  };
}
