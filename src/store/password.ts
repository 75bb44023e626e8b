import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createOnce } from '../lib/files.ts';
import type { Launcher } from './launcher.ts';
import type { ServerUser } from './server-user.ts';
import { DATABASE, USER } from './socket.ts';

/**
 * The embedded server requires a password although only root and its own user can reach its socket. A session once put a
 * link to it in the place of another socket, and the service connected there. Peer credentials would not help, since the
 * peer is the service.
 */
export function readPassword(dataDir: string): Promise<string> {
  return createOnce(join(dataDir, 'postgres-password'), () => randomBytes(32).toString('base64url'));
}

/** Whether the server of this cluster, when it starts, requires this password. */
export async function asksFor(password: string, cluster: string): Promise<boolean> {
  return (await readFile(join(cluster, HBA), 'utf8').catch(() => '')) === rules(password);
}

/**
 * Sets the password of a cluster that no server runs on: a new one, one of a version without passwords, or one with
 * a lost password file. Uses single-user mode, so that the server never accepts connections without a password. The
 * rules are written last and name the password they were written for: after a crash in between, all of it is done again.
 *
 * Undefined on success; otherwise the output of PostgreSQL.
 */
export async function setPassword(
  password: string,
  cluster: string,
  user: ServerUser | undefined,
  launch: Launcher,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const child = launch('postgres', cluster, ['--single', DATABASE], { stdio: ['pipe', 'pipe', 'pipe'], env });
  child.stdin?.on('error', () => {}); // it ended early; its exit code reports it
  child.stdin?.end(`alter role ${USER} password '${verifier(password)}';\n`);
  const [said, complaint, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close') as Promise<unknown[]>,
  ]);
  // In single-user mode a failed statement is only printed; the exit code does not show it.
  if (code !== 0 || /(ERROR|FATAL|PANIC):/.test(said + complaint)) return `${complaint}\n(it was to get its password)`;

  const draft = join(cluster, `${HBA}.new`);
  await rm(draft, { force: true });
  const file = await open(draft, 'wx', 0o600);
  try {
    if (user) await file.chown(user.uid, user.gid);
    await file.writeFile(rules(password));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, join(cluster, HBA));
  return undefined;
}

const HBA = 'pg_hba.conf';

/** The hash of 256 random bits reveals nothing about them. */
function rules(password: string): string {
  const name = createHash('sha256').update(password).digest('hex');
  return `# Written by Corral; changes are undone at its next start. Password ${name}.\nlocal all all scram-sha-256\n`;
}

/**
 * What the server stores instead of the password (RFC 5802). One iteration: stretching protects guessable passwords, and
 * would cost every connection some milliseconds. A connection with a password takes 9 ms instead of 3 on a busy machine.
 */
function verifier(password: string): string {
  const iterations = 1;
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const key = (name: string) => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(key('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${key('Server Key').toString('base64')}`;
}
