import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { errors } from '../../errors.ts';
import { hostedAsset, hostedPage, pageHeaders } from './assets.ts';

const config = { access: 'public' } as const;

/** What pages of other origins may send: embedded logins call the service from where they are. */
const preflight = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type',
  'Access-Control-Max-Age': '600',
};

/** The calls that invitees make, with their methods. */
const inviteeCalls = [
  ['/auth/connections/:id', 'GET'],
  ['/auth/connections/:id/events', 'GET'],
  ['/auth/connections/:id/submit', 'POST'],
  ['/auth/connections/:id/cancel', 'POST'],
  ['/auth/connections/:id/exchange', 'POST'],
] as const;

/** The hosted page. Not part of the reference: it is for people, and only its address is part of the interface. */
export function hostedLoginRoutes(): FastifyPluginAsyncTypebox {
  return async (app) => {
    // No code is looked at here. Programs that preview links only get the page, and use no code up.
    app.get('/auth/hosted/:id', { config }, async (_request, reply) =>
      reply.headers(pageHeaders).type('text/html; charset=utf-8').send(hostedPage),
    );

    app.get(
      '/auth/hosted/assets/:name',
      { config, schema: { params: Type.Object({ name: Type.String() }) } },
      async (request, reply) => {
        const asset = hostedAsset(request.params.name);
        if (!asset) throw errors.not_found({ detail: 'The login page has no such file.' });
        return reply.header('Cache-Control', 'no-cache').type(asset.type).send(asset.body);
      },
    );

    for (const [path, method] of inviteeCalls)
      app.options(path, { config }, async (_request, reply) =>
        reply
          .headers({ ...preflight, 'Access-Control-Allow-Methods': method })
          .code(204)
          .send(),
      );
  };
}
