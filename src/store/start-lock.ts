import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { errorCode } from '../lib/error-code.ts';

/**
 * Runs `work` while holding an exclusive lock on `file`, so that of several processes starting on one data directory one
 * starts the server and the others find it. Node cannot lock files; flock(1) can. Its `cat` reads from a pipe of this
 * process, so the lock is released however this process ends.
 */
export async function withStartLock<T>(file: string, seconds: number, work: () => Promise<T>): Promise<T> {
  const holder = spawn('flock', ['--wait', String(seconds), file, 'sh', '-c', 'echo held; exec cat'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // Not reached by Ctrl-C at the terminal, which would release the lock in the middle of the work.
    detached: true,
  });
  holder.stdin.on('error', () => {});
  let complaint = '';
  holder.stderr.on('data', (chunk) => (complaint += String(chunk)));
  const closed = once(holder, 'close').catch((error: unknown) => error);
  const held = once(holder.stdout, 'data').then(() => 'held' as const);

  const outcome = await Promise.race([held, closed]);
  // Without flock(1), as on macOS, PostgreSQL's own lock file still lets only one server run.
  const missing = errorCode(outcome) === 'ENOENT';
  if (outcome !== 'held' && !missing) {
    throw new Error(
      `PostgreSQL could not be started or stopped, because ${file} could not be locked: ` +
        (complaint.trim() || `another process held it for ${seconds}s.`),
    );
  }

  try {
    return await work();
  } finally {
    holder.stdin.end();
    await closed;
  }
}
