import { chown, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFast, type Confinement } from '../../chromium/recorder/encoder.ts';
import type { DiskSpace } from '../../lib/disk-space.ts';

export type ReplayFiles = ReturnType<typeof replayFiles>;

/** The files of videos: `<id>.part` while they are recorded, `<id>.mp4` when they are done. */
export function replayFiles(dir: string, confinement: Confinement, disk: Pick<DiskSpace, 'short'>) {
  const part = (id: string) => join(dir, `${id}.part`);
  const draft = (id: string) => join(dir, `${id}.new`);
  const done = (id: string) => join(dir, `${id}.mp4`);

  return {
    part,
    done,
    prepare: () => mkdir(dir, { recursive: true, mode: 0o700 }),

    /** Converts a video into its final form; answers its size, or undefined if it has no pictures. */
    async finish(id: string, signal: AbortSignal): Promise<number | undefined> {
      if (!(await hasPictures(part(id)))) {
        const before = await sizeOf(done(id)); // the service ended after the file was finished and before its row was
        await rm(part(id), { force: true });
        return before > 0 ? before : undefined;
      }
      // The conversion needs the same room again for a moment. Without it the video still plays.
      const fast = !disk.short() && (await fasten(id, signal).catch(() => false));
      signal.throwIfAborted(); // then the next start finishes it
      await rename(fast ? draft(id) : part(id), done(id));
      await Promise.all([part(id), draft(id)].map((path) => rm(path, { force: true })));
      return sizeOf(done(id));
    },

    remove: (id: string) => Promise.all([part(id), draft(id), done(id)].map((path) => rm(path, { force: true }))),

    /** The ids of all videos on the disk. */
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
        // Another user writes the file, and opens it again by its descriptor.
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

/** A video has pictures if a fragment follows its head, which is short. */
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
