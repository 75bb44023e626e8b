import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { projectOf } from '../../api/caller.ts';
import { refusals } from '../../api/schema.ts';
import { eventStream } from '../../api/sse.ts';
import { ofFiles } from '../refusals.ts';
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
      async (request, reply) => {
        const id = await sessions.idOf(projectOf(request).id, request.params.id, false);
        const held = await sessions.hold(id);
        try {
          const tell = await openLog(held, id, request.query, recorder);
          const events = eventStream(reply, { everyMs: 15_000, comment: 'still here' }, held.until);
          const send = (message: string) => events.send({ event: 'log', timestamp: new Date().toISOString(), message });
          await tell({ send, closed: events.closed });
          events.end();
        } finally {
          held.release();
        }
      },
    );
  };
}
