import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, show } from './run.mjs';
import { say, Stop } from './say.mjs';

/** Runs `npm ci` when the installed packages are not those of package-lock.json. */
export async function installDependencies() {
  const reason = staleDependencies();
  if (!reason) return;
  if (isLink(join(root, 'node_modules')))
    throw new Stop(
      `node_modules is a link to a shared install, which we leave alone, and ${reason}. Run npm ci where it points.`,
    );

  say(`Installing packages with npm ci: ${reason}.`);
  // The compiler is a dev dependency, and the embedded database an optional one per platform: an `omit` in the user's npm
  // settings must not leave them out.
  const code = await show('npm', [
    'ci',
    '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]);
  if (code !== 0) throw new Stop('npm ci failed; its output is above. Run the same command again after the repair.');
}

/**
 * Why the installed packages are not those of the lock file, or undefined when they are. npm writes
 * node_modules/.package-lock.json last, so an install that was interrupted has none and is done again.
 */
export function staleDependencies(folder = root) {
  const installed = packagesOf(join(folder, 'node_modules/.package-lock.json'));
  if (!installed)
    return existsSync(join(folder, 'node_modules')) ? 'the last install did not finish' : 'there are none yet';

  for (const [path, wanted] of Object.entries(packagesOf(join(folder, 'package-lock.json')) ?? {})) {
    // The package itself and its workspaces are sources, not installs.
    if (!path.includes('node_modules/') || wanted.link) continue;
    const found = installed[path];
    // npm leaves out the optional packages of other platforms; its install is complete, so that is fine.
    if (!found && wanted.optional) continue;
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    if (found?.version !== wanted.version || found?.integrity !== wanted.integrity)
      return `${name} ${wanted.version} is new`;
    if (!existsSync(join(folder, path, 'package.json'))) return `${name} is missing`;
  }
  return undefined;
}

function packagesOf(lockFile) {
  try {
    return JSON.parse(readFileSync(lockFile, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

function isLink(path) {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}
