import { httpServer } from './api/server.ts';
import { openLogger } from './logger.ts';
import { everyRoute } from './routes.ts';

/** The server with every route, to be described and not to be used: no handler runs, so no room has to stand behind them. */
export async function referenceServer() {
  const nothing = new Proxy({}, { get: () => nothing }) as never;
  const app = await httpServer({
    gate: nothing,
    audit: nothing,
    logger: openLogger('silent'),
    trustProxy: [],
    elsewhere: nothing,
  });
  return { app, routes: everyRoute(nothing) };
}
