import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { projectOf } from '../api/caller.ts';
import { bytesAs, empty, refusals } from '../api/schema.ts';
import { ofSession } from './refusals.ts';
import type { SessionService } from './service.ts';

export function thumbnailRoutes({
  sessions,
}: {
  sessions: Pick<SessionService, 'thumbnail'>;
}): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/browsers/:id_or_name/thumbnail',
      {
        schema: {
          operationId: 'getBrowserThumbnail',
          summary:
            'Get a small picture of the active page, at most some seconds old. It does not wake the session or reset its idle timeout.',
          tags: ['browsers'],
          params: Type.Object({ id_or_name: Type.String() }),
          response: {
            200: bytesAs(
              'image/jpeg',
              'A JPEG of at most 320 by 240 pixels. `Last-Modified` is the time of the picture.',
            ),
            204: empty('The session has no picture.'),
            ...refusals(...ofSession),
          },
        },
      },
      async (request, reply) => {
        const seen = await sessions.thumbnail(projectOf(request).id, request.params.id_or_name);
        if (!seen) return reply.code(204).send(null);
        return reply
          .headers({ 'Last-Modified': seen.takenAt.toUTCString(), 'Cache-Control': 'private, no-cache' })
          .type('image/jpeg')
          .send(seen.jpeg);
      },
    );
  };
}
