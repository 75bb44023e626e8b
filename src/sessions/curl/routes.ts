import { Readable } from 'node:stream';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { countedParts } from '../../api/large.ts';
import { refusals, refusedAs } from '../../api/schema.ts';
import type { Addresses } from '../addresses.ts';
import { ofBrowser } from '../refusals.ts';
import { heldSessions } from '../held-routes.ts';
import type { SessionService } from '../service.ts';
import { handedOn, passedBack, refuseToBeLoaded } from './headers.ts';
import { CurlRequest, CurlResult, CurlTransportError, methods, RawQuery } from './schema.ts';
import { curl, curlRaw } from './service.ts';

const Id = Type.Object({ id: Type.String() });
const Token = Type.Object({ token: Type.String() });
/** A larger one would take long to parse. In raw form it may have 64 MiB. */
const bodyLimit = 8 * 1024 * 1024;
const config = { access: 'token' } as const;

/** Requests by the session's browser: as JSON, and, below `base_url`, in raw form. */
export function curlRoutes({
  sessions,
  addresses,
}: {
  sessions: SessionService;
  addresses: Addresses;
}): FastifyPluginAsyncTypebox {
  const { using, sendBytes } = heldSessions({ sessions, addresses });
  async function answerInParts(request: FastifyRequest<{ Body: CurlRequest }>, reply: FastifyReply) {
    const parts = await using(request, reply, ({ held, gone }) => curl(held, request.body, gone));
    return reply.type('application/json; charset=utf-8').send(countedParts(reply, parts));
  }

  return async (app) => {
    app.post(
      '/browsers/:id/curl',
      {
        bodyLimit,
        schema: {
          operationId: 'browserCurl',
          summary: 'Send an HTTP request through the browser: its cookies, proxy, TLS and user agent.',
          tags: ['browsers'],
          params: Id,
          body: CurlRequest,
          response: {
            200: CurlResult,
            ...refusals(...ofBrowser, 'memory_full'),
            ...refusedAs(CurlTransportError, 'transport_failed', 'node_unreachable'),
          },
        },
      },
      answerInParts,
    );

    // The same request for clients that use the session's base_url.
    app.post(
      '/browser/kernel/:token/curl',
      { config, bodyLimit, schema: { params: Token, body: CurlRequest } },
      answerInParts,
    );

    await app.register(raw);
  };

  /** In a scope of its own: bodies of any type are not parsed but forwarded. */
  async function raw(app: Parameters<FastifyPluginAsyncTypebox>[0]) {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    app.route({
      method: [...methods],
      url: '/browser/kernel/:token/curl/raw',
      exposeHeadRoute: false,
      config: { ...config, body: 'stream' },
      bodyLimit: 2 ** 31,
      schema: { params: Token, querystring: RawQuery },
      async handler(request, reply) {
        refuseToBeLoaded(request.headers);
        return sendBytes(request, reply, async ({ held, gone }) => {
          const { url, timeout_ms: timeoutMs } = request.query;
          const body = request.body instanceof Readable ? request.body : Readable.from([]);
          const asked = { url, method: request.method, headers: handedOn(request.headers), body, timeoutMs };
          const response = await curlRaw(held, asked, gone);
          void reply.code(response.status).headers(passedBack(response.headers, request.headers));
          void reply.header('x-should-retry', 'false'); // an error status of the site is an answer, not a failure of the service
          reply.raw.once('pipe', () => reply.raw.flushHeaders());
          return { content: response.body };
        });
      },
    });
  }
}
