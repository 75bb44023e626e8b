import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf, projectOf } from '../../api/caller.ts';
import { hungUp } from '../../api/hung-up.ts';
import { countedParts, withRoom } from '../../api/large.ts';
import { limited, type RateLimit } from '../../sessions/rate-limit.ts';
import type { Who } from './new-session.ts';
import { CreateBody, ListQuery, PdfBody, Query, ReleaseBody, ScrapeBody, ScreenshotBody } from './schema.ts';
import type { SteelService } from './service.ts';

const config = { access: 'project', keyIn: { header: 'steel-api-key', query: 'apiKey' } } as const;
/** Not part of the reference: it is the interface of another service. docs/from-steel.md lists the differences. */
const hidden = { hide: true, tags: ['browsers'], querystring: Query };
const ofSession = { ...hidden, params: Type.Object({ id: Type.String({ maxLength: 255 }) }) };
/** The context of a session may have many cookies. A larger body would take long to parse. */
const bodyLimit = 8 * 1024 * 1024;

const json = (reply: FastifyReply, parts: Buffer[]) =>
  void reply.type('application/json; charset=utf-8').send(countedParts(reply, parts));

/** The requests of a service for sessions, in its own spelling. */
export function steelRoutes({ steel, limit }: { steel: SteelService; limit: RateLimit }): FastifyPluginAsyncTypebox {
  const clientOf = (request: FastifyRequest, reply: FastifyReply): Who => ({
    projectId: projectOf(request).id,
    keyId: callerOf(request).keyId,
    hungUp: hungUp(reply),
  });

  return async (app) => {
    app.post(
      '/v1/sessions',
      {
        config,
        bodyLimit,
        ...limited(limit),
        schema: { ...hidden, body: CreateBody },
      },
      (request, reply) => steel.create(clientOf(request, reply), request.body),
    );
    app.get('/v1/sessions', { config, schema: { ...hidden, querystring: ListQuery } }, (request, reply) =>
      steel.list(clientOf(request, reply), request.query),
    );
    app.post('/v1/sessions/release', { config, schema: { ...hidden, body: ReleaseBody } }, (request, reply) =>
      steel.releaseAll(clientOf(request, reply)),
    );
    app.get('/v1/sessions/:id', { config, schema: ofSession }, (request, reply) =>
      steel.get(clientOf(request, reply), request.params.id),
    );
    app.post('/v1/sessions/:id/release', { config, schema: { ...ofSession, body: ReleaseBody } }, (request, reply) =>
      steel.release(clientOf(request, reply), request.params.id),
    );
    app.get('/v1/sessions/:id/context', { config, schema: ofSession }, (request, reply) =>
      steel.context(clientOf(request, reply), request.params.id),
    );
    app.get('/v1/sessions/:id/live-details', { config, schema: ofSession }, (request, reply) =>
      steel.liveDetails(clientOf(request, reply), request.params.id),
    );

    app.post('/v1/scrape', { config, schema: { ...hidden, body: ScrapeBody } }, (request, reply) =>
      withRoom(request, reply, async (room) =>
        json(reply, await steel.scrape({ ...clientOf(request, reply), room }, request.body)),
      ),
    );
    app.post('/v1/screenshot', { config, schema: { ...hidden, body: ScreenshotBody } }, (request, reply) =>
      withRoom(request, reply, async (room) =>
        json(reply, await steel.screenshot({ ...clientOf(request, reply), room }, request.body)),
      ),
    );
    app.post('/v1/pdf', { config, schema: { ...hidden, body: PdfBody } }, (request, reply) =>
      withRoom(request, reply, async (room) =>
        json(reply, await steel.pdf({ ...clientOf(request, reply), room }, request.body)),
      ),
    );
  };
}
