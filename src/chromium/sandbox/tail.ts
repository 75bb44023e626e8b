import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { andNoOther } from './descriptors.ts';
import { enter } from './entering.ts';

export type Unreadable = 'missing' | 'not_a_file' | 'not_readable';

/** A file of a session as it is, or as it grows. */
export interface Tail {
  readonly output: Readable;
  close(): void;
}

const codes: Record<number, Unreadable> = { 44: 'missing', 45: 'not_a_file', 46: 'not_readable' };

/**
 * Read by a process inside the session: a path means there what it means to the session, and leads nowhere else. With `follow` from
 * its present end on, also when it is cut or another file takes its place.
 */
export function tailFile(init: number, path: string, follow: boolean): Promise<Tail | Unreadable> {
  const { file, args, options } = enter(init, ['sh', '-c', SCRIPT, 'corral', path, follow ? 'follow' : '']);
  const child = spawn(file, args, { ...options, stdio: andNoOther('ignore', 'pipe', 'ignore') });
  const { stdout } = child;
  if (!stdout) throw new Error('spawned without pipes');
  const close = () => {
    stdout.destroy(); // tail looks whether anybody still reads, and ends
    child.kill('SIGKILL');
  };
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(codes[code ?? 0] ?? 'missing')); // after the first word this is too late to matter
    stdout.once('readable', () => {
      const start = stdout.read(READY.length) as Buffer | null;
      if (start?.toString() === READY) resolve({ output: stdout, close });
    });
  });
}

const READY = 'ready\n';

/** The size first, then the word, then what comes after it: whoever heard the word misses nothing that is written from then on. */
const SCRIPT = `
[ -e "$1" ] || exit 44
[ -f "$1" ] || exit 45
[ -r "$1" ] || exit 46
size=$(stat -Lc %s -- "$1") || exit 44
echo ready
[ -n "$2" ] || exec cat -- "$1"
exec tail -c +$((size+1)) -F -- "$1"
`;
