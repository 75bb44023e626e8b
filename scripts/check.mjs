import { pathToFileURL } from 'node:url';
import { prepare } from './bootstrap.mjs';
import { compile } from './compile.mjs';
import { writeApiTypes } from './console.mjs';
import { listen } from './run.mjs';
import { duration, script } from './say.mjs';

/** The checks before the tests. Each prints its violations. */
const checks = [
  { name: 'format', run: () => listen('prettier', ['--check', '.']), mend: 'npm run format' },
  {
    name: 'lint',
    // The console has a configuration of its own, so the patterns of the root's do not leave it out. It is linted when its types are made.
    run: () => listen('oxlint', ['--type-aware', '--deny-warnings', '--ignore-pattern', 'console/**']),
  },
  {
    name: 'lint, console',
    run: () =>
      withApiTypes('oxlint', ['--type-aware', '--deny-warnings', '--config', 'console/.oxlintrc.json', 'console']),
  },
  { name: 'types', run: () => listen('tsc', ['--project', 'tsconfig.json']) },
  { name: 'types, browser code', run: () => listen('tsc', ['--project', 'tsconfig.web.json']) },
  { name: 'types, console', run: () => withApiTypes('tsc', ['--project', 'console/tsconfig.json']) },
  { name: 'regexes', run: () => listen(process.execPath, ['scripts/regexes.mjs']) },
  { name: 'exports', run: () => listen(process.execPath, ['scripts/exports.mjs']) },
  { name: 'packages', run: () => listen(process.execPath, ['scripts/packages.mjs']) },
  { name: 'circles', run: () => listen(process.execPath, ['scripts/circles.mjs']) },
  { name: 'rooms', run: () => listen(process.execPath, ['scripts/rooms.mjs']) },
  { name: 'openapi and docs', run: emittedFilesAreCurrent, mend: 'npm run openapi' },
];

/** Runs all checks at once, prints one line each as they finish, and the output of those that failed. */
export async function check() {
  const results = await Promise.all(
    checks.map(async ({ name, run, mend }) => {
      const started = Date.now();
      const { code, output } = await run();
      console.log(`  ${code === 0 ? 'ok    ' : 'FAILED'}  ${name.padEnd(19)}  ${duration(Date.now() - started)}`);
      if (code !== 0) console.log(`\n${output}\n${mend ? `\nTo repair: ${mend}\n` : ''}`);
      return code === 0;
    }),
  );
  return results.every(Boolean);
}

let apiTypes;

/** The console is checked against the API as openapi.json has it. The types of that are made once, before either check. */
async function withApiTypes(program, args) {
  const made = await (apiTypes ??= writeApiTypes());
  return made.code === 0 ? listen(program, args) : made;
}

/** openapi.json and three pages of docs/ are generated from the code, and committed so that reviews see the consequence of a change. */
async function emittedFilesAreCurrent() {
  try {
    await compile({ quiet: true });
  } catch (error) {
    return { code: 1, output: error.message };
  }
  return listen(process.execPath, ['scripts/openapi.mjs', '--check']);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    await prepare({ build: false, system: 'skip' });
    if (!(await check())) process.exitCode = 1;
  });
}
