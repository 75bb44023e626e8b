import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { docsAsset, docsHeaders } from './assets.ts';
import { pageReference } from './reference.ts';

const page = readFileSync(join(import.meta.dirname, 'page.html'), 'utf8');
const options = { config: { access: 'public' as const }, schema: { hide: true } };
const Name = Type.Object({ name: Type.String({ maxLength: 100 }) });

/** `/docs` for people: the reference that `/openapi.json` is for programs, and the guides. */
export function docsRoutes(): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/docs', options, async (_, reply) =>
      reply.headers(docsHeaders).type('text/html; charset=utf-8').send(page),
    );

    app.get('/docs/reference.json', options, async ({ protocol, host }) =>
      pageReference(app.swagger(), `${protocol}://${plainHost(host)}`),
    );

    app.get(
      '/docs/assets/:name',
      { ...options, schema: { hide: true, params: Name } },
      async ({ params, headers }, reply) => {
        const asset = await docsAsset(params.name);
        if (!asset) throw errors.not_found({ detail: `/docs has no file '${params.name}'.` });
        const takesBrotli = /\bbr\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(headers['accept-encoding'] ?? '');
        if (takesBrotli) void reply.header('Content-Encoding', 'br');
        return reply
          .headers({ ...docsHeaders, Vary: 'Accept-Encoding', 'Cache-Control': 'public, max-age=3600' })
          .type(asset.type)
          .send(takesBrotli ? asset.compressed : asset.plain);
      },
    );

    app.get(
      '/docs/guides/pictures/:name',
      { ...options, schema: { hide: true, params: Name } },
      async ({ params }, reply) => {
        const { picture } = await import('./guides.ts');
        const found = await picture(params.name);
        if (!found) throw errors.not_found({ detail: `The guides have no picture '${params.name}'.` });
        return reply
          .headers({ ...docsHeaders, 'Cache-Control': 'public, max-age=3600' })
          .type('image/png')
          .send(found);
      },
    );

    for (const path of ['/docs/guides', '/docs/guides/:name'])
      app.get<{ Params: { name?: string } }>(path, options, async ({ params }, reply) => {
        const { guide } = await import('./guides.ts'); // the parser of Markdown is loaded for the first reader
        const text = await guide(params.name ?? 'index');
        if (!text) throw errors.not_found({ detail: `There is no guide '${params.name}'. /docs/guides lists them.` });
        return reply.headers(docsHeaders).type('text/html; charset=utf-8').send(text);
      });
  };
}

/** The host that the reader used, for samples that are pasted into a shell. */
const plainHost = (host: string) => (/^[\w.-]+(:\d+)?$|^\[[\da-f:]+\](:\d+)?$/i.test(host) ? host : '127.0.0.1');
