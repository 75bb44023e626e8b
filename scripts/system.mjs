import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { aptInstall } from './apt.mjs';
import { command, findParts, isDebian, isRoot } from './parts.mjs';
import { say, Stop } from './say.mjs';

/** PostgreSQL refuses to run as root and browsers should not; a service started by root runs both as this user. */
export const serviceUser = 'corral';

/** Installs the missing system parts where this user may, and otherwise stops with the command that does. */
export async function provideSystemParts() {
  if (isRoot()) createServiceUser();
  const all = missingParts();
  if (all.length === 0) return;

  say(describe(all));
  const missing = all.filter((part) => !part.optional);
  if (!isRoot() || !isDebian()) {
    if (missing.length > 0) throw new Stop(`\n${howToInstall(all)}\nThen run the same command again.`);
    return say(`\n${howToInstall(all)}`);
  }
  if (missing.length > 0) await install(missing);
  const rest = missingParts().filter((part) => part.optional);
  if (rest.length > 0)
    await aptInstall(rest.map((part) => part.name)).catch((error) => {
      if (!(error instanceof Stop)) throw error;
      say(`${error.message}\nGoing on without.`);
    });
}

async function install(missing) {
  const unknown = await aptInstall(missing.map((part) => part.name));
  for (const part of missingParts()) if (part.mend) spawnSync(part.mend[0], part.mend.slice(1), { stdio: 'ignore' });
  const left = missingParts().filter((part) => !part.optional);
  if (left.length === 0) return;

  const chromiumIsASnap = unknown.some((name) => name.startsWith('chromium'));
  throw new Stop(
    `${describe(left)}\n` +
      (chromiumIsASnap
        ? "This distribution has Chromium only as a snap, which does not run inside a session's sandbox. " +
          'Set CORRAL_CHROMIUM and CORRAL_HEADLESS_SHELL to the paths of others, or use Debian.'
        : 'apt-get said that they are installed, yet they are not where we look. `npm run doctor` shows the places.'),
  );
}

export function reportSystemParts() {
  const missing = missingParts();
  if (missing.length > 0) say(`${describe(missing)}\n\n${howToInstall(missing)}`);
}

export function missingParts() {
  return findParts().filter((part) => !part.path);
}

/** The command that installs the missing packages: for Debian and Ubuntu, with Debian's names on other systems. */
export function howToInstall(missing) {
  const names = missing.map((part) => part.name).join(' ');
  if (process.platform !== 'linux') return `Install ${names} (or Google Chrome).`;
  if (!isDebian()) return `Install these with your package manager (the names are Debian's): ${names}`;
  const commands = ['apt-get update', `apt-get install --yes --no-install-recommends ${names}`];
  for (const { mend } of missing) if (mend && command(mend[0])) commands.push(mend.join(' '));
  const sudo = !isRoot() && command('sudo') ? 'sudo ' : '';
  const as = isRoot() || sudo ? '' : ' as root';
  return `Run this${as}:\n\n  ${commands.map((line) => sudo + line).join(' && ')}\n`;
}

function describe(missing) {
  const width = Math.max(...missing.map((part) => part.name.length));
  return [
    `Not on this machine yet, and what goes without ${missing.length === 1 ? 'it' : 'them'}:`,
    ...missing.map((part) => `  ${part.name.padEnd(width)}  ${part.without}`),
  ].join('\n');
}

export function serviceUserExists() {
  // Reading the file takes microseconds; getent also knows the users of a directory service.
  if (new RegExp(`^${serviceUser}:`, 'm').test(readFileSync('/etc/passwd', 'utf8'))) return true;
  return spawnSync('getent', ['passwd', serviceUser]).status === 0;
}

function createServiceUser() {
  if (process.platform !== 'linux' || serviceUserExists()) return;
  const args = ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', serviceUser];
  say(`Creating the system user '${serviceUser}', which the embedded database runs as.`);
  const { status, stderr, error } = spawnSync(command('useradd') ?? 'useradd', args, { encoding: 'utf8' });
  // 9: another process created the user a moment ago.
  if (status !== 0 && status !== 9)
    throw new Stop(`useradd ${args.join(' ')} failed: ${(stderr || error?.message || '').trim()}`);
}
