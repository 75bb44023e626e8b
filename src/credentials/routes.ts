import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { projectOf } from '../api/caller.ts';
import { sendPage } from '../api/paging.ts';
import { empty, listOf, refusals } from '../api/schema.ts';
import { CreateCredential, Credential, CredentialList, TotpCodeNow, UpdateCredential } from './schema.ts';
import type { CredentialService } from './service.ts';

const tags = ['credentials'];
const IdOrName = Type.Object({ id_or_name: Type.String() });

/** HTTP in, one service call, HTTP out. */
export function credentialRoutes({ credentials }: { credentials: CredentialService }): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/credentials',
      {
        schema: {
          operationId: 'createCredential',
          summary: 'Create a credential. Its values are encrypted, and never returned.',
          tags,
          body: CreateCredential,
          response: { 201: Credential, ...refusals('already_exists', 'code_source_host_refused') },
        },
      },
      async (request, reply) => reply.code(201).send(await credentials.create(projectOf(request).id, request.body)),
    );

    app.get(
      '/credentials',
      {
        schema: {
          operationId: 'listCredentials',
          summary: 'List the credentials of the project, oldest first.',
          tags,
          querystring: CredentialList,
          response: { 200: listOf(Credential, 'A page of credentials.') },
        },
      },
      async (request, reply) =>
        sendPage(reply, request.query, await credentials.list(projectOf(request).id, request.query)),
    );

    app.get(
      '/credentials/:id_or_name',
      {
        schema: {
          operationId: 'getCredential',
          summary: 'Get a credential, without its values.',
          tags,
          params: IdOrName,
          response: { 200: Credential, ...refusals('credential_not_found') },
        },
      },
      (request) => credentials.get(projectOf(request).id, request.params.id_or_name),
    );

    app.patch(
      '/credentials/:id_or_name',
      {
        schema: {
          operationId: 'updateCredential',
          summary: 'Change a credential. Values are merged; auth connections follow a new name.',
          tags,
          params: IdOrName,
          body: UpdateCredential,
          response: {
            200: Credential,
            ...refusals('credential_not_found', 'already_exists', 'code_source_host_refused'),
          },
        },
      },
      (request) => credentials.update(projectOf(request).id, request.params.id_or_name, request.body),
    );

    app.delete(
      '/credentials/:id_or_name',
      {
        schema: {
          operationId: 'deleteCredential',
          summary: 'Delete a credential and its values.',
          tags,
          params: IdOrName,
          response: { 204: empty('Deleted.'), ...refusals('credential_not_found') },
        },
      },
      async (request, reply) => {
        await credentials.remove(projectOf(request).id, request.params.id_or_name);
        return reply.code(204).send(null);
      },
    );

    app.get(
      '/credentials/:id_or_name/totp-code',
      {
        schema: {
          operationId: 'getCredentialTotpCode',
          summary: 'Get the current one-time code and its expiry time.',
          tags,
          params: IdOrName,
          response: { 200: TotpCodeNow, ...refusals('credential_not_found', 'no_totp_secret') },
        },
      },
      async (request, reply) => {
        void reply.header('Cache-Control', 'no-store');
        return credentials.codeNow(projectOf(request).id, request.params.id_or_name);
      },
    );
  };
}
