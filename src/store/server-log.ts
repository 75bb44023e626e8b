import { open, rename, stat, type FileHandle } from 'node:fs/promises';

const MOST_BYTES = 8 * 1024 * 1024;
const TAIL_BYTES = 4096;

/**
 * The server's log file; the server keeps writing to it after the service is killed. It lies beside the cluster, not in
 * it: root must not open a file where the server's user could have put a link.
 */
export async function openLog(path: string): Promise<FileHandle> {
  const size = await stat(path).then(
    (file) => file.size,
    () => 0,
  );
  if (size > MOST_BYTES) await rename(path, `${path}.1`);
  return open(path, 'a', 0o600);
}

/** The end of the file, but nothing before `from`. */
export async function readTail(path: string, from = 0): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const start = Math.max(from, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, start);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** The last lines of a log, for the end of an error message. */
export function lastLines(text: string): string {
  return text.trim().split('\n').slice(-8).join('\n') || '(it said nothing)';
}
