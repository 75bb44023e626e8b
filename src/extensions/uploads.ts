import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errors } from '../errors.ts';

export const mostZipBytes = 50 * 1024 * 1024;

/** A file on our disk for as long as somebody looks at it: zips are read from their end, so they cannot be looked at as they come. */
export interface Upload {
  readonly path: string;
  readonly size: number;
  /** In hex. */
  readonly sha256: string;
  bytes(from?: number): AsyncIterable<Buffer>;
  remove(): Promise<void>;
}

export type Uploads = ReturnType<typeof uploads>;

export function uploads(dir: string) {
  return {
    /** Nothing is left of it if this throws. */
    async take(content: AsyncIterable<Buffer>, mostBytes = mostZipBytes): Promise<Upload> {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      const place = await mkdtemp(join(dir, 'upload-'));
      const remove = () => rm(place, { recursive: true, force: true });
      const path = join(place, 'file');
      const hash = createHash('sha256');
      let size = 0;
      try {
        const file = await open(path, 'wx', 0o600);
        try {
          for await (const piece of content) {
            size += piece.length;
            if (size > mostBytes) throw errors.payload_too_large({ limit: mostBytes });
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

    /** What a killed service left. */
    sweep: () => rm(dir, { recursive: true, force: true }),
  };
}
