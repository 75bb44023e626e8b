import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type, type Static } from 'typebox';
import type { Registry } from 'prom-client';
import { errors } from '../errors.ts';
import { callerOf } from './caller.ts';

/** One dependency to check. `undefined`: it works; otherwise the description of its fault. */
interface Probe {
  name: string;
  /** When a required check fails, the service is not ready; when another one fails, it is ready but degraded. */
  required: boolean;
  check(): Promise<string | undefined>;
  /** The check of the cluster lists the nodes. */
  nodes?(): Static<typeof Node>[];
}

const Node = Type.Object({
  id: Type.String(),
  public_url: Type.String({ description: 'Its address for clients.' }),
  version: Type.String(),
  running: Type.Integer({ description: 'Its number of sessions.' }),
  capacity: Type.Integer({ description: 'Its maximum number of sessions.' }),
  silent_ms: Type.Integer({ description: 'The age of its last heartbeat.' }),
});
const Part = Type.Object({
  name: Type.String(),
  ok: Type.Boolean(),
  detail: Type.Optional(Type.String()),
  nodes: Type.Optional(Type.Array(Node)),
});
const Readiness = Type.Object({
  status: Type.String({
    description: 'ready, degraded (`parts` has the faults) or unavailable',
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
          summary: 'Whether the database answers and a browser can be launched, and the degraded parts.',
          tags,
          security: [],
          response: { 200: Readiness, 503: Readiness },
        },
      },
      async (_request, reply) => {
        const parts = await Promise.all(
          probes.map(async ({ name, required, check, nodes }) => {
            const detail = await check().catch((error: Error) => error.message);
            const more = { ...(detail === undefined ? {} : { detail }), ...(nodes ? { nodes: nodes() } : {}) };
            return { name, required, ok: detail === undefined, ...more };
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
          summary: 'Metrics for Prometheus. Takes an organisation-wide key.',
          tags,
          response: {
            200: { description: 'The metrics.', content: { 'text/plain': { schema: Type.String() } } },
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
