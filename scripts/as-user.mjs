import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isRoot } from './parts.mjs';
import { commandLine, root, show } from './run.mjs';
import { script, Stop } from './say.mjs';

/**
 * `node scripts/as-user.mjs test/attacks` runs these tests as an ordinary user, and `npm run soak -- --as-user` a soak.
 * Root becomes `nobody`; other users are ordinary already.
 *
 * That user may not be able to reach the checkout, so it is mounted at STAGE, in a mount namespace of the tests' own.
 * HOME and TMPDIR are new directories that are removed after the tests.
 */
const USER = 'nobody';
const STAGE = '/srv';

/** This config loader writes no temporary file: the user may not write to the checkout. `env` is added to the environment. */
export const testAsUser = (args, env) => showAsUser('vitest', ['run', '--configLoader', 'runner', ...args], env);

/** Runs a program on this terminal. Resolves to its exit code. */
export async function showAsUser(program, args, more = {}) {
  if (!isRoot()) return show(program, args, { env: { ...process.env, ...more } });
  const { uid, gid } = idsOf(USER);
  const scratch = mkdtempSync(join(tmpdir(), 'corral-user-'));
  for (const dir of [scratch, join(scratch, 'home'), join(scratch, 'tmp')]) {
    mkdirSync(dir, { recursive: true });
    chownSync(dir, uid, gid);
  }
  const env = { ...more, HOME: join(scratch, 'home'), TMPDIR: join(scratch, 'tmp'), USER, LOGNAME: USER };
  const drop = [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    '--inh-caps=-all',
    '--bounding-set=-all',
  ];
  const way = ['--mount', '--', 'sh', '-c', SCRIPT, 'as-user', root, ...drop, ...commandLine(program, args)];
  try {
    return await show('unshare', way, { env: { ...process.env, ...env } });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const SCRIPT = `mount --bind "$1" ${STAGE} && cd ${STAGE} || exit 1; shift; exec "$@"`;

function idsOf(user) {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`${user}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  if (!uid || !gid) throw new Stop(`There is no user '${user}' on this machine to run an ordinary user's tests as.`);
  return { uid: Number(uid), gid: Number(gid) };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    process.exitCode = await testAsUser(process.argv.slice(2));
  });
}
