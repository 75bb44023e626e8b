import { lstat, lutimes, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import type { Isolation } from '../sandbox/isolation.ts';
import { move, removeTree } from '../sandbox/outside.ts';

/** Each may have as much as a build. The one that was used longest ago leaves. */
const MOST = 16;

export type PackageCaches = ReturnType<typeof packageCaches>;

/**
 * The packages that builds have downloaded, for each project by itself. A build runs code of its project, which may put anything there: so
 * no other project's build ever sees it.
 */
export function packageCaches({ dir, isolation, log }: { dir: string; isolation: Isolation; log: Log }) {
  const kept = (projectId: string) => ({ dir, within: [], name: projectId });
  const inHome = (cell: string) => ({ dir: cell, within: ['home'], name: '.npm' });
  const names = () => readdir(dir).catch(() => [] as string[]);
  const remove = (projectId: string) => removeTree(join(dir, projectId), isolation);

  async function removeOldest(): Promise<void> {
    const used = await Promise.all(
      (await names()).map(async (name) => ({ name, at: (await lstat(join(dir, name))).mtimeMs })),
    );
    for (const { name } of used.sort((a, b) => b.at - a.at).slice(MOST)) await remove(name);
  }

  return {
    /** Moves it into the home of a build's cell. Of two builds of a project at the same time, one gets it: a rename succeeds once. */
    async take(projectId: string, cell: string): Promise<void> {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await move(kept(projectId), inHome(cell));
    },

    /** Keeps what the build has made of it. */
    async keep(projectId: string, cell: string): Promise<void> {
      try {
        await remove(projectId);
        if (!(await move(inHome(cell), kept(projectId)))) return;
        await lutimes(join(dir, projectId), new Date(), new Date()); // the build can set any time, and the oldest are removed
        await removeOldest();
      } catch (error) {
        log.warn({ error: (error as Error).message }, 'build.cache_not_kept');
      }
    },

    projects: names,
    remove,
  };
}
