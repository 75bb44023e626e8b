import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/** What postmaster.pid says. It outlives a server that was killed, so it is a claim and not a fact. */
export interface PidFile {
  readonly pid: number;
  /** starting, ready, stopping; empty while the server is still writing the file. */
  readonly status: string;
}

export async function readPidFile(cluster: string): Promise<PidFile | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = text.split('\n');
  const pid = Number.parseInt(lines[0] ?? '', 10);
  return pid > 0 ? { pid, status: lines[7]?.trim() ?? '' } : undefined;
}

/**
 * The mark every server of ours carries on its command line: which directory it serves, by inode. A command line
 * can be read where /proc/<pid>/cwd cannot (root in a container), and an inode is the same under every path,
 * inside a mount namespace too. PostgreSQL takes any setting with a dot in its name.
 */
export async function mark(cluster: string): Promise<string> {
  const { dev, ino } = await stat(cluster, { bigint: true });
  return `corral.data_directory=${dev}:${ino}`;
}

/** The server of this cluster, whoever started it. Not a process that merely has the number of one that died. */
export async function findPostmaster(cluster: string): Promise<PidFile | undefined> {
  const claim = await readPidFile(cluster);
  return claim && (await isPostmaster(claim.pid, cluster)) ? claim : undefined;
}

export async function isPostmaster(pid: number, cluster: string): Promise<boolean> {
  const argv = await commandLine(pid);
  return basename(argv[0] ?? '') === 'postgres' && argv.includes(await mark(cluster));
}

/** Empty for a process that is gone, and for one that is dead and only waits to be reaped. */
async function commandLine(pid: number): Promise<string[]> {
  if (process.platform === 'linux') {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
  }
  const { stdout } = await promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }));
  return stdout.trim().split(' ');
}
