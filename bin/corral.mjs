#!/usr/bin/env node
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const main = join(root, 'dist/cli/main.js');
if (Number(process.versions.node.split('.')[0]) < 20) {
  const { checkNode } = await import('../scripts/bootstrap.mjs');
  const { script } = await import('../scripts/say.mjs');
  await script(checkNode);
}
// A package has no sources: it was built when it was packed. In a checkout, the build is looked at before it is used.
if (existsSync(join(root, 'src')) && needsLook()) {
  const { checkBuild } = await import('../scripts/check-build.mjs');
  await checkBuild(main);
}
process.argv[1] = main;
await import(pathToFileURL(main).href);

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
