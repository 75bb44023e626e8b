import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { projectOf } from '../../api/caller.ts';
import { hungUp } from '../../api/hung-up.ts';
import { refusals } from '../../api/schema.ts';
import { commentHeartbeat, eventStream } from '../../api/sse.ts';
import { takeStreamPlace } from '../../api/stream-places.ts';
import { ofFiles } from '../refusals.ts';
import { heldSessions } from '../held-routes.ts';
import type { SessionService } from '../service.ts';
import type { KeptLogs } from './kept.ts';
import type { LineLogs } from './line-logs.ts';
import { LogEvent, LogQuery } from './schema.ts';
import { openKeptLog, openLog } from './service.ts';

export function logRoutes({
  sessions,
  sessionLogs,
}: {
  sessions: SessionService;
  sessionLogs: { kept: KeptLogs; recorder: LineLogs; pageConsole: LineLogs };
}): FastifyPluginAsyncTypebox {
  const { sendEvents } = heldSessions({ sessions });
  return async (app) => {
    app.get(
      '/browsers/:id/logs/stream',
      {
        schema: {
          operationId: 'logsStream',
          summary: 'Follow a file or the processes of a session, or read the last lines of an ended session.',
          tags: ['browsers'],
          params: Type.Object({ id: Type.String() }),
          querystring: LogQuery,
          response: {
            200: {
              description: 'Events, a line each; lines beyond 64 KiB are cut.',
              headers: { 'X-SSE-Content-Type': { type: 'string', const: 'application/json' } },
              content: { 'text/event-stream': { schema: LogEvent } },
            },
            ...refusals(...ofFiles, 'not_found', 'engine_unavailable', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const left = hungUp(reply);
        const endedId = await sessions.endedId(projectOf(request).id, request.params.id);
        left.throwIfAborted();
        if (endedId !== undefined) {
          takeStreamPlace(endedId, reply);
          const { at, lines } = await openKeptLog(endedId, request.query, sessionLogs.kept);
          left.throwIfAborted();
          const events = eventStream(reply, commentHeartbeat);
          for (const message of lines)
            if (!(await events.send({ event: 'log', timestamp: at.toISOString(), message }))) break;
          return events.end();
        }
        return sendEvents(request, reply, async ({ held, sessionId }) => {
          const follow = await openLog(held, sessionId, request.query, sessionLogs);
          return ({ send, closed }) =>
            follow({
              send: (message) => send({ event: 'log', timestamp: new Date().toISOString(), message }),
              closed,
            });
        });
      },
    );
  };
}
