import { readFile, stat } from 'node:fs/promises';

/** The user PostgreSQL runs as when the service is root. */
export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** In this order: a user for Corral, a user for PostgreSQL, a user of every system. */
const CANDIDATES = ['corral', 'postgres', 'nobody'];

/**
 * PostgreSQL refuses to run as root. Undefined: the service is an ordinary user, and the server runs as the same user. An
 * existing cluster keeps its owner, even if a preferred user was added since.
 */
export async function serverUser(cluster: string): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;

  const owner = await stat(cluster).catch(() => undefined);
  if (owner && owner.uid !== 0) return { name: `uid ${owner.uid}`, uid: owner.uid, gid: owner.gid };

  // initdb looks its user up by uid, so a uid without an entry does not work.
  const users = parsePasswd(await readFile('/etc/passwd', 'utf8'));
  for (const name of CANDIDATES) {
    const user = users.find((user) => user.name === name && user.uid !== 0);
    if (user) return user;
  }
  throw new Error(
    'PostgreSQL refuses to run as root, and this system has no user corral, postgres or nobody to run it as. ' +
      'Add one: useradd --system corral',
  );
}

export function parsePasswd(text: string): ServerUser[] {
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 7)
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }));
}
