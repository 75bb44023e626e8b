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
 * The embedded server asks for a password although only root and its own user get as far as its socket. The service itself can get
 * there, and it also connects to sockets whose names a session has a hand in: one that leads to the database instead must find it
 * closed. Credentials of the peer would not help, since the peer would be the service.
 */
export function readPassword(dataDir: string): Promise<string> {
  return createOnce(join(dataDir, 'postgres-password'), () => randomBytes(32).toString('base64url'));
}

/** Whether the server of this cluster lets in those who know this password, and nobody else, when it starts. */
export async function asksFor(password: string, cluster: string): Promise<boolean> {
  return (await readFile(join(cluster, HBA), 'utf8').catch(() => '')) === rules(password);
}

/**
 * Gives a cluster that no server runs on its password: one that was just made, one of a version that asked for none, one whose
 * password file was lost. In single-user mode, so that there is no moment at which the server answers without one. The rules
 * are written last and name the password they were written for: a crash in between does all of it again.
 *
 * Undefined when it is done; otherwise what PostgreSQL said.
 */
export async function setPassword(
  password: string,
  cluster: string,
  user: ServerUser | undefined,
  launch: Launcher,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  const child = launch('postgres', cluster, ['--single', DATABASE], { stdio: ['pipe', 'pipe', 'pipe'], env });
  child.stdin?.on('error', () => {}); // it ended early; its exit code says so
  child.stdin?.end(`alter role ${USER} password '${verifier(password)}';\n`);
  const [said, complaint, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close') as Promise<unknown[]>,
  ]);
  // A statement that fails is only mentioned in this mode.
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

/** The hash of 256 random bits tells nothing about them. */
function rules(password: string): string {
  const name = createHash('sha256').update(password).digest('hex');
  return `# Written by Corral; changes are undone at its next start. Password ${name}.\nlocal all all scram-sha-256\n`;
}

/**
 * What the server keeps instead of the password (RFC 5802). One iteration: stretching protects passwords that can be guessed,
 * and would cost every connection some milliseconds.
 */
function verifier(password: string): string {
  const iterations = 1;
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const key = (name: string) => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(key('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${key('Server Key').toString('base64')}`;
}
