import { chown, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFast, type Confinement } from '../../chromium/recorder/encoder.ts';
import type { DiskSpace } from '../../lib/disk-space.ts';

export type ReplayFiles = ReturnType<typeof replayFiles>;

/** Where videos lie: `<id>.part` while they are made, `<id>.mp4` when they are done. */
export function replayFiles(dir: string, confinement: Confinement, disk: Pick<DiskSpace, 'short'>) {
  const part = (id: string) => join(dir, `${id}.part`);
  const draft = (id: string) => join(dir, `${id}.new`);
  const done = (id: string) => join(dir, `${id}.mp4`);

  return {
    part,
    done,
    prepare: () => mkdir(dir, { recursive: true, mode: 0o700 }),

    /** Puts a video into its last form; answers its size, or undefined if there is nothing to be seen. */
    async finish(id: string, signal: AbortSignal): Promise<number | undefined> {
      if (!(await hasPictures(part(id)))) {
        const before = await sizeOf(done(id)); // the service went away after the file was done and before its row was
        await rm(part(id), { force: true });
        return before > 0 ? before : undefined;
      }
      // It takes as much room again for a moment. Without it, what is there plays all the same.
      const fast = !disk.short() && (await fasten(id, signal).catch(() => false));
      signal.throwIfAborted(); // then the next start does it
      await rename(fast ? draft(id) : part(id), done(id));
      await Promise.all([part(id), draft(id)].map((path) => rm(path, { force: true })));
      return sizeOf(done(id));
    },

    remove: (id: string) => Promise.all([part(id), draft(id), done(id)].map((path) => rm(path, { force: true }))),

    /** Ids of all that lie there. */
    async list(): Promise<string[]> {
      const names = await readdir(dir).catch(() => []);
      return [...new Set(names.map((name) => name.replace(/\.\w+$/, '')))];
    },
  };

  async function fasten(id: string, signal: AbortSignal): Promise<boolean> {
    const { sandboxed, owners } = confinement;
    const owner = owners.claim();
    const from = await open(part(id), 'r').catch((error: unknown) => {
      owner.release();
      throw error;
    });
    try {
      const to = await open(draft(id), 'w+', 0o600);
      try {
        // The one who writes it is not us, and opens it again by its descriptor.
        if (process.getuid?.() === 0) await chown(draft(id), owner.uid, owner.gid);
        return (await makeFast(from.fd, to.fd, { sandboxed, owner }, signal)) && (await to.stat()).size > 0;
      } finally {
        await to.close();
      }
    } finally {
      owner.release();
      await from.close();
    }
  }
}

/** Behind the head of a video, which is short, there is a fragment; or there is nothing yet. */
async function hasPictures(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined);
  if (!file) return false;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(8192), 0, 8192, 0);
    const start = buffer.subarray(0, bytesRead);
    return start.includes('moof') || start.includes('mdat');
  } finally {
    await file.close();
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}
