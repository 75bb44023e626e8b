import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { listen, root, show } from './run.mjs';
import { say, script, Stop } from './say.mjs';

/** The versions besides the oldest that is supported, which runs everything: the current LTS and the newest. */
const versions = ['24', '26'];

/**
 * What depends on Node itself: HTTP, websockets, streams, child processes, sockets, threads; and one file with a real service and real
 * browsers. Rules and queries are the same under each version, and tests of browsers, sandboxes and PostgreSQL find the same programs, so
 * they run once.
 */
const tests = [
  'src/lib',
  'src/api',
  'src/config.test.ts',
  'src/chromium/cdp/mux.test.ts',
  'src/chromium/cdp/pipe.test.ts',
  'src/chromium/egress',
  'src/chromium/guest',
  'src/cli/client/http',
  'src/cluster/forward.test.ts',
  'src/cluster/headers.test.ts',
  'src/doors/webdriver/driver',
  'src/extensions/archive',
  'src/org/audit.test.ts',
  'src/org/strangers',
  'src/sessions/curl',
  'src/sessions/held-routes',
  'src/sessions/live-view/assets',
  'src/sessions/logs/kept',
  'src/sessions/own-endpoint',
  'src/sessions/replays/recordings',
  'test/rooms.test.ts',
  'test/acceptance/sessions.test.ts',
];

/** Runs these tests on each version, and the check of the generated files. `env` is added to the environment. Resolves to an exit code. */
export async function testOnOtherNodes(args = tests, env = {}) {
  for (const version of versions) {
    const node = await provideNode(version);
    if (!node) continue;
    const { output: name } = await listen(node, ['--version']);
    say(`\nNode ${name}`);
    const { code, output } = await listen(node, ['scripts/openapi.mjs', '--check']);
    if (code !== 0) {
      say(output);
      return code;
    }
    const failed = await show(node, ['node_modules/vitest/vitest.mjs', 'run', ...args], {
      env: { ...process.env, ...env },
    });
    if (failed) return failed;
  }
  return 0;
}

/** npm has Node itself as packages. They are not dependencies, because no user needs them: they are fetched here, once. */
export async function provideNode(version) {
  const name = `node-${process.platform}-${process.arch}`;
  const cache = join(root, 'node_modules/.cache/corral');
  const home = join(cache, `${name}-${version}`);
  const program = join(home, 'bin/node');
  if (existsSync(program)) return program;

  mkdirSync(cache, { recursive: true });
  const draft = mkdtempSync(join(cache, 'draft-'));
  try {
    const packed = await listen('npm', ['pack', `${name}@${version}`, '--pack-destination', draft, '--loglevel=error']);
    const [archive] = readdirSync(draft).filter((file) => file.endsWith('.tgz'));
    if (packed.code !== 0 || !archive) {
      const why = `npm has no ${name}@${version} for us: ${packed.output}`;
      if (process.env.CI) throw new Stop(why);
      say(`${why}\nThe tests do not run on Node ${version}.`);
      return undefined;
    }
    const unpacked = await listen('tar', ['-xzf', archive, '--strip-components=1', 'package/bin'], { cwd: draft });
    if (unpacked.code !== 0) throw new Stop(unpacked.output);
    rmSync(join(draft, archive));
    if (!existsSync(program)) renameSync(draft, home);
    return program;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    const args = process.argv.slice(2);
    process.exitCode = await testOnOtherNodes(args.length > 0 ? args : tests);
  });
}
