import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errors } from '../errors.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import type { StorageClaim } from '../lib/storage.ts';

export const mostZipBytes = 50 * 1024 * 1024;

/** The same as the API document says it. */
export const mostZip = `${mostZipBytes / 1024 / 1024} MiB`;
const bytesBetweenLooks = 1024 * 1024;

/** A temporary file on the service's disk: zips are read from their end, so they cannot be checked while they arrive. */
export interface Upload {
  readonly path: string;
  readonly size: number;
  /** In hex. */
  readonly sha256: string;
  bytes(from?: number): AsyncIterable<Buffer>;
  remove(): Promise<void>;
}

export type Uploads = ReturnType<typeof uploads>;

export function uploads(dir: string, disk: Pick<DiskSpace, 'path' | 'short'>) {
  return {
    /** Leaves nothing behind if it throws. The file counts for its project until it is removed. */
    async take(content: AsyncIterable<Buffer>, claim?: StorageClaim): Promise<Upload> {
      if (disk.short()) throw errors.storage_full({ path: disk.path });
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const place = await mkdtemp(join(dir, 'upload-'));
      const remove = async () => {
        await rm(place, { recursive: true, force: true });
        await claim?.release();
      };
      const path = join(place, 'file');
      const hash = createHash('sha256');
      let [size, looked] = [0, 0];
      try {
        const file = await open(path, 'wx', 0o600);
        try {
          for await (const piece of content) {
            size += piece.length;
            if (size > mostZipBytes) throw errors.payload_too_large({ limit: mostZipBytes });
            await claim?.cover(size);
            if (size - looked > bytesBetweenLooks) {
              looked = size;
              if (disk.short()) throw errors.storage_full({ path: disk.path });
            }
            hash.update(piece);
            await file.writeFile(piece);
          }
        } finally {
          await file.close();
        }
      } catch (error) {
        await remove();
        throw error;
      }
      return {
        path,
        size,
        sha256: hash.digest('hex'),
        bytes: (from = 0) => createReadStream(path, { start: from, highWaterMark: 256 * 1024 }),
        remove,
      };
    },

    /** Removes leftovers of a killed service. */
    sweep: () => rm(dir, { recursive: true, force: true }),
  };
}
