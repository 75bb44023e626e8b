import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { join } from 'node:path';
import { prepare } from './bootstrap.mjs';
import { compile } from './compile.mjs';
import { root } from './run.mjs';
import { say, script } from './say.mjs';

/**
 * `npm run dev`: runs the service, and restarts it after each change of src/ or console/src/ that builds. A change that does not build
 * leaves the last good service running and prints why. Arguments are those of `npm start`.
 */
const SETTLE_MS = 150; // an editor writes a file in several steps

await script(async () => {
  await prepare();
  let service = start();
  let changed = false;
  let building = false;

  async function restart() {
    if (building) return;
    building = true;
    while (changed) {
      changed = false;
      try {
        await compile();
      } catch (error) {
        say(error.message);
        continue;
      }
      if (changed) continue;
      await stop(service);
      service = start();
    }
    building = false;
  }

  let timer;
  const hear = (_, file) => {
    if (/\.test\.tsx?$|\.gen\./.test(file ?? '')) return; // a build writes the console's API types
    changed = true;
    clearTimeout(timer);
    timer = setTimeout(restart, SETTLE_MS);
  };
  for (const folder of ['src', 'console/src']) watch(join(root, folder), { recursive: true }, hear);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, async () => {
      await stop(service);
      process.exit(0);
    });
});

/** In a process group of its own: Ctrl-C reaches it only through this process, once. */
function start() {
  const child = spawn(process.execPath, ['scripts/start.mjs', ...process.argv.slice(2)], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  child.exited = once(child, 'exit');
  void child.exited.then(([code]) => {
    if (code) say(`The service ended with code ${code}. It is started again after the next change.`);
  });
  return child;
}

async function stop(child) {
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
  await child.exited;
}
