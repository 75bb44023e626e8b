import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { prepare } from './bootstrap.mjs';
import { isRoot } from './parts.mjs';
import { root } from './run.mjs';
import { script, Stop } from './say.mjs';

/** `npm start -- --as-is` starts with the system parts that are present: `/ready` then lists the disabled features. */
const asIs = process.argv.indexOf('--as-is');
if (asIs !== -1) process.argv.splice(asIs, 1);

const main = join(root, 'dist/main.js');
await script(async () => {
  refusePrivilegedPort();
  await prepare({ system: asIs === -1 ? 'install' : 'report' });
  if (!existsSync(main)) throw new Stop('There is no src/main.ts to start.');
});

hearSignalsOnce();
// The service runs in this very process: signals, exit codes and the terminal need no forwarding. (The `exec` in
// package.json is part of this: npm signals the shell it started, which would die and leave this process running.)
process.argv[1] = main;
await import(pathToFileURL(main).href);

/** Said now, and not after minutes of installing and building. */
function refusePrivilegedPort() {
  const port = Number(process.env.CORRAL_PORT || 3000);
  const first = '/proc/sys/net/ipv4/ip_unprivileged_port_start';
  const least = existsSync(first) ? Number(readFileSync(first, 'utf8')) : 1024;
  if (port === 0 || !(port < least) || isRoot()) return;
  throw new Stop(`CORRAL_PORT is ${port}, and only root may listen at a port below ${least}. Set it to a higher one.`);
}

/**
 * Under npm, Ctrl-C arrives twice: from the terminal, and a moment later forwarded by npm. The service may take a second
 * signal as "stop at once", so the duplicate is dropped; no person types this fast.
 */
function hearSignalsOnce() {
  const emit = process.emit.bind(process);
  const heard = new Map();
  process.emit = (event, ...args) => {
    if (event === 'SIGINT' || event === 'SIGTERM') {
      const now = performance.now();
      if (now - (heard.get(event) ?? -Infinity) < 150) return true;
      heard.set(event, now);
    }
    return emit(event, ...args);
  };
}
