import type { FastifyRequest } from 'fastify';
import { pathOf } from '../api/server.ts';
import type { Cluster } from '../cluster/service.ts';
import { apiKeyService } from '../org/api-keys.ts';
import { auditService, type AuditService } from '../org/audit.ts';
import { letFirstKeyIn } from '../org/first-key.ts';
import { limitService } from '../org/limits.ts';
import { projectService, type Occupant } from '../org/projects.ts';
import { storageService } from '../org/storage.ts';
import type { Ground } from './ground.ts';
import { openProjectEvents } from './project-events.ts';

export type Organisation = Awaited<ReturnType<typeof openOrganisation>>;

/** Projects, keys, limits, the audit log, what projects store, and the stream of what changes in them. */
export async function openOrganisation(ground: Ground, nodes: Cluster, occupants: () => Occupant[]) {
  const { config, store, events, gate, log } = ground;
  const { db, quick, nodeId } = store;
  const changed = () => gate.forget();
  const projects = projectService({ db, events, changed, occupants });
  const keys = apiKeyService({ db, changed });
  const limits = limitService({ db, projects, capacity: async () => nodes.capacity() });
  const audit = auditService({ db, quick, most: config.auditEntries, log });
  await projects.ensureDefault();
  const firstKey = await letFirstKeyIn(keys, config);
  const storage = storageService({ db, nodeId, mostBytes: config.projectStorage * 2 ** 20 });
  await storage.nodeLost(nodeId);
  return { projects, keys, limits, audit, storage, firstKey, projectEvents: openProjectEvents(ground) };
}

/** The address of a session has a token, and so may the id of a WebDriver session. Readers of the audit log get none. */
const withoutToken = (path: string) =>
  path.replace(/^((?:\/wd\/hub)?\/session\/\w+)\.[^/]+/, '$1').replace(/^(\/browser\/kernel\/)[^/]+/, '$1{token}');

export function recordRequest(audit: AuditService, request: FastifyRequest, status: number, durationMs: number) {
  return audit
    .record({
      caller: request.caller!,
      projectId: request.project?.id ?? null,
      service: request.routeOptions.schema?.tags?.[0] ?? 'api',
      status,
      method: request.method,
      path: withoutToken(pathOf(request)),
      route: request.routeOptions.url ?? '',
      domain: request.host,
      durationMs,
      clientIp: request.clientIp,
      userAgent: request.headers['user-agent'] ?? '',
    })
    .catch((error: Error) => request.log.error({ requestId: request.id, error }, 'audit.not_recorded'));
}
