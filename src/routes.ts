import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { aboutRoutes } from './api/about.ts';
import { statusRoutes } from './api/status.ts';
import { consoleRoutes } from './console/routes.ts';
import { codeSourceRoutes } from './credentials/codes/routes.ts';
import { providerRoutes } from './credentials/providers/routes.ts';
import { credentialRoutes } from './credentials/routes.ts';
import { invocationRoutes } from './deployments/invocation-routes.ts';
import { deploymentRoutes } from './deployments/routes.ts';
import { docsRoutes } from './docs/routes.ts';
import { browserlessRoutes } from './doors/browserless/routes.ts';
import { steelRoutes } from './doors/steel/routes.ts';
import { webdriverRoutes } from './doors/webdriver/routes.ts';
import { extensionRoutes } from './extensions/routes.ts';
import { hostedLoginRoutes } from './logins/hosted/routes.ts';
import { loginRoutes } from './logins/routes.ts';
import { mcpRoutes } from './mcp/routes.ts';
import { orgRoutes } from './org/routes.ts';
import { pooledSessionRoutes } from './pools/nodes/routes.ts';
import { poolRoutes } from './pools/routes.ts';
import { profileRoutes } from './profiles/routes.ts';
import { projectEventRoutes } from './project-events/routes.ts';
import { proxyRoutes } from './proxies/routes.ts';
import { browserRoutes } from './sessions/browser/routes.ts';
import { computerRoutes } from './sessions/computer/routes.ts';
import { curlRoutes } from './sessions/curl/routes.ts';
import { fsRoutes } from './sessions/fs/routes.ts';
import { logRoutes } from './sessions/logs/routes.ts';
import { playwrightRoutes } from './sessions/playwright/routes.ts';
import { processRoutes } from './sessions/process/routes.ts';
import { replayRoutes } from './sessions/replays/routes.ts';
import { sessionRoutes } from './sessions/routes.ts';
import { thumbnailRoutes } from './sessions/thumbnail-routes.ts';
import { exportRoutes } from './telemetry/export/routes.ts';
import { telemetryRoutes } from './telemetry/routes.ts';

/** The services that the routes use. */
type Rooms = Parameters<typeof statusRoutes>[0] &
  Parameters<typeof aboutRoutes>[0] &
  Parameters<typeof orgRoutes>[0] &
  Parameters<typeof consoleRoutes>[0] &
  Parameters<typeof profileRoutes>[0] &
  Parameters<typeof poolRoutes>[0] &
  Parameters<typeof proxyRoutes>[0] &
  Parameters<typeof credentialRoutes>[0] &
  Parameters<typeof codeSourceRoutes>[0] &
  Parameters<typeof providerRoutes>[0] &
  Parameters<typeof loginRoutes>[0] &
  Parameters<typeof replayRoutes>[0] &
  Parameters<typeof logRoutes>[0] &
  Parameters<typeof telemetryRoutes>[0] &
  Parameters<typeof exportRoutes>[0] &
  Parameters<typeof projectEventRoutes>[0] &
  Parameters<typeof mcpRoutes>[0] &
  Pick<Parameters<typeof webdriverRoutes>[0], 'gate' | 'log'> &
  Pick<Parameters<typeof extensionRoutes>[0], 'extensions'> & {
    /** Deployments, apps and invocations. */
    work: Parameters<typeof deploymentRoutes>[0] & Parameters<typeof invocationRoutes>[0];
    /** For clients of other services. */
    doors: Parameters<typeof browserlessRoutes>[0] & Parameters<typeof steelRoutes>[0];
    rateLimit: Parameters<typeof sessionRoutes>[0]['limit'];
    /** Sessions of this node, for the pools of other nodes. */
    pooled: Parameters<typeof pooledSessionRoutes>[0]['sessions'];
  };

/** Every route of the service, once: app.ts serves this list, openapi.ts describes it. */
export function everyRoute(rooms: Rooms): FastifyPluginAsyncTypebox[] {
  const { sessions, pools, pooled, rateLimit, extensions } = rooms;
  return [
    statusRoutes(rooms),
    aboutRoutes(rooms),
    docsRoutes(),
    orgRoutes(rooms),
    projectEventRoutes(rooms),
    mcpRoutes(rooms),
    browserlessRoutes(rooms.doors),
    steelRoutes(rooms.doors),
    webdriverRoutes({ ...rooms, limit: rateLimit }),
    consoleRoutes(rooms),
    sessionRoutes({ sessions, limit: rateLimit }),
    thumbnailRoutes({ sessions }),
    profileRoutes(rooms),
    extensionRoutes({ extensions, load: sessions.loadExtensions }),
    processRoutes(rooms),
    fsRoutes(rooms),
    playwrightRoutes(rooms),
    computerRoutes(rooms),
    curlRoutes(rooms),
    logRoutes(rooms),
    replayRoutes(rooms),
    telemetryRoutes(rooms),
    exportRoutes(rooms),
    poolRoutes(rooms),
    proxyRoutes(rooms),
    credentialRoutes(rooms),
    codeSourceRoutes(rooms),
    providerRoutes(rooms),
    loginRoutes(rooms),
    hostedLoginRoutes(),
    deploymentRoutes(rooms.work),
    invocationRoutes(rooms.work),
    browserRoutes(rooms),
    pooledSessionRoutes({ sessions: pooled, pools }),
  ];
}
