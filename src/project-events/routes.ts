import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { projectOf } from '../api/caller.ts';
import { eventsOf, refusals } from '../api/schema.ts';
import { commentHeartbeat, eventStream, heartbeatAfter } from '../api/sse.ts';
import { takeProjectPlace } from '../api/stream-places.ts';
import { errors } from '../errors.ts';
import { EventStreamHeaders, ProjectEvent } from './schema.ts';
import type { ProjectEventService } from './service.ts';

/** A reader that reads nothing for this time is disconnected. It can reconnect and continue after its last event. */
const stalledMs = 30_000;

export function projectEventRoutes({
  projectEvents,
}: {
  projectEvents: Pick<ProjectEventService, 'read'>;
}): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/events',
      {
        schema: {
          operationId: 'streamEvents',
          summary:
            'Follow the changes in a project: sessions, pools, profiles, logins, deployments and other resources.',
          tags: ['events'],
          headers: EventStreamHeaders,
          response: {
            200: eventsOf(ProjectEvent, `Events, each with its id. A comment after ${heartbeatAfter} of silence.`),
            ...refusals('invalid_input', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const { keyId, projectId } = request.caller!;
        takeProjectPlace(projectOf(request).id, 'events', reply);
        const over = new AbortController();
        const reader = { keyId, bound: projectId !== null, projectId: projectOf(request).id };
        const frames = await projectEvents.read(reader, lastEventId(request), over);
        const stream = eventStream(reply, commentHeartbeat, over.signal);
        const left = () => over.abort();
        if (stream.closed.aborted) left();
        else stream.closed.addEventListener('abort', left, { once: true });
        try {
          for await (const { json, id } of frames) {
            const stalled = setTimeout(() => reply.raw.destroy(), stalledMs);
            const sent = await stream.sendJson(json, id).finally(() => clearTimeout(stalled));
            if (!sent) break;
          }
        } finally {
          over.abort();
          stream.end();
        }
      },
    );
  };
}

function lastEventId({ headers }: FastifyRequest): number | undefined {
  const last = headers['last-event-id'];
  if (last === undefined || last === '') return undefined;
  if (typeof last !== 'string' || !/^\d{1,15}$/.test(last))
    throw errors.invalid_input({
      detail: 'header Last-Event-ID must be the id of an event of this stream: a whole number.',
    });
  return Number(last);
}
