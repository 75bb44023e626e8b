import { Readable } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { projectOf } from '../../api/caller.ts';
import { hungUp } from '../../api/hung-up.ts';
import { memoryOf } from '../../api/large.ts';
import { refusals } from '../../api/schema.ts';
import { memoryShare, type UnreadShare } from '../../lib/memory-share.ts';
import { harCategories, harDocument } from './har.ts';
import type { EventSource, Keep } from './source.ts';
import { traceZip } from './trace.ts';

const tags = ['browsers'];
const Id = Type.Object({ id: Type.String() });
const file = (description: string, type: string) => ({
  description,
  content: { [type]: { schema: { type: 'string', format: 'binary' } } },
});

/** What a session did, as files that other tools open. Corral extension (not part of the original API). */
export function exportRoutes({
  telemetry,
  sessions,
  version,
}: {
  telemetry: EventSource;
  /** Finds sessions of a project. */
  sessions: { idOf(projectId: string, idOrName: string, includeDeleted: boolean): Promise<string> };
  version: string;
}): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/browsers/:id/telemetry/har',
      {
        schema: {
          operationId: 'exportBrowserTelemetryHar',
          summary: 'Download the requests of a session as HAR 1.2, which DevTools imports. Needs the category network.',
          tags,
          params: Id,
          response: {
            200: file('The captured requests, without websockets.', 'application/json'),
            ...refusals('session_not_found', 'memory_full'),
          },
        },
      },
      async (request, reply) => {
        const sessionId = await sessions.idOf(projectOf(request).id, request.params.id, true);
        const { keep, room } = await counted(request, reply);
        const events = telemetry.read(sessionId, { categories: harCategories });
        const document = harDocument(events, { version, sessionId }, keep);
        return send(reply, taken(document, room), 'application/json', `${sessionId}.har`);
      },
    );

    app.get(
      '/browsers/:id/telemetry/trace',
      {
        schema: {
          operationId: 'exportBrowserTelemetryTrace',
          summary:
            'Download a session as a Playwright trace, for `playwright show-trace`; with pictures if they were captured.',
          tags,
          params: Id,
          response: {
            200: file('A zip with the captured events.', 'application/zip'),
            ...refusals('session_not_found', 'memory_full'),
          },
        },
      },
      async (request, reply) => {
        const sessionId = await sessions.idOf(projectOf(request).id, request.params.id, true);
        const { keep, room } = await counted(request, reply);
        const zip = traceZip(telemetry, { sessionId, startedAt: Date.now() * 1000 }, keep);
        return send(reply, taken(zip, room), 'application/zip', `${sessionId}.trace.zip`);
      },
    );
  };
}

/**
 * What a download keeps in memory counts until it is read or closed. Resolves when there is room for its first part. A client that stops
 * reading while others wait for room is disconnected.
 */
async function counted(request: FastifyRequest, reply: FastifyReply): Promise<{ keep: Keep; room: UnreadShare }> {
  const room = memoryShare(memoryOf(request), () => reply.raw.destroy(), hungUp(reply));
  reply.raw.once('close', () => room.close());
  let kept = 0;
  const keep = async (bytes: number) => {
    if (PART + bytes <= kept) return;
    const more = Math.ceil((PART + bytes - kept) / PART) * PART;
    kept += more;
    await room.add(more);
  };
  await keep(0);
  return { keep, room };
}

function taken(content: AsyncIterable<Buffer | string>, room: UnreadShare): Readable {
  return Readable.from(
    (async function* () {
      for await (const piece of content) {
        yield piece;
        room.moved(piece.length);
      }
    })(),
    { objectMode: false },
  );
}

/** The chunk of the archive that is read, and what waits in the streams. What is kept beside it is counted in steps of this size. */
const PART = 2 ** 20;

/** An error amid the file breaks the connection, so that no client takes a part of it for the whole. */
function send(reply: FastifyReply, content: Readable, type: string, name: string): never {
  return reply
    .headers({
      'Content-Type': type,
      'Content-Disposition': `attachment; filename="${name}"`,
      'Cache-Control': 'no-store',
    })
    .send(content) as never;
}
