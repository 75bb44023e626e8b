import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import { measureRequests, metricsRegistry } from './api/metrics.ts';
import { httpServer, pathOf } from './api/server.ts';
import { statusRoutes, type Probe } from './api/status.ts';
import type { Config } from './config.ts';
import { eventBus } from './events.ts';
import { createOnce } from './lib/files.ts';
import { pick } from './lib/ids.ts';
import { undoOnFailure } from './lib/undo.ts';
import { apiKeyService, type ApiKeyService } from './org/api-keys.ts';
import { auditService } from './org/audit.ts';
import { gatekeeper } from './org/gatekeeper.ts';
import { limitService } from './org/limits.ts';
import { projectService, type Occupancy } from './org/projects.ts';
import { orgRoutes } from './org/routes.ts';
import { openStore } from './store/open.ts';
import { openKeys, secretStore } from './store/secrets.ts';
import { version } from './version.ts';

export type App = Awaited<ReturnType<typeof buildApp>>;

/** The composition root: rooms are put together top to bottom and closed bottom to top. Nothing runs that is not started here. */
export async function buildApp(options: {
  config: Config;
  logger: FastifyBaseLogger;
  onFatal: (error: Error) => void;
}) {
  const { config, logger, onFatal } = options;
  return undoOnFailure(async (undo) => {
    await mkdir(config.dataDir, { recursive: true, mode: 0o700 });
    const { dataDir, databaseUrl } = config;
    const store = await openStore({ dataDir, databaseUrl, channels: ['corral_org'], onLost: onFatal, log: logger });
    undo(() => store.close());
    const { db, quick, anchor } = store;
    const secrets = secretStore(db, await openKeys(dataDir, config.secretKey));
    const events = eventBus();
    const metrics = metricsRegistry();
    const probes: Probe[] = [{ name: 'store', required: true, check: () => store.ping().then(() => undefined) }];

    const gate = gatekeeper({ db, trusted: () => anchor.listening });
    const changed = () => gate.forget();
    anchor.on('corral_org', changed);
    anchor.onGap(changed);
    const occupancies: Occupancy[] = [];
    const projects = projectService({ db, events, changed, occupancies });
    const keys = apiKeyService({ db, changed });
    const limits = limitService({ db, projects, capacity: async () => config.capacity });
    const audit = auditService({ db, quick });
    await projects.ensureDefault();
    const firstKey = await letFirstKeyIn(keys, config);

    const http = await httpServer({
      gate,
      logger,
      trustProxy: config.trustProxy,
      audit: {
        record: (request, status, durationMs) =>
          audit
            .record({
              caller: request.caller!,
              projectId: request.project?.id ?? null,
              service: request.routeOptions.schema?.tags?.[0] ?? 'api',
              status,
              method: request.method,
              path: pathOf(request),
              route: request.routeOptions.url ?? '',
              domain: request.host,
              durationMs,
              clientIp: request.ip,
              userAgent: request.headers['user-agent'] ?? '',
            })
            .catch((error: Error) => logger.error({ requestId: request.id, error }, 'audit.not_recorded')),
      },
    });
    undo(() => http.close());
    measureRequests(http, metrics);
    await http.register(statusRoutes({ probes, metrics, version }));
    await http.register(orgRoutes({ projects, limits, keys, audit }));
    await http.ready();

    const forgetting = setInterval(
      () => {
        void audit
          .removeOlderThan(config.auditDays)
          .catch((error: Error) => logger.warn({ error: error.message }, 'audit.not_pruned'));
      },
      60 * 60 * 1000,
    ).unref();

    return {
      http,
      store,
      secrets,
      firstKey,
      async close() {
        clearInterval(forgetting);
        await http.close();
        await store.close();
      },
    };
  });
}

/**
 * The first key is the operator's (CORRAL_API_KEY) or made here and kept in a private file. Undefined when there is
 * nothing to show: it was shown before, or it is the operator's own.
 */
async function letFirstKeyIn(keys: ApiKeyService, { apiKey, dataDir }: Config): Promise<string | undefined> {
  if (apiKey) return void (await keys.adopt(apiKey, 'CORRAL_API_KEY'));
  const file = join(dataDir, 'api-key');
  const known = await keys.anyKey();
  // Another node's first key serves all nodes; this one needs none of its own.
  const key = await createOnce(file, () =>
    known ? 'none' : `sk_${pick('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', 40)}`,
  );
  if (key === 'none') return undefined;
  return (await keys.adopt(key, 'first key')) === 'added' ? key : undefined;
}
