import { SerializerSelector } from '@fastify/fast-json-stringify-compiler';
import type { RouteOptions } from 'fastify';
import type { TSchema } from 'typebox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Access } from './api/caller.ts';
import { refusedWith } from './api/schema.ts';
import { validatorCompiler } from './api/validation.ts';
import { statusOf, type ErrorCode } from './errors.ts';
import { mayBeElsewhere } from './lib/forwarded-routes.ts';
import { referenceServer } from './reference.ts';

/** What the server answers by itself, before a route is asked. */
const byAccess: Record<Extract<Access, 'public' | 'token' | 'org' | 'project'>, ErrorCode[]> = {
  public: ['bad_request', 'internal'],
  token: ['bad_request', 'internal', 'unauthorized', 'forbidden', 'store_unavailable'],
  org: ['bad_request', 'internal', 'unauthorized', 'forbidden', 'too_many_bad_keys', 'store_unavailable'],
  project: [
    'bad_request',
    'internal',
    'unauthorized',
    'forbidden',
    'too_many_bad_keys',
    'store_unavailable',
    'project_not_found',
  ],
};

interface Answer {
  content?: Record<string, { schema: object }>;
}

interface Operation {
  operationId: string;
  responses: Record<string, { description: string; content?: object }>;
}

const routes: RouteOptions[] = [];
let operations: Operation[];
let server: Awaited<ReturnType<typeof referenceServer>>;

beforeAll(async () => {
  server = await referenceServer();
  const { app } = server;
  app.addHook('onRoute', (route) => void (route.schema?.operationId && routes.push(route)));
  for (const route of server.routes) await app.register(route);
  await app.ready();
  const { paths } = app.swagger() as unknown as { paths: Record<string, Record<string, Operation>> };
  operations = Object.values(paths).flatMap((methods) => Object.values(methods));
});
afterAll(() => server.app.close());

const operation = (id: unknown) => operations.find(({ operationId }) => operationId === id)!;
const documents = ({ responses }: Operation, code: ErrorCode) =>
  (responses[statusOf(code)]?.description ?? '').includes(`\`${code}\``);

describe('the schemas', () => {
  test('of requests compile', () => {
    let count = 0;
    const compiler = validatorCompiler();
    for (const { schema, validatorCompiler: own, url } of routes)
      for (const httpPart of ['body', 'querystring', 'params', 'headers'] as const) {
        const part = schema?.[httpPart] as TSchema | undefined;
        if (!part || own) continue;
        expect(() => compiler({ schema: part, httpPart, method: '', url })({}), `${url} ${httpPart}`).not.toThrow();
        count++;
      }
    expect(count).toBeGreaterThan(100);
  });

  test('of answers compile', () => {
    const compile = SerializerSelector()({}, {});
    let count = 0;
    for (const { schema, url } of routes)
      for (const [status, answer] of Object.entries((schema?.response ?? {}) as Record<string, Answer>)) {
        const kinds = answer.content ? Object.values(answer.content).map((kind) => kind.schema) : [answer];
        for (const kind of kinds) {
          const route = { schema: kind, method: '', url, httpStatus: status };
          expect(() => compile(route), `${url} ${status}`).not.toThrow();
          count++;
        }
      }
    expect(count).toBeGreaterThan(100);
  });
});

describe('the reference', () => {
  test('every operation names the codes of its access rule and those of its own list', () => {
    expect(routes.length).toBeGreaterThan(90);
    const missing = routes.flatMap(({ config, schema }) => {
      const access = (config?.access ?? 'project') as keyof typeof byAccess;
      const codes = [...byAccess[access], ...refusedWith(schema?.response)];
      return codes
        .filter((code) => !documents(operation(schema?.operationId), code))
        .map((code) => `${schema?.operationId} lacks ${code}`);
    });
    expect(missing).toEqual([]);
  });

  test('every operation that another node may have to answer says that the node may be out of reach', () => {
    const elsewhere = routes.filter(({ url, method }) => [method].flat().some((one) => mayBeElsewhere(one, url)));
    expect(elsewhere.length).toBeGreaterThan(50);
    for (const { schema } of elsewhere)
      expect(documents(operation(schema?.operationId), 'node_unreachable'), schema?.operationId).toBe(true);
  });

  test('every operation with a body says that it may not arrive', () => {
    const reading = routes.filter(({ schema }) => schema?.body);
    expect(reading.length).toBeGreaterThan(50);
    for (const { schema } of reading)
      expect(documents(operation(schema?.operationId), 'body_timeout'), schema?.operationId).toBe(true);
  });

  test('every operation with a JSON body or a query says that it may not fit', () => {
    const reading = routes.filter(
      ({ schema }) => schema?.querystring ?? (schema?.body && !Object.hasOwn(schema.body, 'content')),
    );
    expect(reading.length).toBeGreaterThan(50);
    for (const { schema } of reading)
      expect(documents(operation(schema?.operationId), 'invalid_input'), schema?.operationId).toBe(true);
  });

  test('a refusal with a shape of its own keeps it', () => {
    const refused = operation('browserCurl').responses['502'];
    expect(JSON.stringify(refused?.content)).toContain('BrowserCurlTransportError');
    expect(refused?.description).toContain('`node_unreachable`');
    expect(operation('ready').responses['503']?.description).not.toContain('`');
  });
});
