import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { projectOf } from '../api/caller.ts';
import { sendPage } from '../api/paging.ts';
import { empty, listOf, refusals } from '../api/schema.ts';
import { CheckProxy, CreateProxy, Proxy, ProxyList, UpdateProxy } from './schema.ts';
import type { ProxyService } from './service.ts';

const tags = ['proxies'];
const params = Type.Object({ id: Type.String() });

/** HTTP in, one service call, HTTP out. */
export function proxyRoutes({ proxies }: { proxies: ProxyService }): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/proxies',
      {
        schema: {
          operationId: 'createProxy',
          summary: 'Create a proxy. It is checked soon after, and then regularly.',
          tags,
          body: CreateProxy,
          response: { 201: Proxy, ...refusals('proxy_type_unavailable', 'proxy_host_refused', 'proxy_limit_reached') },
        },
      },
      async (request, reply) => reply.code(201).send(await proxies.create(projectOf(request).id, request.body)),
    );

    app.get(
      '/proxies',
      {
        schema: {
          operationId: 'listProxies',
          summary: 'List the proxies of the project, oldest first.',
          tags,
          querystring: ProxyList,
          response: { 200: listOf(Proxy, 'A page of proxies.') },
        },
      },
      async (request, reply) =>
        sendPage(reply, request.query, await proxies.list(projectOf(request).id, request.query)),
    );

    app.get(
      '/proxies/:id',
      {
        schema: {
          operationId: 'getProxy',
          summary: 'Get a proxy.',
          tags,
          params,
          response: { 200: Proxy, ...refusals('proxy_not_found') },
        },
      },
      (request) => proxies.get(projectOf(request).id, request.params.id),
    );

    app.patch(
      '/proxies/:id',
      {
        schema: {
          operationId: 'updateProxy',
          summary: 'Rename a proxy. Its other fields cannot be changed.',
          tags,
          params,
          body: UpdateProxy,
          response: { 200: Proxy, ...refusals('proxy_not_found') },
        },
      },
      (request) => proxies.rename(projectOf(request).id, request.params.id, request.body.name),
    );

    app.delete(
      '/proxies/:id',
      {
        schema: {
          operationId: 'deleteProxy',
          summary:
            'Delete a proxy. Sessions keep using it until they end or get another. Refused while an auth connection uses it.',
          tags,
          params,
          response: { 204: empty('Deleted.'), ...refusals('proxy_not_found', 'resource_in_use') },
        },
      },
      async (request, reply) => {
        await proxies.remove(projectOf(request).id, request.params.id);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/proxies/:id/check',
      {
        schema: {
          operationId: 'checkProxy',
          summary: 'Check the proxy now: whether it works, its latency and its public address.',
          tags,
          params,
          body: CheckProxy,
          response: { 200: Proxy, ...refusals('proxy_not_found', 'proxy_type_unavailable', 'proxy_check_failed') },
        },
      },
      (request) => proxies.check(projectOf(request).id, request.params.id, request.body.url),
    );
  };
}
