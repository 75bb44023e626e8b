import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { countedParts } from '../../api/large.ts';
import { refusals } from '../../api/schema.ts';
import { ofGuest } from '../refusals.ts';
import { heldSessions } from '../held-routes.ts';
import type { SessionService } from '../service.ts';
import { ExecuteRequest, ExecuteResult } from './schema.ts';
import { execute, executeResult } from './service.ts';

/** Playwright code that runs next to the browser, inside the session. */
export function playwrightRoutes({ sessions }: { sessions: SessionService }): FastifyPluginAsyncTypebox {
  const { using } = heldSessions({ sessions });
  return async (app) => {
    app.post(
      '/browsers/:id/playwright/execute',
      {
        bodyLimit: 4 * 1024 * 1024,
        schema: {
          operationId: 'executePlaywrightCode',
          summary: 'Run Playwright code next to the browser, and return its result.',
          tags: ['browsers'],
          params: Type.Object({ id: Type.String() }),
          body: ExecuteRequest,
          response: { 200: ExecuteResult, ...refusals(...ofGuest, 'memory_full') },
        },
      },
      async (request, reply) => {
        const parts = await using(request, reply, ({ held, gone }) => execute(held, request.body, gone, executeResult));
        return reply.type('application/json; charset=utf-8').send(countedParts(reply, parts) as never);
      },
    );
  };
}
