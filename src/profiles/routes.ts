import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { projectOf } from '../api/caller.ts';
import { hungUp } from '../api/hung-up.ts';
import { sendPage } from '../api/paging.ts';
import { bytesAs, empty, listOf, refusals } from '../api/schema.ts';
import { CreateProfile, Profile, ProfileDownload, ProfileList, ProfileVersion, UpdateProfile } from './schema.ts';
import type { ProfileService } from './service.ts';

const tags = ['profiles'];
const IdOrName = Type.Object({ id_or_name: Type.String() });

/** HTTP in, one service call, HTTP out. */
export function profileRoutes({ profiles }: { profiles: ProfileService }): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/profiles',
      {
        schema: {
          operationId: 'createProfile',
          summary: 'Create a profile. It is empty until a session saves to it.',
          tags,
          body: CreateProfile,
          response: { 201: Profile, ...refusals('already_exists', 'profile_limit_reached') },
        },
      },
      async (request, reply) => reply.code(201).send(await profiles.create(projectOf(request).id, request.body.name)),
    );

    app.get(
      '/profiles',
      {
        schema: {
          operationId: 'listProfiles',
          summary: 'List profiles, oldest first.',
          tags,
          querystring: ProfileList,
          response: { 200: listOf(Profile, 'A page of profiles.') },
        },
      },
      async (request, reply) =>
        sendPage(reply, request.query, await profiles.list(projectOf(request).id, request.query)),
    );

    app.get(
      '/profiles/:id_or_name',
      {
        schema: {
          operationId: 'getProfile',
          summary: 'Get a profile.',
          tags,
          params: IdOrName,
          response: { 200: Profile, ...refusals('profile_not_found') },
        },
      },
      (request) => profiles.get(projectOf(request).id, request.params.id_or_name),
    );

    app.patch(
      '/profiles/:id_or_name',
      {
        schema: {
          operationId: 'updateProfile',
          summary: 'Rename a profile. Running sessions keep using it.',
          tags,
          params: IdOrName,
          body: UpdateProfile,
          response: { 200: Profile, ...refusals('profile_not_found', 'already_exists') },
        },
      },
      (request) => profiles.rename(projectOf(request).id, request.params.id_or_name, request.body.name),
    );

    app.delete(
      '/profiles/:id_or_name',
      {
        schema: {
          operationId: 'deleteProfile',
          summary: 'Delete a profile and all its versions. Sessions with the profile continue, and do not save it.',
          tags,
          params: IdOrName,
          response: { 204: empty('Deleted.'), ...refusals('profile_not_found') },
        },
      },
      async (request, reply) => {
        await profiles.remove(projectOf(request).id, request.params.id_or_name);
        return reply.code(204).send(null);
      },
    );

    app.get(
      '/profiles/:id_or_name/download',
      {
        schema: {
          operationId: 'downloadProfile',
          summary: 'Download a profile: the browser’s user data directory, without caches.',
          tags,
          params: IdOrName,
          querystring: ProfileDownload,
          response: {
            200: bytesAs('application/octet-stream', 'The archive.'),
            202: { description: 'No session has saved to it yet.' },
            ...refusals('profile_not_found', 'profile_damaged'),
          },
        },
      },
      async (request, reply) => {
        const { id_or_name } = request.params;
        const { format } = request.query;
        const archive = await profiles.download(projectOf(request).id, id_or_name, format, hungUp(reply));
        if (!archive) return reply.code(202).send();
        return reply
          .code(200)
          .type('application/octet-stream')
          .header('Content-Disposition', `attachment; filename="profile.${format}"`)
          .send(Readable.from(archive));
      },
    );

    app.get(
      '/profiles/:id_or_name/versions',
      {
        schema: {
          operationId: 'listProfileVersions',
          summary: 'List the versions of a profile, newest first; the last ten are kept. Corral extension.',
          tags,
          params: IdOrName,
          response: { 200: Type.Array(ProfileVersion), ...refusals('profile_not_found') },
        },
      },
      (request) => profiles.versions(projectOf(request).id, request.params.id_or_name),
    );

    app.post(
      '/profiles/:id_or_name/versions/:version_id/restore',
      {
        schema: {
          operationId: 'restoreProfileVersion',
          summary: 'Restore an earlier version, so that sessions start with it. Corral extension.',
          tags,
          params: Type.Object({ id_or_name: Type.String(), version_id: Type.String() }),
          response: { 200: Profile, ...refusals('profile_not_found', 'profile_version_not_found') },
        },
      },
      (request) => profiles.restore(projectOf(request).id, request.params.id_or_name, request.params.version_id),
    );
  };
}
