import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { testAsUser } from './as-user.mjs';
import { prepare } from './bootstrap.mjs';
import { check } from './check.mjs';
import { onNewest, testOnOtherNodes } from './other-nodes.mjs';
import { isRoot } from './parts.mjs';
import { root, show } from './run.mjs';
import { duration, script, Stop } from './say.mjs';

/** `npm test` is everything CI runs; `npm test -- src/pools -t 'waits'` is vitest alone, with those arguments. */
const args = process.argv.slice(2);

/**
 * The attacks whose result depends on the user that the service runs as. The others attack the service with requests, messages, rows and
 * memory, which is the same for every user.
 */
const attacksOnSessions = [
  'closed', // an ordinary user's sandbox is found and refused in another way
  'deployments', // cells of an app, and the owner of what a build unpacks to
  'descriptors', // what starts a session without root: another chain of programs
  'disk', // without quotas of a mounted disk, and with directories that the service shares with sessions
  'display', // the sockets of a display, and of a database of the same user
  'escapes', // paths, archives and processes of a session with the uid of the service
  'isolation', // the namespaces, without root to set them up
  'names', // links, where no uid protects the host's files
  'postgres', // the database's socket, which the same user owns
  'seccomp', // the filters, below another chain of programs
  'silence', // a stopped browser, where no control group freezes or ends it
  'small-disk', // the reserve of a disk that is not mounted for the test
  'starving', // the bounds by rlimits and a watch on memory, where there are no control groups
  'uids', // tests of its own for an ordinary user
].map((name) => `test/attacks/${name}.test.ts`);

await script(async () => {
  const everything = args.length === 0;
  if (everything) refuseMissing([...attacksOnSessions, ...onNewest]);
  await section('Set-up', () => prepare({ types: !everything })); // the checks have the types
  if (everything && !(await section('Checks', check))) process.exit(1);
  const built = { CORRAL_TEST_BUILD: 'yes' }; // see vitest.config.ts
  const env = { ...process.env, ...built };
  process.exitCode = await section('Tests', () => show('vitest', ['run', ...args], { env }));
  // What confines a hostile tenant differs for root and for an ordinary user, so the attacks run as both.
  if (everything && process.exitCode === 0 && isRoot())
    process.exitCode = await section('Attacks as an ordinary user', () => testAsUser(attacksOnSessions, built));
  if (everything && process.exitCode === 0)
    process.exitCode = await section('Tests on other versions of Node', () => testOnOtherNodes(undefined, built));
});

/** Vitest takes the path of a missing file for a filter, and runs the other files. */
function refuseMissing(paths) {
  const missing = paths.filter((path) => !existsSync(join(root, path)));
  if (missing.length === 0) return;
  throw new Stop(`scripts/test.mjs or scripts/other-nodes.mjs lists tests that do not exist: ${missing.join(', ')}`);
}

async function section(title, work) {
  console.log(`\n${title}`);
  const started = Date.now();
  const result = await work();
  console.log(`${title}: ${duration(Date.now() - started)}`);
  return result;
}
