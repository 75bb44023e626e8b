import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { refusals } from '../../api/schema.ts';
import { ofFiles } from '../refusals.ts';
import { heldSessions } from '../held-routes.ts';
import type { SessionService } from '../service.ts';
import type { RecorderLog } from './recorder-log.ts';
import { LogEvent, LogQuery } from './schema.ts';
import { openLog } from './service.ts';

export function logRoutes({
  sessions,
  recorder,
}: {
  sessions: SessionService;
  recorder: RecorderLog;
}): FastifyPluginAsyncTypebox {
  const { sendEvents } = heldSessions({ sessions });
  return async (app) => {
    app.get(
      '/browsers/:id/logs/stream',
      {
        schema: {
          operationId: 'logsStream',
          summary: 'Follow a file of the session, or what its own processes write.',
          tags: ['browsers'],
          params: Type.Object({ id: Type.String() }),
          querystring: LogQuery,
          response: {
            200: {
              description: 'Events, a line each; lines beyond 64 KiB are cut.',
              headers: { 'X-SSE-Content-Type': { type: 'string', const: 'application/json' } },
              content: { 'text/event-stream': { schema: LogEvent } },
            },
            ...refusals(...ofFiles, 'not_found', 'engine_unavailable'),
          },
        },
      },
      (request, reply) =>
        sendEvents(request, reply, async ({ held, sessionId }) => {
          const tell = await openLog(held, sessionId, request.query, recorder);
          return ({ send, closed }) =>
            tell({
              send: (message) => send({ event: 'log', timestamp: new Date().toISOString(), message }),
              closed,
            });
        }),
    );
  };
}
