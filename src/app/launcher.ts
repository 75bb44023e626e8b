import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { detectIsolation } from '../chromium/browser/launch.ts';
import { missingParts } from '../chromium/sandbox/parts.ts';
import { openToolbox } from '../chromium/guest/toolbox.ts';
import { browsers } from '../sessions/browsers.ts';
import type { Egress } from './egress.ts';
import { asConfigError, type Ground } from './ground.ts';

/** Share of a session's bound that one file may take: a file that is too large is refused, and the session continues. */
const mostOfOneFile = 0.75;

/** What starts browsers: the sandbox that this machine gives, the tools inside it, and the bounds of a session. */
export async function openLauncher(ground: Ground, egress: Egress) {
  const { config, sessionDisk, opened, log } = ground;
  const isolation = await openIsolation(ground);
  const toolbox = openToolbox(join(config.dataDir, 'tools'));
  opened(() => toolbox.ready.catch(() => {})); // it may still be being filled
  const launcher = browsers({
    dir: join(config.dataDir, 'sessions'),
    isolation,
    toolbox,
    allowUnsandboxed: config.allowUnsandboxed,
    allow: egress.allow,
    ownEndpointOf: egress.ownEndpointOf,
    launchSeconds: config.launchSeconds,
    limits: {
      memoryBytes: config.sessionMemory * 2 ** 20,
      pids: config.sessionPids,
      cpus: config.sessionCpus,
      fileBytes: sessionDisk * 2 ** 20 * mostOfOneFile,
    },
    searchUrl: config.searchUrl,
    log,
  });
  const missing = () => missingParts({ chromium: config.chromium, headlessShell: config.headlessShell });
  for (const reason of [...isolation.reasons, ...missing()]) log.warn({ reason }, 'degraded');
  return { isolation, launcher, missingParts: missing };
}

async function openIsolation({ config, log }: Ground) {
  const { dataDir, databaseUrl } = config;
  const isolation = await detectIsolation({
    full: config.chromium,
    headlessShell: config.headlessShell,
    uids: config.sessionUids,
    reservedUids: databaseUrl === '' ? [(await stat(join(dataDir, 'postgres'))).uid] : [],
  }).catch(asConfigError);
  if (!isolation.sandboxed) void isolation.whenSandboxed.then(() => log.info({}, 'sandbox.granted'));
  return isolation;
}
