import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { buildApp, type App } from './app.ts';
import { takeFaults } from './app/faults.ts';
import { NodesDisagree } from './cluster/agreement.ts';
import { ConfigError, readConfig, unknownSettings, type Config } from './config.ts';
import { linkAddress, linkMinutes } from './console/links.ts';
import { replaceFile } from './lib/files.ts';
import { isForPeople, openLogger, prettyLines } from './logger.ts';
import { DataDirInUse } from './store/anchor.ts';

/** The process: read the config, build the app, listen, wait for a signal, close. */
async function main() {
  const config = readConfig();
  const pretty = isForPeople(config.logFormat, process.stderr.isTTY);
  const colour = process.stderr.isTTY && process.stderr.hasColors(); // it heeds NO_COLOR
  const logger = openLogger(config.logLevel, pretty ? prettyLines(process.stderr, colour) : undefined);
  for (const sentence of unknownSettings()) logger.warn({ sentence }, 'settings.unknown');
  // A log that cannot be written (its reader has exited, its disk is full) loses lines. The service continues.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
  const ending = new AbortController();
  // The second signal means "at once". A fault while the service closes gives it time to close the rest.
  const onSignal = (signal: string) => (ending.signal.aborted ? process.exit(1) : ending.abort(signal));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  const onFatal = (error: Error) => {
    logger.error({ error }, 'fatal');
    process.exitCode = 1;
    if (ending.signal.aborted) exitWithin(20_000);
    ending.abort(error.message);
  };
  takeFaults({ log: logger, onFatal });

  const building = buildApp({ config, logger, onFatal });
  await Promise.race([building, stopped(ending.signal)]);
  if (ending.signal.aborted) giveUpLater(logger);
  const app = await building;
  try {
    if (!ending.signal.aborted) {
      const address = await app.http.listen({ host: config.host, port: config.port });
      // For the command line on this machine, which finds the key beside it. It must not see a file that is not written yet.
      await replaceFile(join(config.dataDir, 'address'), `${address}\n`);
      // The log of the start comes before the banner. A start that fails here is in the log, and the banner is not.
      await Promise.race([app.started, stopped(ending.signal)]);
      if (!ending.signal.aborted) await welcome(config, config.publicUrl || address, app);
      await stopped(ending.signal);
    }
    logger.info({ reason: String(ending.signal.reason) }, 'closing');
  } finally {
    await rm(join(config.dataDir, 'address'), { force: true });
    await app.close();
  }
  process.exit();
}

async function stopped(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
}

/** A service that is stopped during its start completes the current step, so that it can be closed, or exits after a time limit. */
function giveUpLater(logger: ReturnType<typeof openLogger>) {
  logger.info('stopping before the start is complete');
  exitWithin(60_000); // a first start makes a database, which takes more than 20 s on a busy machine
}

function exitWithin(ms: number) {
  setTimeout(() => process.exit(1), ms).unref();
}

async function welcome(config: Config, address: string, { firstKey, links }: App) {
  const file = join(config.dataDir, 'api-key');
  const key = firstKey ?? (config.apiKey ? 'the one in CORRAL_API_KEY' : `in ${file}`);
  const quoted = firstKey ?? (config.apiKey ? '$CORRAL_API_KEY' : `$(cat '${file}')`);
  const console = firstKey
    ? `${linkAddress(address, await links.create())}   (signs in once, within ${linkMinutes} minutes)`
    : `${address}/console   (sign in with a key, or by the link that \`npx corral console\` prints)`;
  process.stdout.write(
    [
      '',
      `Corral listens at  ${address}`,
      `API key            ${key}${firstKey ? `   (shown this once; kept in ${file})` : ''}`,
      `Try                curl -X POST -H "Authorization: Bearer ${quoted}" -H "Content-Type: application/json" -d '{"headless": true}' ${address}/browsers`,
      `Console            ${console}`,
      `Look               ${address}/docs for the reference, ${address}/ready for what works here`,
      '',
    ].join('\n'),
  );
}

/** Why the address cannot be listened at, and what to do. */
const remedies: Record<string, string> = {
  EADDRINUSE: 'Something else listens there already. Stop it, or set CORRAL_PORT.',
  EADDRNOTAVAIL:
    'This machine has no such address. Set CORRAL_HOST to an address of the machine, or to 0.0.0.0 for all.',
  EACCES: 'Only root may listen at a port below 1024. Set CORRAL_PORT to a higher one.',
};

main().catch((error: NodeJS.ErrnoException) => {
  const friendly = error instanceof ConfigError || error instanceof DataDirInUse || error instanceof NodesDisagree;
  const remedy = error.syscall === 'listen' ? remedies[error.code ?? ''] : undefined; // a file may be refused with EACCES, too
  process.stderr.write(
    `${friendly ? error.message : remedy ? `${error.message}\n${remedy}` : (error.stack ?? error.message)}\n`,
  );
  process.exit(1);
});
