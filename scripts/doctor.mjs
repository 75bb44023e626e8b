/** Reports what Corral finds on this machine, what that switches off, and how to fix it. Changes nothing. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { neededNode, nodeIsNewEnough } from './bootstrap.mjs';
import { staleDependencies } from './dependencies.mjs';
import { root } from './run.mjs';
import { cgroups, disk, memory, sandboxes, serviceUserFinding, versionOf } from './machine.mjs';
import { findParts } from './parts.mjs';
import { howToInstall } from './system.mjs';

// A package has no lock file of its own; npm installed its dependencies.
const stale = existsSync(join(root, 'package-lock.json')) ? staleDependencies() : undefined;
const parts = findParts();
const missing = parts.filter((part) => !part.path);

/** Each finding: whether it is well (undefined for information only), the result, and the features that need it. */
const findings = [
  {
    name: 'node',
    well: nodeIsNewEnough(),
    required: true,
    saw: process.versions.node,
    without: `everything, Corral needs ${neededNode} or newer`,
    mend: 'Install a newer Node: https://nodejs.org/en/download',
  },
  { name: 'npm', saw: versionOf('npm', ['--version']) },
  { name: 'packages', saw: stale ? `npm start will run npm ci: ${stale}` : 'complete' },
  ...parts.map(({ name, path, version, browser, required, without }) => {
    const found = path && version ? versionOf(path, version) : undefined;
    // The service uses no browser that does not print its version.
    const well = Boolean(path) && !(browser && found === undefined);
    const words = path && version ? (found ?? 'of unknown version') : '';
    return { name, well, required, saw: [words, path].filter(Boolean).join('  '), without };
  }),
  ...serviceUserFinding(),
  ...sandboxes(),
  cgroups(),
  disk(),
  ...memory(),
];

const mends = findings.filter(({ well = true, mend }) => !well && mend).map(({ mend }) => mend);
if (missing.length > 0) mends.unshift(howToInstall(missing));
if (process.argv.includes('--json')) {
  const shown = findings.map(({ name, well = true, required = false, saw, without }) =>
    well ? { name, well, saw } : { name, well, required, saw, switched_off: without },
  );
  console.log(JSON.stringify({ findings: shown, mends }, null, 2));
} else print();
if (findings.some(({ well = true, required }) => !well && required)) process.exitCode = 1;

function print() {
  const width = Math.max(...findings.map(({ name }) => name.length));
  for (const { name, well = true, required, saw, without } of findings) {
    const verdict = well ? 'ok      ' : required ? 'MISSING ' : 'degraded';
    const words = well ? saw : [saw, `switched off: ${without}`].filter(Boolean).join('; ');
    console.log(`${verdict}  ${name.padEnd(width)}  ${words}`);
  }

  if (mends.length > 0) console.log(`\nTo repair:\n\n${mends.join('\n')}`);
  else console.log('\nThis machine has everything.');
}
