import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Registry } from 'prom-client';
import { errors } from '../errors.ts';
import { callerOf } from './caller.ts';
import { refusals } from './schema.ts';

/** One thing that has to work, or had better. `undefined` says all is well; otherwise a sentence says what is not. */
export interface Probe {
  name: string;
  /** Without it nothing works and we are not ready; otherwise we are ready but degraded. */
  required: boolean;
  check(): Promise<string | undefined>;
}

const Part = Type.Object({ name: Type.String(), ok: Type.Boolean(), detail: Type.Optional(Type.String()) });
const Readiness = Type.Object({
  status: Type.String({
    description: 'ready, degraded (it works, less well: `parts` says what and why) or unavailable',
  }),
  version: Type.String(),
  parts: Type.Array(Part),
});

export function statusRoutes({
  probes,
  metrics,
  version,
}: {
  probes: Probe[];
  metrics: Registry;
  version: string;
}): FastifyPluginAsyncTypebox {
  const tags = ['status'];
  return async (app) => {
    app.get(
      '/health',
      {
        config: { access: 'public' },
        schema: {
          operationId: 'health',
          summary: 'The process answers.',
          tags,
          security: [],
          response: { 200: Type.Object({ status: Type.Literal('ok') }) },
        },
      },
      async () => ({ status: 'ok' as const }),
    );

    app.get(
      '/ready',
      {
        config: { access: 'public' },
        schema: {
          operationId: 'ready',
          summary: 'The database answers and a browser can be launched; what is degraded, and why.',
          tags,
          security: [],
          response: { 200: Readiness, 503: Readiness },
        },
      },
      async (_request, reply) => {
        const parts = await Promise.all(
          probes.map(async ({ name, required, check }) => {
            const detail = await check().catch((error: Error) => error.message);
            return { name, required, ok: detail === undefined, ...(detail === undefined ? {} : { detail }) };
          }),
        );
        const unavailable = parts.some(({ ok, required }) => !ok && required);
        const status = unavailable ? 'unavailable' : parts.every(({ ok }) => ok) ? 'ready' : 'degraded';
        return reply.code(unavailable ? 503 : 200).send({ status, version, parts });
      },
    );

    app.get(
      '/metrics',
      {
        config: { access: 'org' },
        schema: {
          operationId: 'metrics',
          summary: 'Figures for Prometheus. Takes an organisation-wide key.',
          tags,
          response: {
            200: { description: 'The figures.', content: { 'text/plain': { schema: Type.String() } } },
            ...refusals(401, 403),
          },
        },
      },
      async (request, reply) => {
        if (callerOf(request).projectId !== null)
          throw errors.forbidden({ detail: 'This key is for one project; metrics are about the whole service.' });
        return reply.type(metrics.contentType).send(await metrics.metrics());
      },
    );
  };
}
