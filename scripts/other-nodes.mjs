import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { listen, root, show } from './run.mjs';
import { say, script, Stop } from './say.mjs';

/**
 * What a version of Node can change: HTTP, websockets, streams, child processes, sockets, threads, files, ciphers; and one file with a real
 * service and real browsers. Rules and queries are the same under each version, and tests of browsers, sandboxes and PostgreSQL find the
 * same programs, so they run once.
 */
const ofNode = [
  'src/api/body-clock.test.ts',
  'src/api/faults.test.ts',
  'src/api/large.test.ts',
  'src/api/left-bodies.test.ts',
  'src/api/serialization.test.ts',
  'src/api/sse.test.ts',
  'src/chromium/cdp/mux.test.ts',
  'src/chromium/cdp/pipe.test.ts',
  'src/chromium/egress/answers.test.ts',
  'src/chromium/egress/dial.test.ts',
  'src/chromium/egress/direct-request.test.ts',
  'src/chromium/egress/gateway.test.ts',
  'src/chromium/egress/gateway.hostile.test.ts',
  'src/chromium/egress/lanes.test.ts',
  'src/chromium/egress/plain-body.test.ts',
  'src/chromium/egress/plain-requests.test.ts',
  'src/chromium/egress/proxy.test.ts',
  'src/chromium/egress/resolver.test.ts',
  'src/chromium/guest/channel.test.ts',
  'src/chromium/guest/guest.test.ts',
  'src/chromium/guest/inside/kernel-watch.test.ts',
  'src/cli/client/http.test.ts',
  'src/cluster/forward.test.ts',
  'src/extensions/archive.test.ts',
  'src/lib/counted-response.test.ts',
  'src/lib/deadline.test.ts',
  'src/lib/disk-space.test.ts',
  'src/lib/json-aside.test.ts',
  'src/lib/loop-stops.test.ts',
  'src/lib/scope.test.ts',
  'src/lib/seal.test.ts',
  'src/lib/seal-chunks.test.ts',
  'src/lib/ws-handshake.test.ts',
  'src/lib/ws-reader.test.ts',
  'src/lib/ws-sink.test.ts',
  'src/sessions/curl/service.test.ts',
  'src/sessions/held-routes.test.ts',
  'src/sessions/live-view/assets.test.ts',
  'src/sessions/own-endpoint.test.ts',
  'src/sessions/replays/recordings.test.ts',
  'test/acceptance/sessions.test.ts',
];

/** On the newest version also whole rooms: it is the first to change what the language and its library do. */
export const onNewest = [
  ...ofNode,
  'src/lib',
  'src/api',
  'src/config.test.ts',
  'src/chromium/egress',
  'src/chromium/guest',
  'src/cluster/headers.test.ts',
  'src/doors/webdriver/driver.test.ts',
  'src/org/audit.test.ts',
  'src/org/strangers.test.ts',
  'src/sessions/logs/kept.test.ts',
  'test/rooms.test.ts',
];

/** The versions besides the oldest that is supported, which runs everything: the current LTS and the newest. */
const versions = [
  { version: '24', tests: ofNode },
  { version: '26', tests: onNewest },
];

/**
 * Runs the tests of each version, or these arguments of vitest, and the check of the generated files. `env` is added to the environment.
 * Resolves to an exit code.
 */
export async function testOnOtherNodes(args, env = {}) {
  for (const { version, tests } of versions) {
    const node = await provideNode(version);
    if (!node) continue;
    const { output: name } = await listen(node, ['--version']);
    say(`\nNode ${name}`);
    const { code, output } = await listen(node, ['scripts/openapi.mjs', '--check']);
    if (code !== 0) {
      say(output);
      return code;
    }
    const failed = await show(node, ['node_modules/vitest/vitest.mjs', 'run', ...(args ?? tests)], {
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
    process.exitCode = await testOnOtherNodes(args.length > 0 ? args : undefined);
  });
}
