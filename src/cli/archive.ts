import { createWriteStream, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import yauzl from 'yauzl';
import yazl from 'yazl';

/** A directory as a zip. Links to files are replaced by their contents; names in `without` are left out. */
export async function zipOf(folder: string, without: readonly string[] = []): Promise<Buffer> {
  const zip = new yazl.ZipFile();
  const add = (at: string) => {
    for (const entry of readdirSync(join(folder, at), { withFileTypes: true })) {
      const name = at === '' ? entry.name : `${at}/${entry.name}`;
      if (without.includes(entry.name)) continue;
      const found = statSync(join(folder, name), { throwIfNoEntry: false });
      if (entry.isDirectory()) add(name);
      else if (found?.isFile()) zip.addFile(join(folder, name), name);
    }
    if (at !== '') zip.addEmptyDirectory(at);
  };
  add('');
  zip.end();
  const chunks: Buffer[] = [];
  for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/**
 * Unpacks a zip that a session made. It is untrusted: yauzl refuses names outside of the folder, and symbolic links become files that
 * contain the target's name.
 */
export async function unzipTo(bytes: Buffer, folder: string): Promise<number> {
  mkdirSync(folder, { recursive: true });
  const zip = await yauzl.fromBufferPromise(bytes);
  let files = 0;
  for await (const entry of zip.eachEntry()) {
    const to = join(folder, entry.fileName);
    mkdirSync(entry.fileName.endsWith('/') ? to : dirname(to), { recursive: true });
    if (entry.fileName.endsWith('/')) continue;
    await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(to));
    files++;
  }
  return files;
}
