import { join } from 'node:path';
import { buildApp } from './app.ts';
import { isMapperFault } from './chromium/bidi/bidi.ts';
import { NodesDisagree } from './cluster/agreement.ts';
import { ConfigError, readConfig, type Config } from './config.ts';
import { openLogger } from './logger.ts';
import { DataDirInUse } from './store/anchor.ts';

/** The process: read the config, build the app, listen, wait for a signal, close. */
async function main() {
  const config = readConfig();
  const logger = openLogger(config.logLevel);
  const ending = new AbortController();
  const end = (reason: unknown) => (ending.signal.aborted ? process.exit(1) : ending.abort(reason));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(signal));
  const onFatal = (error: Error) => {
    logger.error({ error }, 'fatal');
    process.exitCode = 1;
    end(error.message);
  };
  process.on('uncaughtException', onFatal);
  process.on('unhandledRejection', (reason) => {
    if (isMapperFault(reason)) return logger.warn({ error: reason }, 'bidi.rejection_unhandled');
    onFatal(reason instanceof Error ? reason : new Error(String(reason)));
  });

  const app = await buildApp({ config, logger, onFatal });
  try {
    const address = await app.http.listen({ host: config.host, port: config.port });
    welcome(config, config.publicUrl || address, app.firstKey);
    if (!ending.signal.aborted) await new Promise((resolve) => ending.signal.addEventListener('abort', resolve));
    logger.info({ reason: String(ending.signal.reason) }, 'closing');
  } finally {
    await app.close();
  }
  process.exit();
}

function welcome(config: Config, address: string, firstKey: string | undefined) {
  const file = join(config.dataDir, 'api-key');
  const key = firstKey ?? (config.apiKey ? 'the one in CORRAL_API_KEY' : `in ${file}`);
  const quoted = firstKey ?? (config.apiKey ? '$CORRAL_API_KEY' : `$(cat '${file}')`);
  process.stdout.write(
    [
      `Corral listens at  ${address}   (reference at ${address}/docs)`,
      `API key            ${key}${firstKey ? `   (shown this once; kept in ${file})` : ''}`,
      `Try                curl -H "Authorization: Bearer ${quoted}" ${address}/org/projects`,
      '',
    ].join('\n'),
  );
}

main().catch((error: Error & { code?: string }) => {
  const friendly = error instanceof ConfigError || error instanceof DataDirInUse || error instanceof NodesDisagree;
  const taken = error.code === 'EADDRINUSE' && 'Something else listens there already. Stop it, or set CORRAL_PORT.';
  process.stderr.write(
    `${friendly ? error.message : taken ? `${error.message}\n${taken}` : (error.stack ?? error.message)}\n`,
  );
  process.exit(1);
});
