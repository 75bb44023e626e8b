import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { SessionService } from '../../sessions/service.ts';
import { endings, type Ending } from '../../sessions/state.ts';

const config = { access: 'node' } as const;
const params = Type.Object({ id: Type.String() });

/** What other nodes ask of the one that has a pool's browser. Clients cannot: it takes a node's credential. */
export function pooledSessionRoutes(
  sessions: Pick<SessionService, 'lend' | 'takeBack' | 'stop'>,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    const Lease = Type.Object({ timeout_seconds: Type.Integer(), start_url: Type.Optional(Type.String()) });
    app.post('/nodes/sessions/:id/lend', { config, schema: { params, body: Lease } }, async ({ params, body }) =>
      sessions.lend(params.id, body.timeout_seconds, body.start_url),
    );

    app.post('/nodes/sessions/:id/take_back', { config, schema: { params } }, async ({ params }, reply) => {
      await sessions.takeBack(params.id);
      return reply.code(204).send();
    });

    const End = Type.Object({
      reason: Type.Unsafe<Ending>({ enum: Object.keys(endings) }),
      detail: Type.Optional(Type.String()),
    });
    app.post('/nodes/sessions/:id/stop', { config, schema: { params, body: End } }, async ({ params, body }, reply) => {
      await sessions.stop(params.id, body.reason, body.detail);
      return reply.code(204).send();
    });
  };
}
