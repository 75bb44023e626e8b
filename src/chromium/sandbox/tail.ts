import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { andNoOther } from './descriptors.ts';
import { enter } from './entry.ts';

export type Unreadable = 'missing' | 'not_a_file' | 'not_readable';

/** The content of a session's file, or new data at its end. */
interface Tail {
  readonly output: Readable;
  close(): void;
}

const codes: Record<number, Unreadable> = { 44: 'missing', 45: 'not_a_file', 46: 'not_readable' };

/**
 * A process inside the session reads the file, so the path resolves as it does for the session and cannot lead outside. With `follow`,
 * output starts at the file's present end and continues when the file is truncated or replaced.
 */
export function tailFile(init: number, path: string, follow: boolean): Promise<Tail | Unreadable> {
  const { file, args, options } = enter(init, ['sh', '-c', SCRIPT, 'corral', path, follow ? 'follow' : '']);
  const child = spawn(file, args, { ...options, stdio: andNoOther('ignore', 'pipe', 'ignore') });
  const { stdout } = child;
  if (!stdout) throw new Error('spawned without pipes');
  const close = () => {
    stdout.destroy(); // tail notices the closed pipe and exits
    child.kill('SIGKILL');
  };
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(codes[code ?? 0] ?? 'missing')); // has no effect after READY
    stdout.once('readable', () => {
      const start = stdout.read(READY.length) as Buffer | null;
      if (start?.toString() === READY) resolve({ output: stdout, close });
    });
  });
}

const READY = 'ready\n';

/** The size is read before `ready` is written, so a reader that has seen `ready` gets everything written from then on. */
const SCRIPT = `
[ -e "$1" ] || exit 44
[ -f "$1" ] || exit 45
[ -r "$1" ] || exit 46
size=$(stat -Lc %s -- "$1") || exit 44
echo ready
[ -n "$2" ] || exec cat -- "$1"
exec tail -c +$((size+1)) -F -- "$1"
`;
