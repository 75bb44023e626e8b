import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../../errors.ts';
import type { CodeSourceService } from './service.ts';

/** A mail with a code is small, also with its headers. */
const bodyLimit = 64 * 1024;
/** Tokens have 32 characters. Longer ones are not hashed. */
const longestToken = 64;

/**
 * The addresses that programs post codes to. Not part of the reference: the token in the address is all that a program needs, and the
 * answer says nothing about logins.
 */
export function codeSourceRoutes({ codeSources }: { codeSources: CodeSourceService }): FastifyPluginAsyncTypebox {
  const sources = new WeakMap<FastifyRequest, string>();
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
    app.post(
      '/one-time-codes/:token',
      {
        bodyLimit,
        config: { access: 'public' },
        schema: { hide: true, params: Type.Object({ token: Type.String() }) },
        // Before the body is read: an unknown address gets the same answer for any.
        async onRequest(request) {
          const { token } = request.params;
          const source = token.length > longestToken ? undefined : await codeSources.sourceOf(token);
          if (source === undefined) throw errors.not_found({ detail: 'No source of one-time codes has this address.' });
          sources.set(request, source);
        },
      },
      async (request, reply) => {
        const body = typeof request.body === 'string' ? request.body : '';
        await codeSources.receive(sources.get(request)!, request.headers['content-type'] ?? '', body);
        return reply.code(204).send();
      },
    );
  };
}
