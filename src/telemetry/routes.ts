import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { projectOf } from '../api/caller.ts';
import { withRoom } from '../api/large.ts';
import { eventsOf, refusals } from '../api/schema.ts';
import { commentHeartbeat, eventStream, heartbeatAfter } from '../api/sse.ts';
import { takeStreamPlace } from '../api/stream-places.ts';
import { errors } from '../errors.ts';
import { EventsQuery, StreamHeaders, StreamQuery, TelemetryEnvelope } from './schema.ts';
import type { TelemetryService } from './service.ts';

const tags = ['browsers'];
const Id = Type.Object({ id: Type.String() });
const Token = Type.Object({ token: Type.String() });

/** The lines are JSON already, and are sent as they are. */
const serializerCompiler = () => (data: unknown) => JSON.stringify(data);

interface TelemetryRoom {
  telemetry: Pick<TelemetryService, 'follow' | 'page'>;
  /** Finds sessions of a project. */
  sessions: { idOf(projectId: string, idOrName: string, includeDeleted: boolean): Promise<string> };
  /** Reads the token of a session's base_url. */
  addresses: { admit(token: string | undefined, purpose: 'base'): Promise<{ sessionId: string }> };
}

/** What a session did: as it happens, and afterwards. */
export function telemetryRoutes({ telemetry, sessions, addresses }: TelemetryRoom): FastifyPluginAsyncTypebox {
  /** Reading does not hold the session: it neither keeps it awake nor from its timeout. */
  async function stream(request: FastifyRequest, reply: FastifyReply, sessionId: string): Promise<void> {
    takeStreamPlace(sessionId, reply);
    const over = new AbortController();
    const lines = telemetry.follow(sessionId, startOf(request), over.signal);
    if (!lines) throw errors.session_not_found({ session: sessionId });
    const events = eventStream(reply, commentHeartbeat);
    if (events.closed.aborted) over.abort();
    events.closed.addEventListener('abort', () => over.abort(), { once: true });
    try {
      for await (const { seq, line } of lines) if (!(await events.sendJson(line, seq))) break;
    } finally {
      events.end();
    }
  }

  return async (app) => {
    app.get(
      '/browsers/:id/telemetry/stream',
      {
        serializerCompiler,
        schema: {
          operationId: 'streamBrowserTelemetry',
          summary: 'Follow the events of a session. Ends with the session. Sends nothing while nothing is captured.',
          tags,
          params: Id,
          headers: StreamHeaders,
          querystring: StreamQuery,
          response: {
            200: eventsOf(
              TelemetryEnvelope,
              `Events; the id of each is its \`seq\`. A comment after ${heartbeatAfter} of silence.`,
            ),
            ...refusals('session_not_found', 'node_unreachable', 'too_many_streams'),
          },
        },
      },
      async (request, reply) =>
        stream(request, reply, await sessions.idOf(projectOf(request).id, request.params.id, false)),
    );

    // The same for clients that use the session's base_url.
    app.get(
      '/browser/kernel/:token/telemetry/stream',
      {
        config: { access: 'token' },
        schema: { params: Token, headers: StreamHeaders, querystring: StreamQuery },
      },
      async (request, reply) => stream(request, reply, (await addresses.admit(request.params.token, 'base')).sessionId),
    );

    app.get(
      '/browsers/:id/telemetry/events',
      {
        serializerCompiler,
        schema: {
          operationId: 'readBrowserTelemetryEvents',
          summary: 'Read the events of a session, while it runs and after its end. New events appear within a second.',
          tags,
          params: Id,
          querystring: EventsQuery,
          response: {
            200: {
              ...Type.Unsafe<never>(Type.Array(TelemetryEnvelope)),
              description: 'A page of events.',
              headers: {
                'X-Has-More': Type.Boolean({ description: 'Whether there is another page.' }),
                'X-Next-Offset': Type.Integer({ description: 'The `offset` of the next page; 0 when there is none.' }),
              },
            },
            ...refusals('session_not_found', 'memory_full'),
          },
        },
      },
      async (request, reply) => {
        const sessionId = await sessions.idOf(projectOf(request).id, request.params.id, true);
        return withRoom(request, reply, async (room) => {
          const { lines, next } = await telemetry.page(sessionId, request.query, room);
          void reply
            .headers({ 'X-Has-More': String(next !== undefined), 'X-Next-Offset': String(next ?? 0) })
            .type('application/json; charset=utf-8')
            .send(`[${lines.join(',')}]` as never);
        });
      },
    );
  };
}

/** Where a stream begins. A reader that connects again names the last event that it has. */
function startOf({ headers, query }: FastifyRequest): { after: number } | 'oldest' | 'now' {
  const last = headers['last-event-id'];
  if (last !== undefined && last !== '') {
    if (typeof last !== 'string' || !/^\d{1,15}$/.test(last))
      throw errors.invalid_input({
        detail: 'header Last-Event-ID must be the id of an event of this stream: a whole number.',
      });
    return { after: Number(last) };
  }
  const { replay } = query as { replay?: string };
  if (replay !== undefined && replay !== 'all')
    throw errors.invalid_input({ detail: "query parameter replay must be 'all', or be left out." });
  return replay === 'all' ? 'oldest' : 'now';
}
