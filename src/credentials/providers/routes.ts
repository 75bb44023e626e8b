import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { callerOf, projectOf } from '../../api/caller.ts';
import { countedParts } from '../../api/large.ts';
import { sendPage } from '../../api/paging.ts';
import { empty, listOf, refusals } from '../../api/schema.ts';
import { jsonListParts } from '../../lib/json-parts.ts';
import { CreateProvider, Provider, ProviderItems, ProviderList, ProviderTest, UpdateProvider } from './schema.ts';
import type { ProviderService } from './service.ts';

const tags = ['credential providers'];
const config = { access: 'org' } as const;
const params = Type.Object({ id: Type.String() });

/** HTTP in, one service call, HTTP out. */
export function providerRoutes({ providers }: { providers: ProviderService }): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/org/credential_providers',
      {
        config: { access: 'project', apps: false },
        schema: {
          operationId: 'createCredentialProvider',
          summary:
            'Connect a store of credentials, for the project of the request or those in projects. Use test to check that it answers.',
          tags,
          body: CreateProvider,
          response: { 201: Provider, ...refusals('already_exists', 'provider_host_refused') },
        },
      },
      async (request, reply) =>
        reply.code(201).send(await providers.create(callerOf(request), projectOf(request).id, request.body)),
    );

    app.get(
      '/org/credential_providers',
      {
        config,
        schema: {
          operationId: 'listCredentialProviders',
          summary: 'List credential providers, oldest first. A key of one project sees those that are shared with it.',
          tags,
          querystring: ProviderList,
          response: { 200: listOf(Provider, 'A page of credential providers.') },
        },
      },
      async (request, reply) => sendPage(reply, request.query, await providers.list(callerOf(request), request.query)),
    );

    app.get(
      '/org/credential_providers/:id',
      {
        config,
        schema: {
          operationId: 'getCredentialProvider',
          summary: 'Get a credential provider, without its token.',
          tags,
          params,
          response: { 200: Provider, ...refusals('provider_not_found') },
        },
      },
      (request) => providers.get(callerOf(request), request.params.id),
    );

    app.patch(
      '/org/credential_providers/:id',
      {
        config,
        schema: {
          operationId: 'updateCredentialProvider',
          summary: 'Change a credential provider, or give it a new token.',
          tags,
          params,
          body: UpdateProvider,
          response: { 200: Provider, ...refusals('provider_not_found', 'already_exists', 'provider_host_refused') },
        },
      },
      (request) => providers.update(callerOf(request), request.params.id, request.body),
    );

    app.delete(
      '/org/credential_providers/:id',
      {
        config,
        schema: {
          operationId: 'deleteCredentialProvider',
          summary: 'Delete a credential provider and its token.',
          tags,
          params,
          response: { 204: empty('Deleted.'), ...refusals('provider_not_found') },
        },
      },
      async (request, reply) => {
        await providers.remove(callerOf(request), request.params.id);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/org/credential_providers/:id/test',
      {
        config,
        schema: {
          operationId: 'testCredentialProvider',
          summary: 'Check the token with the store. If the store refuses or does not answer, success is false.',
          tags,
          params,
          response: { 200: ProviderTest, ...refusals('provider_not_found') },
        },
      },
      (request) => providers.test(callerOf(request), request.params.id),
    );

    app.get(
      '/org/credential_providers/:id/items',
      {
        config,
        schema: {
          operationId: 'listCredentialProviderItems',
          summary: 'List the items of the store: titles, paths and sites, no secrets.',
          tags,
          params,
          response: {
            200: ProviderItems,
            ...refusals('provider_not_found', 'provider_item_not_found', 'provider_refused', 'provider_unavailable'),
          },
        },
      },
      async (request, reply) => {
        const { items } = await providers.items(callerOf(request), request.params.id);
        const parts = await jsonListParts('items', items);
        return reply.type('application/json; charset=utf-8').send(countedParts(reply, parts) as never);
      },
    );
  };
}
