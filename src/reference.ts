import { httpServer } from './api/server.ts';
import { openLogger } from './logger.ts';
import { everyRoute } from './routes.ts';

/** The server with every route, only to be described: no handler runs, so no room is needed. */
export async function referenceServer() {
  const nothing = new Proxy({}, { get: () => nothing }) as never;
  const app = await httpServer({
    gate: nothing,
    audit: nothing,
    logger: openLogger('silent'),
    trustProxy: [],
    elsewhere: nothing,
    bodySeconds: 60,
  });
  return { app, routes: everyRoute(nothing) };
}
