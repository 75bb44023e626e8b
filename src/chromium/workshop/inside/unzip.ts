import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openPromise } from 'yauzl';

/** Unpacks a zip, and removes it. The service has checked its names and kinds. Returns where the source begins. */
export async function unzip(path: string, to: string): Promise<string> {
  const zip = await openPromise(path, { autoClose: false, validateEntrySizes: true, decodeStrings: true });
  try {
    await mkdir(to, { recursive: true });
    for await (const entry of zip.eachEntry()) {
      const at = join(to, entry.fileName);
      const isDirectory = entry.fileName.endsWith('/');
      await mkdir(isDirectory ? at : dirname(at), { recursive: true });
      if (isDirectory) continue;
      const mode = ((entry.externalFileAttributes >>> 16) & 0o111) === 0 ? 0o644 : 0o755;
      await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(at, { flags: 'wx', mode }));
    }
  } finally {
    zip.close();
  }
  await rm(path);
  return to;
}
