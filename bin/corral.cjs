#!/usr/bin/env node
// CommonJS, as what it loads: Node reads a program of modules by a loader that takes longer to start than the command takes to run.
'use strict';
const { existsSync, readdirSync, statSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const main = join(root, 'dist/cli/corral.cjs');

if (Number(process.versions.node.split('.')[0]) < 20)
  void Promise.all([import('../scripts/bootstrap.mjs'), import('../scripts/say.mjs')]).then(
    ([{ checkNode }, { script }]) => script(checkNode),
  );
// A package has no sources: it was built when it was packed. In a checkout, the build is looked at before it is used.
else if (existsSync(join(root, 'src')) && needsLook())
  void import('../scripts/check-build.mjs').then(({ checkBuild }) => checkBuild(main)).then(() => require(main));
else require(main);

/**
 * Commands that work on the database of this machine run the service's code, so the whole build has to be current. The others are a few
 * files, whose dates are enough: hashing every source would take longer than the command.
 */
function needsLook() {
  const built = statSync(join(root, 'dist/.built-from'), { throwIfNoEntry: false })?.mtimeMs;
  const ofService = ['keys', 'secrets', 'nodes', 'console', 'backup'];
  if (built === undefined || !existsSync(main) || process.argv.slice(2).some((word) => ofService.includes(word)))
    return true;
  return ['src/cli', 'src/lib'].some((folder) => newest(join(root, folder)) > built);
}

function newest(folder) {
  return Math.max(
    ...readdirSync(folder, { withFileTypes: true }).map((entry) =>
      entry.isDirectory() ? newest(join(folder, entry.name)) : statSync(join(folder, entry.name)).mtimeMs,
    ),
  );
}
