import { Readable } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { projectOf } from '../../api/caller.ts';
import { refusals } from '../../api/schema.ts';
import { harCategories, harDocument } from './har.ts';
import type { EventSource } from './source.ts';
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
            ...refusals('session_not_found'),
          },
        },
      },
      async (request, reply) => {
        const sessionId = await sessions.idOf(projectOf(request).id, request.params.id, true);
        const document = harDocument(telemetry.read(sessionId, { categories: harCategories }), { version, sessionId });
        return send(reply, Readable.from(document, { objectMode: false }), 'application/json', `${sessionId}.har`);
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
            ...refusals('session_not_found'),
          },
        },
      },
      async (request, reply) => {
        const sessionId = await sessions.idOf(projectOf(request).id, request.params.id, true);
        const zip = traceZip(telemetry, { sessionId, startedAt: Date.now() * 1000 });
        return send(reply, zip, 'application/zip', `${sessionId}.trace.zip`);
      },
    );
  };
}

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
