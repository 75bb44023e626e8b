import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { Tags } from '../../sessions/schema.ts';
import { endings, type Ending } from '../../sessions/state.ts';
import type { PoolService } from '../service.ts';
import type { SessionsHere } from './here.ts';

const config = { access: 'node' } as const;
const params = Type.Object({ id: Type.String() });

/** Requests of other nodes about pool browsers that this node runs or is to make. Clients lack the credential they need. */
export function pooledSessionRoutes({
  sessions,
  pools,
}: {
  sessions: SessionsHere;
  pools: Pick<PoolService, 'makeHere'>;
}): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/nodes/pools/:id/browsers', { config, schema: { params } }, async ({ params }) => ({
      placed: await pools.makeHere(params.id),
    }));

    const Lend = Type.Object({
      lease: Type.Object({
        id: Type.String(),
        name: Type.Union([Type.String(), Type.Null()]),
        tags: Tags,
        timeoutSeconds: Type.Integer(),
        telemetry: Type.Array(Type.String(), { default: [] }),
      }),
      start_url: Type.Optional(Type.String()),
      key_id: Type.String(),
    });
    app.post('/nodes/sessions/:id/lend', { config, schema: { params, body: Lend } }, async ({ params, body }) =>
      sessions.lend(params.id, { ...body.lease, startUrl: body.start_url ?? null }, body.key_id),
    );

    const body = Type.Object({ lease: Type.String() });
    app.post('/nodes/sessions/:id/take_back', { config, schema: { params, body } }, async ({ params, body }) => ({
      returned: await sessions.takeBack(params.id, body.lease),
    }));

    const End = Type.Object({ reason: Type.Unsafe<Ending>({ enum: Object.keys(endings) }) });
    app.post('/nodes/sessions/:id/stop', { config, schema: { params, body: End } }, async ({ params, body }, reply) => {
      await sessions.stop(params.id, body.reason);
      return reply.code(204).send();
    });
  };
}
