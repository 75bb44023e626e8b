import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { errorCode } from '../lib/error-code.ts';
import type { Log } from '../lib/log.ts';

/** The contents of postmaster.pid. The file outlives a killed server, so it must be verified. */
interface PidFile {
  readonly pid: number;
  /** starting, ready or stopping; empty while the server is still writing the file. */
  readonly status: string;
}

/** How long each signal gets: SIGINT disconnects clients, SIGQUIT drops work, SIGKILL cannot be ignored. */
const STOP_SIGNALS = [
  { signal: 'SIGINT', seconds: 20 },
  { signal: 'SIGQUIT', seconds: 5 },
  { signal: 'SIGKILL', seconds: 5 },
] as const;

export async function readPidFile(cluster: string): Promise<PidFile | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Number.parseInt(lines[0] ?? '', 10);
  return pid > 0 ? { pid, status: lines[7]?.trim() ?? '' } : undefined;
}

/**
 * The mark on the command line of every server that the service starts: which directory it serves, by inode. A command
 * line can be read where /proc/<pid>/cwd cannot (root in a container), and an inode is the same under every path, inside
 * a mount namespace too. PostgreSQL accepts any setting with a dot in its name. Servers outlive the release that started
 * them, so the mark never changes its form.
 */
export async function mark(cluster: string): Promise<string> {
  const { dev, ino } = await stat(cluster, { bigint: true });
  return `corral.data_directory=${dev}:${ino}`;
}

/** Whether this process is the server of this cluster, and not another process that reused its pid. */
export async function isPostmaster(pid: number, cluster: string): Promise<boolean> {
  const argv = await commandLine(pid);
  return basename(argv[0] ?? '') === 'postgres' && argv.includes(await mark(cluster));
}

/** Whether the server's program was deleted, and with it the libraries and time zones it loads later. */
export async function outlivedItsFiles(pid: number): Promise<boolean> {
  const program = await stat(`/proc/${pid}/exe`).catch(() => undefined);
  return program?.nlink === 0;
}

/** Resolves when it has exited. The pid is verified between signals. */
export async function endPostmaster(pid: number, cluster: string, log: Log): Promise<void> {
  for (const { signal, seconds } of STOP_SIGNALS) {
    const deadline = Date.now() + seconds * 1000;
    send(pid, signal);
    while (Date.now() < deadline) {
      if (!(await isPostmaster(pid, cluster))) return;
      await sleep(10);
    }
    log.warn({ pid, signal, seconds }, 'PostgreSQL did not stop in time');
  }
  throw new Error(`PostgreSQL, process ${pid}, could not be stopped.`);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}

/** Empty for an exited process, and for a zombie that was not reaped yet. */
async function commandLine(pid: number): Promise<string[]> {
  if (process.platform === 'linux') {
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return text.split('\0');
  }
  const ps = await promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).catch(() => undefined);
  return ps?.stdout.trim().split(' ') ?? [];
}
