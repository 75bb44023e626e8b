import { join } from 'node:path';
import { prepare } from './bootstrap.mjs';
import { staleDependencies } from './dependencies.mjs';
import { root, show } from './run.mjs';
import { say, script, Stop } from './say.mjs';

/**
 * `npm run test:clients`: the clients of test/clients/ against the service. They are half a gigabyte of packages, so they have a package of
 * their own, which only this command installs; their install scripts, which download browsers, do not run.
 */
await script(async () => {
  await prepare();
  const folder = join(root, 'test/clients');
  const reason = staleDependencies(folder);
  if (reason) {
    say(`Installing the clients with npm ci: ${reason}.`);
    const flags = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    if ((await show('npm', flags, { cwd: folder })) !== 0) throw new Stop('npm ci did not finish in test/clients.');
  }
  process.exitCode = await show(process.execPath, ['test/clients/tour.mjs', ...process.argv.slice(2)]);
});
