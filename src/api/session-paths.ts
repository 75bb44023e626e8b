import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Access `session`: the parameter of the path that names the session. It is set from the token. */
    sessionParam?: string;
  }
}

/** The parts of `/browsers/{id}` that are also served below a session's `base_url`. Those not named here have routes of their own there. */
const PARTS = /^\/browsers\/:([^/]+)\/((?:process|fs|computer|playwright|replays|logs|telemetry)(?:\/.*)?)$/;
const OWN = new Set(['telemetry/stream']);

/**
 * Serves each route of a session a second time, below its `base_url`, by the address's token instead of a key: clients that route requests
 * to a session's own address need not know which. The reference has the first of the two.
 */
export function alsoBelowBaseUrl(app: FastifyInstance): void {
  app.addHook('onRoute', function (route) {
    const [, sessionParam = '', part] = PARTS.exec(route.url) ?? [];
    if (part === undefined || OWN.has(part) || route.method === 'HEAD') return; // HEAD comes with its GET
    const { operationId: _, tags: __, ...schema } = route.schema ?? {};
    const url = `/browser/kernel/:token/${part}`;
    const config = { ...route.config, access: 'session' as const, sessionParam };
    this.route({ ...route, url, path: url, schema: { ...schema, hide: true }, config } as never);
  });
}
