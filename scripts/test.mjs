import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { testAsUser } from './as-user.mjs';
import { prepare } from './bootstrap.mjs';
import { check } from './check.mjs';
import { testOnOtherNodes } from './other-nodes.mjs';
import { isRoot } from './parts.mjs';
import { root, show } from './run.mjs';
import { duration, script } from './say.mjs';

/** `npm test` is everything CI runs; `npm test -- src/pools -t 'waits'` is vitest alone, with those arguments. */
const args = process.argv.slice(2);

await script(async () => {
  const everything = args.length === 0;
  await section('Set-up', () => prepare({ types: !everything })); // the checks have the types
  if (everything && !(await section('Checks', check))) process.exit(1);
  const built = { CORRAL_TEST_BUILD: 'yes' }; // see vitest.config.ts
  const env = { ...process.env, ...built };
  process.exitCode = await section('Tests', () => show('vitest', ['run', ...args], { env }));
  // What confines a hostile tenant differs for root and for an ordinary user, so the attacks run as both.
  if (everything && process.exitCode === 0 && isRoot())
    process.exitCode = await section('Attacks as an ordinary user', () => testAsUser(attacksOnSessions(), built));
  if (everything && process.exitCode === 0)
    process.exitCode = await section('Tests on other versions of Node', () => testOnOtherNodes(undefined, built));
});

/**
 * The attacks by code in a session. The others attack the service with requests, messages, rows and memory, which is the same for every
 * user.
 */
function attacksOnSessions() {
  const onTheService = [
    'bad-keys',
    'bidi-messages',
    'cdp-messages',
    'computer-work',
    'curl-raw',
    'display-work',
    'docs',
    'faults',
    'floods',
    'growing-work',
    'headers',
    'hostile-browser',
    'keys',
    'large-lists',
    'large-payloads',
    'login-pages',
    'memory',
    'node-credentials',
    'passwords',
    'project-caps',
    'project-storage',
    'provider-items',
    'searches',
    'slow-text',
    'telemetry',
    'trace',
    'watch-links',
    'websocket',
  ];
  const files = readdirSync(join(root, 'test/attacks')).filter((name) => name.endsWith('.test.ts'));
  return files
    .filter((name) => !onTheService.includes(name.replace('.test.ts', '')))
    .map((name) => `test/attacks/${name}`);
}

async function section(title, work) {
  console.log(`\n${title}`);
  const started = Date.now();
  const result = await work();
  console.log(`${title}: ${duration(Date.now() - started)}`);
  return result;
}
