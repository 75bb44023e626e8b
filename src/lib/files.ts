import { chmod, link, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { pick } from './ids.ts';

/**
 * The text of a small file, made by `make` when there is none yet. It is written beside its place, flushed and linked, so
 * that a crash leaves no partial file, and of two concurrent makers the first one's text is kept.
 */
export async function createOnce(path: string, make: () => string): Promise<string> {
  const there = await readIfThere(path);
  if (there !== undefined) return there;
  const draft = `${path}.${pick('abcdefghijklmnopqrstuvwxyz', 8)}`;
  await writeFile(draft, `${make()}\n`, { mode: 0o600, flag: 'wx', flush: true });
  try {
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await unlink(draft);
  }
  return (await readFile(path, 'utf8')).trim();
}

/** Replaces a small private file atomically. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${pick('abcdefghijklmnopqrstuvwxyz', 8)}`;
  await writeFile(draft, text, { mode: 0o600, flag: 'wx', flush: true });
  await chmod(draft, 0o600);
  await rename(draft, path);
}

export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
