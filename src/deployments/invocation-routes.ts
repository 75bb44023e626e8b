import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { callerOf, projectOf } from '../api/caller.ts';
import { hungUp } from '../api/hung-up.ts';
import { countedParts, withRoom } from '../api/large.ts';
import { sendPage } from '../api/paging.ts';
import { takeProjectPlace } from '../api/stream-places.ts';
import { empty, eventsOf, listOf, refusals } from '../api/schema.ts';
import { jsonStringParts } from '../lib/json-parts.ts';
import { Session, type Session as SessionAnswer } from '../sessions/schema.ts';
import type { following } from './event-streams.ts';
import type { InvocationService } from './invocation-service.ts';
import { stream } from './routes.ts';
import {
  CreateInvocation,
  Invocation,
  InvocationEvent,
  InvocationList,
  InvokeResponse,
  Since,
  UpdateInvocation,
} from './schema.ts';
import { readSince } from './since.ts';
import { invocationLife } from './state.ts';

const tags = ['invocations'];
const Id = Type.Object({ id: Type.String() });

interface InvocationRoom {
  invocations: InvocationService;
  following: ReturnType<typeof following>;
  browsers: {
    list(keyId: string, invocationId: string): Promise<SessionAnswer[]>;
    end(invocationId: string): Promise<void>;
  };
  closing: AbortSignal;
}

/** HTTP in, one service call, HTTP out. */
export function invocationRoutes({
  invocations,
  following,
  browsers,
  closing,
}: InvocationRoom): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/invocations',
      {
        bodyLimit: 12 * 2 ** 20, // a payload of 4.5 MiB is JSON in JSON
        schema: {
          operationId: 'createInvocation',
          summary: 'Invoke an action of an app. The answer has its result, unless it is asynchronous.',
          tags,
          body: CreateInvocation,
          response: {
            200: InvokeResponse,
            202: {
              ...InvokeResponse,
              description: 'It is queued or still runs. GET /invocations/{id} has the result later.',
            },
            ...refusals(
              'app_not_found',
              'invocation_limit_reached',
              'invocation_queue_full',
              'large_texts_full',
              'storage_full',
              'disk_overused',
              'memory_full',
            ),
          },
        },
      },
      async (request, reply) => {
        return withRoom(request, reply, async (room) => {
          const answer = await invocations.invoke(projectOf(request).id, request.body, hungUp(reply), room);
          await sendTexts(reply.code(invocationLife.isFinal(answer.status) ? 200 : 202), answer);
        });
      },
    );

    app.get(
      '/invocations',
      {
        schema: {
          operationId: 'listInvocations',
          summary: 'List invocations, newest first. A page ends early when its payloads and outputs are large.',
          tags,
          querystring: InvocationList,
          response: {
            200: listOf(Invocation, 'A page of invocations.'),
            ...refusals('search_too_slow', 'memory_full'),
          },
        },
      },
      async (request, reply) => {
        return withRoom(request, reply, async (room) => {
          const { rows, cut } = await invocations.list(projectOf(request).id, request.query, room);
          await sendTexts(reply, sendPage(reply, request.query, rows, cut));
        });
      },
    );

    app.get(
      '/invocations/:id',
      {
        schema: {
          operationId: 'getInvocation',
          summary: 'Get an invocation, with its result.',
          tags,
          params: Id,
          response: { 200: Invocation, ...refusals('invocation_not_found', 'memory_full') },
        },
      },
      (request, reply) =>
        withRoom(request, reply, async (room) =>
          sendTexts(reply, await invocations.get(projectOf(request).id, request.params.id, room)),
        ),
    );

    app.patch(
      '/invocations/:id',
      {
        bodyLimit: 12 * 2 ** 20,
        schema: {
          operationId: 'updateInvocation',
          summary: 'End an invocation: cancel it, or set its result. Its process and its browsers end.',
          tags,
          params: Id,
          body: UpdateInvocation,
          response: {
            200: Invocation,
            ...refusals('invocation_not_found', 'invocation_over', 'large_texts_full', 'storage_full', 'memory_full'),
          },
        },
      },
      (request, reply) =>
        withRoom(request, reply, async (room) =>
          sendTexts(reply, await invocations.update(projectOf(request).id, request.params.id, request.body, room)),
        ),
    );

    await app.register(browserRoutes({ invocations, browsers }));

    app.get(
      '/invocations/:id/events',
      {
        schema: {
          operationId: 'followInvocation',
          summary: 'Follow an invocation: its log and its states, until it has ended.',
          tags,
          params: Id,
          querystring: Since,
          response: {
            200: eventsOf(InvocationEvent, 'Its events.'),
            ...refusals('invocation_not_found', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const since = readSince(request.query.since);
        const { id, project_id: project } = await invocations.find(projectOf(request).id, request.params.id);
        takeProjectPlace(project, 'invocations', reply);
        await stream(reply, closing, ({ closed: signal, reserve }) =>
          following.ofInvocation({ id, since, signal, project, reserve }),
        );
      },
    );
  };
}

function browserRoutes({
  invocations,
  browsers,
}: Pick<InvocationRoom, 'invocations' | 'browsers'>): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get(
      '/invocations/:id/browsers',
      {
        schema: {
          operationId: 'listInvocationBrowsers',
          summary: 'List the running browsers that were created with this invocation_id.',
          tags,
          params: Id,
          response: { 200: Type.Object({ browsers: Type.Array(Session) }), ...refusals('invocation_not_found') },
        },
      },
      async (request) => {
        const { id } = await invocations.find(projectOf(request).id, request.params.id);
        return { browsers: await browsers.list(callerOf(request).keyId, id) };
      },
    );

    app.delete(
      '/invocations/:id/browsers',
      {
        schema: {
          operationId: 'deleteInvocationBrowsers',
          summary: 'Delete the browsers of an invocation. The invocation continues.',
          tags,
          params: Id,
          response: { 204: empty('Deleted.'), ...refusals('invocation_not_found') },
        },
      },
      async (request, reply) => {
        const { id } = await invocations.find(projectOf(request).id, request.params.id);
        await browsers.end(id);
        return reply.code(204).send(null);
      },
    );
  };
}

type Texts = Partial<Record<'payload' | 'output', string>>;

/** The JSON of large texts is made in turns: nine megabytes in one piece take 50 ms. */
async function sendTexts<T extends Texts>(reply: FastifyReply, answer: T | T[]): Promise<void> {
  const all = Array.isArray(answer) ? answer : [answer];
  const length = all.reduce((sum, { payload = '', output = '' }) => sum + payload.length + output.length, 0);
  if (length <= LARGE_TEXTS) return void reply.send(answer);
  const parts: Buffer[] = [Buffer.from(Array.isArray(answer) ? '[' : '')];
  for (const [index, { payload, output, ...rest }] of all.entries()) {
    parts.push(Buffer.from(`${index > 0 ? ',' : ''}${JSON.stringify(rest).slice(0, -1)}`));
    for (const [name, text] of Object.entries({ payload, output })) {
      if (text === undefined) continue;
      parts.push(Buffer.from(`,"${name}":`));
      for await (const part of jsonStringParts(Buffer.from(text), 'utf8')) parts.push(part);
    }
    parts.push(Buffer.from('}'));
  }
  if (Array.isArray(answer)) parts.push(Buffer.from(']'));
  void reply.type('application/json; charset=utf-8').send(countedParts(reply, parts));
}

const LARGE_TEXTS = 256 * 1024;
