import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf, projectOf } from '../../api/caller.ts';
import { hungUp } from '../../api/hung-up.ts';
import { countedParts, withRoom } from '../../api/large.ts';
import { base64Parts } from '../../lib/base64.ts';
import { asJsonVersion } from '../../chromium/guest/devtools.ts';
import { errors } from '../../errors.ts';
import { ContentBody, FunctionBody, PdfBody, Query, ScrapeBody, ScreenshotBody } from './schema.ts';
import type { Asking, BrowserlessService } from './service.ts';

const config = { access: 'project', keyIn: { query: 'token' } } as const;
const bodyLimit = 6 * 1024 * 1024;
/** Results are untrusted: a browser that shows one must not let it act on the origin of the service. */
const guarded = {
  'Content-Security-Policy': 'sandbox',
  'Cache-Control': 'no-store',
};

/** Fields of the other service that this one does not support. They are refused by name, since they have an effect there. */
const missing = [
  'authenticate',
  'blockAds',
  'blockConsentModals',
  'debugOpts',
  'launch',
  'proxy',
  'rejectRequestPattern',
  'requestInterceptors',
  'stealthMode',
];

/** The requests of a service for single pages, in its own spelling. docs/from-browserless.md lists the differences. */
export function browserlessRoutes({
  browserless,
  publicUrl,
}: {
  browserless: BrowserlessService;
  publicUrl: () => string;
}): FastifyPluginAsyncTypebox {
  const asking = (request: FastifyRequest, reply: FastifyReply): Asking => ({
    projectId: projectOf(request).id,
    keyId: callerOf(request).keyId,
    query: request.query as Query,
    hungUp: hungUp(reply),
  });
  const options = <B>(body: B) => ({
    config,
    bodyLimit,
    preValidation: async (request: FastifyRequest) => refuseMissing(request),
    schema: { hide: true, querystring: Query, body },
  });

  return async (app) => {
    app.addContentTypeParser(['application/javascript', 'text/javascript'], { parseAs: 'string' }, (_, code, done) =>
      done(null, { code }),
    );

    app.post('/content', options(ContentBody), (request, reply) =>
      withRoom(request, reply, async (room) => {
        const html = await browserless.content({ ...asking(request, reply), room }, request.body);
        void reply.headers(guarded).type('text/html; charset=utf-8').send(html);
      }),
    );

    app.post('/screenshot', options(ScreenshotBody), (request, reply) =>
      withRoom(request, reply, async (room) => {
        const { data, type } = await browserless.screenshot({ ...asking(request, reply), room }, request.body);
        void reply.headers(guarded);
        if (request.body.options?.encoding !== 'base64') return void reply.type(type).send(data);
        const parts: Buffer[] = [];
        for await (const part of base64Parts(data)) parts.push(part);
        void reply.type('text/plain').send(countedParts(reply, parts));
      }),
    );

    app.post('/pdf', options(PdfBody), (request, reply) =>
      withRoom(request, reply, async (room) => {
        const data = await browserless.pdf({ ...asking(request, reply), room }, request.body);
        void reply.headers(guarded).type('application/pdf').send(data);
      }),
    );

    app.post('/scrape', options(ScrapeBody), (request, reply) =>
      withRoom(request, reply, async (room) => {
        const parts = await browserless.scrape({ ...asking(request, reply), room }, request.body);
        void reply.headers(guarded).type('application/json; charset=utf-8').send(countedParts(reply, parts));
      }),
    );

    app.post('/function', options(FunctionBody), async (request, reply) => {
      const { type, data } = await browserless.run(asking(request, reply), request.body);
      return reply.headers(guarded).type(type).send(data);
    });

    app.get('/json/version', { config, schema: { hide: true, querystring: Query } }, async (request, reply) => {
      const version = await browserless.version(asking(request, reply));
      // Clients that start with http continue with this address, so it contains the caller's own key.
      const { token } = request.query;
      const query = token === undefined ? '' : `?${new URLSearchParams({ token }).toString()}`;
      return reply.headers(guarded).send(asJsonVersion(version, `${publicUrl().replace(/^http/, 'ws')}/${query}`));
    });
  };
}

function refuseMissing({ query, body }: FastifyRequest): void {
  for (const given of [query, body])
    for (const name of missing)
      if (typeof given === 'object' && given !== null && Object.hasOwn(given, name))
        throw errors.feature_not_available({ field: name });
}
