/**
 * The first step of every command: makes sure that there is something to run. Plain Node without dependencies, because a
 * fresh clone has none yet, and in syntax that Node 18 reads, so that it can print which version is needed.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { compile } from './compile.mjs';
import { installDependencies } from './dependencies.mjs';
import { root } from './run.mjs';
import { Stop } from './say.mjs';
import { provideSystemParts, reportSystemParts } from './system.mjs';

export const neededNode = '20.19.0';

/**
 * `system`: 'install' installs missing packages or stops with the command that does; 'report' only lists them;
 * 'skip' does not check. `types: false` builds without checking types. When nothing is missing, all of this takes some tens of milliseconds.
 */
export async function prepare({ build = true, types = true, system = 'install', quiet = false } = {}) {
  checkNode();
  // The system comes first: a missing part is reported now, not after a minute of downloading packages.
  if (system === 'install') await provideSystemParts();
  if (system === 'report') reportSystemParts();
  // A package that npm installed has its dependencies and its build, and no sources.
  if (!existsSync(join(root, 'src'))) return;
  await installDependencies();
  if (build) await compile({ quiet, types });
}

export function nodeIsNewEnough(version = process.versions.node) {
  const [have, need] = [version, neededNode].map((text) => text.split('.').map(Number));
  return have[0] !== need[0] ? have[0] > need[0] : have[1] >= need[1];
}

export function checkNode() {
  if (nodeIsNewEnough()) return;
  throw new Stop(
    `Corral needs Node ${neededNode.replace(/\.0$/, '')} or newer, and this is Node ${process.versions.node}.\n` +
      'Install a newer one (https://nodejs.org/en/download, or your version manager) and run the same command again.',
  );
}
