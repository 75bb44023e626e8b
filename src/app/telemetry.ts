import type { FastifyRequest } from 'fastify';
import type { Server } from '../api/server.ts';
import { collect } from '../chromium/telemetry/collector.ts';
import type { Addresses } from '../sessions/addresses.ts';
import { hearConsole } from '../sessions/logs/console.ts';
import type { LineLogs } from '../sessions/logs/line-logs.ts';
import type { SessionService } from '../sessions/service.ts';
import type { StoredEvent } from '../telemetry/export/source.ts';
import { isSent, otlpService } from '../telemetry/otlp/service.ts';
import { apiCall } from '../telemetry/service-events.ts';
import { telemetryService, type TelemetryService } from '../telemetry/service.ts';
import { version } from '../version.ts';
import type { Ground } from './ground.ts';

/** The events of sessions, and what takes them out of browsers. */
export async function openTelemetry(ground: Ground, pageConsole: LineLogs) {
  const { config, store, disk, opened, log } = ground;
  const otlp = await openOtlp(ground);
  const hear = hearConsole(pageConsole);
  const telemetry = telemetryService({
    db: store.db,
    days: config.telemetryDays,
    sessionBytes: config.telemetrySession * 2 ** 20,
    projectBytes: config.telemetryProject * 2 ** 20,
    short: () => config.databaseUrl === '' && disk.short(),
    onLine(sessionId, type, line) {
      hear(sessionId, type, line);
      otlp?.(sessionId, type, line);
    },
    log,
  });
  opened(() => telemetry.close());
  return { telemetry, collect };
}

/** The way of events to a collector, if the operator has one. */
async function openOtlp({ config, store, events, opened, log }: Ground) {
  const { otlpEndpoint: endpoint, otlpHeaders: headers } = config;
  if (endpoint === '') return undefined;
  const otlp = await otlpService({ endpoint, headers, version, nodeId: store.nodeId, log });
  opened(() => otlp.close());
  events.on('session.started', (facts) => otlp.sessionStarted(facts));
  events.on('session.ended', (facts) => otlp.sessionEnded(facts));
  return (sessionId: string, type: string, line: string) => {
    if (isSent(type)) otlp.event(sessionId, (JSON.parse(line) as StoredEvent).event);
  };
}

/** Routes below a session's base_url have no name in the reference. */
const byToken = /^\/browser\/kernel\/:token\/(.+)$/;
const namesByToken: Record<string, string> = { curl: 'browserCurl', 'curl/raw': 'browserCurlRaw' };

export interface Reported {
  telemetry: () => Pick<TelemetryService, 'capturing' | 'anyCaptures'>;
  sessions: () => Pick<SessionService, 'idOf'>;
  addresses: () => Pick<Addresses, 'admit'>;
}

/**
 * Reports each answered request about a session in the session's own events. Reading events is left out: it would never end. So is
 * reading the session, which does nothing to it and is done again and again by what shows it; and the
 * request that deletes the session: its status is known when it is answered, and by then the events have ended with the session.
 */
export function reportCalls(http: Server, rooms: Reported) {
  http.addHook('onResponse', async (request, reply) => {
    const operationId = operationOf(request);
    if (!operationId || !rooms.telemetry().anyCaptures('control')) return;
    const journal = await journalOf(request).catch(() => undefined); // the session may have ended
    const { id: requestId } = request;
    journal?.add(apiCall({ requestId, operationId, status: reply.statusCode, durationMs: reply.elapsedTime }));
  });

  async function journalOf({ params, project }: FastifyRequest) {
    const { id, id_or_name: idOrName, token } = params as { id?: string; id_or_name?: string; token?: string };
    if (token !== undefined) {
      const { sessionId, minter } = await rooms.addresses().admit(token, 'base');
      return rooms.telemetry().capturing(sessionId, minter.projectId);
    }
    const named = id ?? idOrName;
    if (!project || named === undefined) return undefined;
    const { capturing } = rooms.telemetry();
    return capturing(named, project.id) ?? capturing(await rooms.sessions().idOf(project.id, named, false), project.id);
  }
}

const unreported = new Set(['getBrowser', 'getBrowserThumbnail', 'deleteBrowser']);

function operationOf({ routeOptions }: FastifyRequest): string | undefined {
  const { url = '', schema } = routeOptions;
  if (url.includes('/telemetry/') || unreported.has(schema?.operationId ?? '')) return undefined;
  const [, path] = byToken.exec(url) ?? [];
  if (path !== undefined) return namesByToken[path] ?? path;
  return url.startsWith('/browsers/:') ? schema?.operationId : undefined;
}
