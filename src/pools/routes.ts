import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { callerOf, projectOf } from '../api/caller.ts';
import { hungUp } from '../api/hung-up.ts';
import { sendPage } from '../api/paging.ts';
import { empty, listOf, refusals } from '../api/schema.ts';
import { mostValuesWithPolicy } from '../sessions/policy.ts';
import { Session } from '../sessions/schema.ts';
import { Acquire, CreatePool, DeletePool, Pool, PoolList, Release, UpdatePool } from './schema.ts';
import type { PoolService } from './service.ts';

const tags = ['browser_pools'];
const IdOrName = Type.Object({ id_or_name: Type.String() });
/** A policy may take 5 MiB of it. */
const withPolicy = { bodyLimit: 6 * 1024 * 1024, config: { mostValues: mostValuesWithPolicy } };

/** HTTP in, one service call, HTTP out. */
export function poolRoutes({ pools }: { pools: PoolService }): FastifyPluginAsyncTypebox {
  return async (app) => {
    declaring(app, pools);
    leasing(app, pools);
  };
}

type App = Parameters<FastifyPluginAsyncTypebox>[0];

/** Routes of the pools themselves. */
function declaring(app: App, pools: PoolService) {
  app.post(
    '/browser_pools',
    {
      ...withPolicy,
      preValidation: async ({ body }) => refreshWithProfile(body),
      schema: {
        operationId: 'createBrowserPool',
        summary: 'Create a pool. Its browsers are started in the background.',
        tags,
        body: CreatePool,
        response: {
          201: Pool,
          ...refusals('already_exists', 'pool_limit_reached', 'project_limit_reached'),
        },
      },
    },
    async (request, reply) => reply.code(201).send(await pools.create(projectOf(request).id, request.body)),
  );

  app.get(
    '/browser_pools',
    {
      schema: {
        operationId: 'listBrowserPools',
        summary: 'List pools, oldest first. A page ends early when its policies are large.',
        tags,
        querystring: PoolList,
        response: { 200: listOf(Pool, 'A page of pools.') },
      },
    },
    async (request, reply) => {
      const { rows, cut } = await pools.list(projectOf(request).id, request.query);
      return sendPage(reply, request.query, rows, cut);
    },
  );

  app.get(
    '/browser_pools/:id_or_name',
    {
      schema: {
        operationId: 'getBrowserPool',
        summary: 'Get a pool, with the current number of its browsers.',
        tags,
        params: IdOrName,
        response: { 200: Pool, ...refusals('pool_not_found') },
      },
    },
    (request) => pools.get(projectOf(request).id, request.params.id_or_name),
  );

  app.patch(
    '/browser_pools/:id_or_name',
    {
      ...withPolicy,
      schema: {
        operationId: 'updateBrowserPool',
        summary: 'Change a pool. New browsers have the change; leased ones do not change.',
        tags,
        params: IdOrName,
        body: UpdatePool,
        response: {
          200: Pool,
          ...refusals('pool_not_found', 'already_exists', 'pool_limit_reached', 'project_limit_reached'),
        },
      },
    },
    (request) => pools.update(projectOf(request).id, request.params.id_or_name, request.body),
  );

  app.delete(
    '/browser_pools/:id_or_name',
    {
      schema: {
        operationId: 'deleteBrowserPool',
        summary: 'Delete a pool and its browsers. Waiting clients are refused.',
        tags,
        params: IdOrName,
        body: DeletePool,
        response: { 204: empty('Deleted.'), ...refusals('pool_not_found', 'pool_in_use') },
      },
    },
    async (request, reply) => {
      await pools.remove(projectOf(request).id, request.params.id_or_name, request.body.force ?? false);
      return reply.code(204).send(null);
    },
  );
}

/** Routes of their browsers. */
function leasing(app: App, pools: PoolService) {
  app.post(
    '/browser_pools/:id_or_name/acquire',
    {
      schema: {
        operationId: 'acquireBrowser',
        summary:
          'Lease a browser, or wait for one. 204: no browser became free in time; repeat the request to keep waiting.',
        tags,
        params: IdOrName,
        body: Acquire,
        response: {
          200: Session,
          204: Object.assign(empty('No browser became free.'), {
            headers: {
              'X-Queue-Position': Type.Integer({
                description: 'Your place in the queue when the poll ended: 1 is next.',
              }),
            },
          }),
          ...refusals('pool_not_found', 'pool_deleted', 'already_exists'),
        },
      },
    },
    async (request, reply) => {
      const turn = await pools.acquire(
        projectOf(request).id,
        callerOf(request).keyId,
        request.params.id_or_name,
        request.body,
        hungUp(reply),
      );
      if (!('ahead' in turn)) {
        const heard = () => void (reply.raw.writableFinished || turn.undelivered());
        if (reply.raw.destroyed) heard();
        else reply.raw.once('close', heard);
        return reply.code(200).send(turn.session);
      }
      return reply
        .code(204)
        .header('X-Queue-Position', String(turn.ahead + 1))
        .send(null);
    },
  );

  app.post(
    '/browser_pools/:id_or_name/release',
    {
      schema: {
        operationId: 'releaseBrowser',
        summary: 'Release a browser. A clean browser replaces it immediately.',
        tags,
        params: IdOrName,
        body: Release,
        response: { 204: empty('Released.'), ...refusals('pool_not_found', 'not_leased') },
      },
    },
    async (request, reply) => {
      const { session_id, reuse = true } = request.body;
      await pools.release(projectOf(request).id, request.params.id_or_name, session_id, reuse);
      return reply.code(204).send(null);
    },
  );

  app.post(
    '/browser_pools/:id_or_name/flush',
    {
      schema: {
        operationId: 'flushBrowserPool',
        summary: 'Destroy the idle browsers of a pool; it fills again. Leased ones are not touched.',
        tags,
        params: IdOrName,
        response: { 204: empty('Flushed.'), ...refusals('pool_not_found') },
      },
    },
    async (request, reply) => {
      await pools.flush(projectOf(request).id, request.params.id_or_name);
      return reply.code(204).send(null);
    },
  );
}

/** Runs before the schema's default is filled in, which applies to pools without a profile. */
function refreshWithProfile(body: unknown) {
  if (typeof body !== 'object' || body === null || !('profile' in body)) return;
  if (!('refresh_on_profile_update' in body)) Object.assign(body, { refresh_on_profile_update: true });
}
