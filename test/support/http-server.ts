import { httpServer } from '../../src/api/server.ts';
import { openLogger } from '../../src/logger.ts';

/** The HTTP server without rooms: every key is valid, there is one project, and there is no other node. */
export const bareServer = (bodySeconds: number, logger = openLogger('silent')) =>
  httpServer({
    gate: {
      authenticate: async () => ({ keyId: 'key', keyName: 'key', projectId: null }),
      resolveProject: async () => ({ id: 'project', name: 'Default' }),
    },
    audit: { record: async () => {} },
    logger,
    trustProxy: [],
    bodySeconds,
    elsewhere: {
      ready: () => undefined,
      passengerOf: () => undefined,
      nodeFor: () => undefined,
      forward: () => Promise.reject(new Error('there is no other node')),
    },
  });
