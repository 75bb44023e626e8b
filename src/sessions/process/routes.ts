import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { countedParts } from '../../api/large.ts';
import { eventsOf, refusals } from '../../api/schema.ts';
import { ofGuest } from '../refusals.ts';
import { eachOf, heldSessions } from '../held-routes.ts';
import type { SessionService } from '../service.ts';
import {
  ExecRequest,
  ExecResult,
  KillRequest,
  Ok,
  OutputEvent,
  ProcessStatus,
  ResizeRequest,
  SpawnRequest,
  SpawnResult,
  StdinRequest,
  StdinResult,
} from './schema.ts';
import { exec, kill, read, resize, spawn, status, writeStdin } from './service.ts';

const tags = ['browsers'];
const Id = Type.Object({ id: Type.String() });
const OneProcess = Type.Object({ id: Type.String(), process_id: Type.String({ format: 'uuid' }) });
const bodyLimit = 8 * 1024 * 1024;

/** Processes inside a session. */
export function processRoutes({ sessions }: { sessions: SessionService }): FastifyPluginAsyncTypebox {
  const { using, sendEvents } = heldSessions({ sessions });
  return async (app) => {
    app.post(
      '/browsers/:id/process/exec',
      {
        bodyLimit,
        schema: {
          operationId: 'processExec',
          summary:
            'Run a command and wait for its end. If the client disconnects, the command and its descendants are killed.',
          tags,
          params: Id,
          body: ExecRequest,
          response: {
            200: ExecResult,
            ...refusals(...ofGuest, 'process_not_started', 'process_timed_out', 'memory_full'),
          },
        },
      },
      async (request, reply) => {
        const parts = await using(request, reply, ({ held, gone }) => exec(held, request.body, gone));
        return reply.type('application/json; charset=utf-8').send(countedParts(reply, parts) as never);
      },
    );

    app.post(
      '/browsers/:id/process/spawn',
      {
        bodyLimit,
        schema: {
          operationId: 'processSpawn',
          summary: 'Start a process in the background, on pipes or on a terminal.',
          tags,
          params: Id,
          body: SpawnRequest,
          response: { 200: SpawnResult, ...refusals(...ofGuest, 'process_not_started') },
        },
      },
      (request, reply) => using(request, reply, ({ held }) => spawn(held, request.body)),
    );

    app.get(
      '/browsers/:id/process/:process_id/status',
      {
        schema: {
          operationId: 'processStatus',
          summary: 'Get the state and the resource usage of a process.',
          tags,
          params: OneProcess,
          response: { 200: ProcessStatus, ...refusals(...ofGuest, 'process_not_found', 'invalid_input') },
        },
      },
      (request, reply) => using(request, reply, ({ held }) => status(held, request.params.process_id)),
    );

    app.get(
      '/browsers/:id/process/:process_id/stdout/stream',
      {
        schema: {
          operationId: 'processStdoutStream',
          summary: 'Stream the output of a process from its start, and then its exit.',
          tags,
          params: OneProcess,
          response: {
            200: eventsOf(OutputEvent, 'The output.'),
            ...refusals(...ofGuest, 'process_not_found', 'invalid_input', 'too_many_streams'),
          },
        },
      },
      (request, reply) =>
        sendEvents(request, reply, async ({ held, gone }) => eachOf(await read(held, request.params.process_id, gone))),
    );

    app.post(
      '/browsers/:id/process/:process_id/stdin',
      {
        bodyLimit,
        schema: {
          operationId: 'processStdin',
          summary: 'Write to a process.',
          tags,
          params: OneProcess,
          body: StdinRequest,
          response: { 200: StdinResult, ...refusals(...ofGuest, 'process_not_found', 'process_exited', 'stdin_full') },
        },
      },
      (request, reply) => {
        const { data_b64, eof = false } = request.body;
        return using(request, reply, ({ held }) => writeStdin(held, request.params.process_id, data_b64, eof));
      },
    );

    app.post(
      '/browsers/:id/process/:process_id/kill',
      {
        schema: {
          operationId: 'processKill',
          summary: 'Signal a process and its descendants.',
          tags,
          params: OneProcess,
          body: KillRequest,
          response: { 200: Ok, ...refusals(...ofGuest, 'process_not_found', 'process_exited') },
        },
      },
      (request, reply) =>
        using(request, reply, ({ held }) => kill(held, request.params.process_id, request.body.signal)),
    );

    app.post(
      '/browsers/:id/process/:process_id/resize',
      {
        schema: {
          operationId: 'processResize',
          summary: 'Resize the terminal of a process.',
          tags,
          params: OneProcess,
          body: ResizeRequest,
          response: { 200: Ok, ...refusals(...ofGuest, 'process_not_found', 'process_exited', 'no_terminal') },
        },
      },
      (request, reply) => {
        const { rows, cols } = request.body;
        return using(request, reply, ({ held }) => resize(held, request.params.process_id, rows, cols));
      },
    );
  };
}
