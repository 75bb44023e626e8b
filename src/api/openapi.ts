import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { answersOf } from './answers.ts';

type Json = Record<string, unknown>;

/** The reference for programs, `/openapi.json`, is generated from the routes. docs/ has the page for people. */
export async function registerOpenApi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Corral',
        version: '1',
        description:
          'Real Chromium over HTTP, on your own machine. Every error has a `code` and a `message` with the remedy.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      components: { securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } } },
      security: [{ bearerAuth: [] }],
    },
    hideUntagged: true,
    transform: ({ schema, url, route }) => ({ schema: { ...schema, response: answersOf(route) }, url }),
    transformObject: (document) =>
      ('openapiObject' in document ? gatherNamed(document.openapiObject as Json) : {}) as never,
  });
  app.get('/openapi.json', { config: { access: 'public' }, schema: { hide: true } }, async () => app.swagger());
}

/** Moves every shape with an `x-name` under `components.schemas` and leaves a reference in its place. */
function gatherNamed(document: Json): Json {
  const schemas: Json = {};
  const gather = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(gather);
    if (typeof node !== 'object' || node === null) return node;
    const entries = Object.entries(node).map(([key, value]) => [key, gather(value)] as const);
    const { 'x-name': name, ...shape } = Object.fromEntries(entries);
    if (typeof name !== 'string') return shape;
    schemas[name] = shape;
    return { $ref: `#/components/schemas/${name}` };
  };
  const gathered = gather(document) as Json;
  const components = (gathered['components'] ?? {}) as Json;
  const sorted = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => a.localeCompare(b)));
  return { ...gathered, components: { ...components, schemas: sorted } };
}
