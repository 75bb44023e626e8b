import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf, projectOf } from '../api/caller.ts';
import { sendPage } from '../api/paging.ts';
import { empty, ErrorBody, eventsOf, listOf, refusals, refusedAs } from '../api/schema.ts';
import { eventStream, heartbeatAfter } from '../api/sse.ts';
import { takeStreamPlace } from '../api/stream-places.ts';
import { errors, ServiceError } from '../errors.ts';
import { ofLaunch } from '../sessions/refusals.ts';
import { forInvitee } from './hosted/invitee.ts';
import {
  Accepted,
  Connection,
  ConnectionEvent,
  ConnectionList,
  CreateConnection,
  Exchange,
  Exchanged,
  Explanation,
  LoginStarted,
  PushCode,
  RecipeShape,
  StartLogin,
  SubmitFields,
  TimelineEvent,
  TimelineList,
  UpdateConnection,
} from './schema.ts';
import type { Asking, LoginService } from './service.ts';

const tags = ['auth connections'];
const params = Type.Object({ id: Type.String() });
/** Also for the person that logs in, by a token. */
const invitees = { invitees: true } as const;
const ofStart = [
  ...ofLaunch,
  'capacity_exhausted',
  'session_limit_reached',
  'disk_overused',
  'shutting_down',
  'profile_not_found',
  'proxy_type_unavailable',
  'session_not_found',
  'browser_silent',
] as const;

interface Room {
  logins: LoginService;
}

/** HTTP in, one service call, HTTP out. */
export function loginRoutes(room: Room): FastifyPluginAsyncTypebox {
  return async (app) => {
    for (const routes of [connectionRoutes, flowRoutes, learnedRoutes]) await app.register(routes(room));
  };
}

function asking(request: FastifyRequest): Asking {
  const projectId = projectOf(request).id;
  const { invitee } = request;
  if (invitee) return { projectId, keyId: invitee.keyId, flowId: invitee.flowId };
  const { keyId, projectId: bound } = callerOf(request);
  return { projectId, keyId, orgWide: bound === null };
}

function connectionRoutes({ logins }: Room): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/auth/connections',
      {
        schema: {
          operationId: 'createAuthConnection',
          summary: 'Keep a profile logged in at a site. Nothing runs before the first login.',
          tags,
          body: CreateConnection,
          response: {
            201: Connection,
            ...refusals('item_not_for_site'),
            ...refusedAs(
              Type.Object({
                ...ErrorBody.properties,
                existing_id: Type.String({ description: 'The existing auth connection.' }),
              }),
              'already_exists',
            ),
          },
        },
      },
      async (request, reply) => reply.code(201).send(await logins.create(asking(request), request.body)),
    );

    app.get(
      '/auth/connections',
      {
        schema: {
          operationId: 'listAuthConnections',
          summary: 'List the auth connections of the project, oldest first.',
          tags,
          querystring: ConnectionList,
          response: { 200: listOf(Connection, 'A page of auth connections.') },
        },
      },
      async (request, reply) => sendPage(reply, request.query, await logins.list(asking(request), request.query)),
    );

    app.get(
      '/auth/connections/:id',
      {
        config: invitees,
        schema: {
          operationId: 'getAuthConnection',
          summary: 'Get an auth connection, with the state of its newest login.',
          tags,
          params,
          response: { 200: Connection, ...refusals('connection_not_found') },
        },
      },
      async (request, reply) => {
        void reply.header('Cache-Control', 'no-store');
        const connection = await logins.get(asking(request), request.params.id);
        return request.invitee ? forInvitee(connection) : connection;
      },
    );

    app.patch(
      '/auth/connections/:id',
      {
        schema: {
          operationId: 'updateAuthConnection',
          summary: 'Change an auth connection. A new interval reschedules the next check.',
          tags,
          params,
          body: UpdateConnection,
          response: { 200: Connection, ...refusals('connection_not_found', 'item_not_for_site') },
        },
      },
      (request) => logins.update(asking(request), request.params.id, request.body),
    );

    app.delete(
      '/auth/connections/:id',
      {
        schema: {
          operationId: 'deleteAuthConnection',
          summary: 'Delete an auth connection. A running login is canceled; the profile is kept.',
          tags,
          params,
          response: { 204: empty('Deleted.'), ...refusals('connection_not_found') },
        },
      },
      async (request, reply) => {
        await logins.remove(asking(request), request.params.id);
        return reply.code(204).send(null);
      },
    );
  };
}

function flowRoutes({ logins }: Room): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/auth/connections/:id/login',
      {
        schema: {
          operationId: 'startAuthConnectionLogin',
          summary:
            'Log in: opens the site in a browser with the profile. The login runs in the background, and asks for missing values.',
          tags,
          params,
          body: StartLogin,
          response: { 200: LoginStarted, ...refusals('connection_not_found', 'flow_in_progress', ...ofStart) },
        },
      },
      (request) => logins.login(asking(request), request.params.id, request.body),
    );

    app.post(
      '/auth/connections/:id/submit',
      {
        config: invitees,
        schema: {
          operationId: 'submitAuthConnectionFields',
          summary: 'Answer the question of the login. The next state has the result.',
          tags,
          params,
          body: SubmitFields,
          response: {
            202: Accepted,
            ...refusals('connection_not_found', 'no_active_flow', 'flow_not_waiting', 'stale_interaction'),
          },
        },
      },
      async (request, reply) => {
        await logins.submit(asking(request), request.params.id, request.body);
        return reply.code(202).send({ accepted: true });
      },
    );

    app.post(
      '/auth/connections/:id/codes',
      {
        schema: {
          operationId: 'pushAuthConnectionCode',
          summary:
            'Push a one-time code that was received by mail or SMS. The running login types it when the site asks for a code. Corral extension.',
          tags,
          params,
          body: PushCode,
          response: { 202: Accepted, ...refusals('connection_not_found', 'no_active_flow', 'flow_not_waiting') },
        },
      },
      async (request, reply) => {
        await logins.pushCode(asking(request), request.params.id, request.body.code);
        return reply.code(202).send({ accepted: true });
      },
    );

    app.post(
      '/auth/connections/:id/cancel',
      {
        config: invitees,
        schema: {
          operationId: 'cancelAuthConnectionLogin',
          summary: 'Cancel the running login. Its browser ends, and the profile stays as it was. Corral extension.',
          tags,
          params,
          response: { 204: empty('Canceled.'), ...refusals('connection_not_found', 'no_active_flow') },
        },
      },
      async (request, reply) => {
        await logins.cancel(asking(request), request.params.id);
        return reply.code(204).send(null);
      },
    );

    app.get(
      '/auth/connections/:id/events',
      {
        config: invitees,
        schema: {
          operationId: 'followAuthConnection',
          summary: 'Follow the states of the newest login. Ends with it; if no login runs, waits for the next one.',
          tags,
          params,
          response: {
            200: eventsOf(
              ConnectionEvent,
              `A state for each change, and a heartbeat after ${heartbeatAfter} of silence.`,
            ),
            ...refusals('connection_not_found', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const caller = asking(request);
        const { id } = await logins.get(caller, request.params.id); // refuses before the stream begins
        takeStreamPlace(id, reply, 'auth connection');
        const stream = eventStream(reply);
        try {
          for await (const state of logins.follow(caller, request.params.id, stream.closed))
            if (!(await stream.send(request.invitee ? forInvitee(state) : state, state.event))) return;
        } catch (error) {
          const isRefusal = error instanceof ServiceError; // such as of the invitee of a replaced login
          if (!isRefusal)
            request.log.warn({ requestId: request.id, error: (error as Error).message }, 'login.follow_failed');
          const { code, message } = isRefusal ? error : errors.internal({ requestId: request.id });
          await stream.send({ event: 'error', timestamp: new Date().toISOString(), error: { code, message } });
        } finally {
          stream.end();
        }
      },
    );

    app.post(
      '/auth/connections/:id/exchange',
      {
        config: { access: 'token', invitees: true },
        schema: {
          operationId: 'exchangeAuthConnectionHandoffCode',
          summary: 'Exchange a handoff code, once, for a token for its login. Needs no key.',
          tags,
          params,
          body: Exchange,
          response: { 200: Exchanged, ...refusals('connection_not_found', 'handoff_code_gone') },
        },
      },
      async (request, reply) => {
        void reply.header('Cache-Control', 'no-store');
        return logins.exchange(request.params.id, request.body.code);
      },
    );
  };
}

function learnedRoutes({ logins }: Room): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/auth/connections/:id/timeline',
      {
        schema: {
          operationId: 'listAuthConnectionTimeline',
          summary: 'List the logins and checks of an auth connection, newest first.',
          tags,
          params,
          querystring: TimelineList,
          response: { 200: listOf(TimelineEvent, 'A page of logins and checks.'), ...refusals('connection_not_found') },
        },
      },
      async (request, reply) =>
        sendPage(reply, request.query, await logins.timeline(asking(request), request.params.id, request.query)),
    );

    app.get(
      '/auth/connections/:id/recipe',
      {
        schema: {
          operationId: 'getAuthConnectionRecipe',
          summary:
            'Get the steps of the last successful login, which the next login tries first. They contain no values. Corral extension.',
          tags,
          params,
          response: { 200: RecipeShape, ...refusals('connection_not_found', 'recipe_not_found') },
        },
      },
      (request) => logins.recipe(asking(request), request.params.id) as never,
    );

    app.post(
      '/auth/connections/:id/explain',
      {
        schema: {
          operationId: 'explainAuthConnectionLogin',
          summary:
            'Explain the newest login: its last page snapshots, without values, and its decisions. Corral extension.',
          tags,
          params,
          response: { 200: Explanation, ...refusals('connection_not_found') },
        },
      },
      (request) => logins.explain(asking(request), request.params.id) as never,
    );
  };
}
