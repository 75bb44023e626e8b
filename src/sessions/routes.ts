import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { callerOf, projectOf } from '../api/caller.ts';
import { hungUp } from '../api/hung-up.ts';
import { sendPage } from '../api/paging.ts';
import { empty, listOf, refusals } from '../api/schema.ts';
import { mostValuesWithPolicy } from './policy.ts';
import { limited, type RateLimit } from './rate-limit.ts';
import { CreateLiveViewLink, CreateSession, LiveViewLink, Session, SessionList, UpdateSession } from './schema.ts';
import { ofBrowser, ofLaunch, ofSession } from './refusals.ts';
import type { SessionService } from './service.ts';

const tags = ['browsers'];
const IdOrName = Type.Object({ id_or_name: Type.String() });
const IncludeDeleted = Type.Object({ include_deleted: Type.Boolean({ default: false }) });

/** HTTP in, one service call, HTTP out. */
export function sessionRoutes({
  sessions,
  limit,
}: {
  sessions: SessionService;
  limit: RateLimit;
}): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/browsers',
      {
        bodyLimit: 6 * 1024 * 1024, // a policy alone may have five MiB
        config: { mostValues: mostValuesWithPolicy },
        ...limited(limit),
        schema: {
          operationId: 'createBrowser',
          summary: 'Start a browser. The four addresses of the answer work immediately.',
          tags,
          body: CreateSession,
          response: {
            200: Session,
            ...refusals(
              ...ofLaunch,
              'already_exists',
              'session_limit_reached',
              'disk_overused',
              'invocation_not_found',
              'invocation_over',
              'rate_limit_exceeded',
              'capacity_exhausted',
              'shutting_down',
              'extension_refused',
              'profile_not_found',
              'profile_in_use',
              'proxy_type_unavailable',
              'session_not_found',
              'node_unreachable',
              'browser_silent',
            ),
          },
        },
      },
      (request, reply) => sessions.create(projectOf(request).id, callerOf(request).keyId, request.body, hungUp(reply)),
    );

    app.get(
      '/browsers',
      {
        schema: {
          operationId: 'listBrowsers',
          summary: 'List sessions, newest first. A page ends early when its policies are large.',
          tags,
          querystring: SessionList,
          response: { 200: listOf(Session, 'A page of sessions.'), ...refusals('search_too_slow') },
        },
      },
      async (request, reply) => {
        const { rows, cut } = await sessions.list(projectOf(request).id, callerOf(request).keyId, request.query);
        return sendPage(reply, request.query, rows, cut);
      },
    );

    app.get(
      '/browsers/:id_or_name',
      {
        schema: {
          operationId: 'getBrowser',
          summary: 'Get a session, with fresh tokens in its addresses.',
          tags,
          params: IdOrName,
          querystring: IncludeDeleted,
          response: { 200: Session, ...refusals(...ofSession) },
        },
      },
      (request) =>
        sessions.get(
          projectOf(request).id,
          callerOf(request).keyId,
          request.params.id_or_name,
          request.query.include_deleted,
        ),
    );

    app.patch(
      '/browsers/:id_or_name',
      {
        schema: {
          operationId: 'updateBrowser',
          summary:
            'Change name, tags, viewport or proxy while the browser runs, or attach a profile, which restarts the browser.',
          tags,
          params: IdOrName,
          body: UpdateSession,
          response: {
            200: Session,
            ...refusals(
              ...ofBrowser,
              ...ofLaunch,
              'already_exists',
              'viewport_in_use',
              'profile_not_found',
              'profile_in_use',
              'profile_loaded',
              'proxy_type_unavailable',
            ),
          },
        },
      },
      (request) =>
        sessions.update(projectOf(request).id, callerOf(request).keyId, request.params.id_or_name, request.body),
    );

    app.post(
      '/browsers/:id_or_name/live_view_links',
      {
        schema: {
          operationId: 'createBrowserLiveViewLink',
          summary: 'Create a link to the live view for a person without a key. It is read-only by default.',
          tags,
          params: IdOrName,
          body: CreateLiveViewLink,
          response: { 200: LiveViewLink, ...refusals(...ofSession) },
        },
      },
      (request) =>
        sessions.liveViewLink(projectOf(request).id, callerOf(request).keyId, request.params.id_or_name, request.body),
    );

    app.delete(
      '/browsers/:id_or_name',
      {
        schema: {
          operationId: 'deleteBrowser',
          summary: 'End a session. Answered when its clients are closed and its browser is killed.',
          tags,
          params: IdOrName,
          response: { 204: empty('Ended.'), ...refusals(...ofSession) },
        },
      },
      async (request, reply) => {
        await sessions.remove(projectOf(request).id, request.params.id_or_name);
        return reply.code(204).send(null);
      },
    );
  };
}
