import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { refusals } from '../api/schema.ts';
import { errors } from '../errors.ts';
import { CreatedApiKey } from '../org/schema.ts';
import type { ConsoleLinks } from './links.ts';
import { SignIn } from './schema.ts';
import type { consoleWeb } from './web.ts';

const config = { access: 'public' } as const;

interface ConsoleRoom {
  web: ReturnType<typeof consoleWeb>;
  links: ConsoleLinks;
}

/** The pages are not part of the API reference. Signing in with a link is, since programs may use it too. */
export function consoleRoutes(room: { console: ConsoleRoom }): FastifyPluginAsyncTypebox {
  const { web, links } = room.console;

  async function page(reply: FastifyReply) {
    const found = await web.page();
    if (!found)
      throw errors.not_found({ detail: 'This build of the service has no console. `npm run build` makes it.' });
    return reply.headers(found.headers).send(found.body);
  }

  return async (app) => {
    app.get('/console', { config }, async (_request, reply) => page(reply));
    // Every address below is the page, which reads its own address. A program that wants JSON hears that nothing is here.
    app.get('/console/*', { config }, async (request, reply) => {
      if (!/\btext\/html\b|\*\/\*/.test(request.headers.accept ?? '*/*'))
        throw errors.not_found({
          detail: 'The console is a page for browsers. /docs lists what programs can ask for.',
        });
      return page(reply);
    });

    app.get(
      '/console/assets/*',
      { config, schema: { params: Type.Object({ '*': Type.String() }) } },
      async (request, reply) => {
        const found = await web.asset(request.params['*'], request.headers['accept-encoding']);
        if (!found) throw errors.not_found({ detail: 'The console has no such file. Reload the page.' });
        return reply.headers(found.headers).send(found.body);
      },
    );

    app.post(
      '/console/sign_in',
      {
        config,
        schema: {
          operationId: 'signInToConsole',
          summary:
            'Exchange the code of a sign-in link (`npx corral console`) for an API key that ends after a day. A code works once.',
          tags: ['console'],
          security: [],
          body: SignIn,
          response: {
            201: CreatedApiKey,
            ...refusals('unauthorized', 'too_many_bad_keys', 'api_key_limit_reached', 'store_unavailable'),
          },
        },
      },
      async (request, reply) => {
        const key = await links.exchange(request.body.code, request.clientIp);
        request.caller = { keyId: key.id, keyName: key.name, projectId: key.project_id }; // for the audit log
        return reply.code(201).header('Cache-Control', 'no-store').send(key);
      },
    );
  };
}
