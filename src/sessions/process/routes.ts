import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { projectOf } from '../../api/caller.ts';
import { hungUp } from '../../api/hung-up.ts';
import { eventsOf, refusals } from '../../api/schema.ts';
import { eventStream } from '../../api/sse.ts';
import { ofGuest } from '../refusals.ts';
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
  return async (app) => {
    app.post(
      '/browsers/:id/process/exec',
      {
        bodyLimit,
        schema: {
          operationId: 'processExec',
          summary: 'Run a command and wait for its end. Hanging up kills it and all it started.',
          tags,
          params: Id,
          body: ExecRequest,
          response: { 200: ExecResult, ...refusals(...ofGuest, 'process_not_started', 'process_timed_out') },
        },
      },
      async (request, reply) => {
        const gone = hungUp(reply);
        const held = await sessions.holdFor(projectOf(request).id, request.params.id);
        return exec(held, request.body, gone).finally(() => held.release());
      },
    );

    app.post(
      '/browsers/:id/process/spawn',
      {
        bodyLimit,
        schema: {
          operationId: 'processSpawn',
          summary: 'Start a process that goes on by itself, on pipes or on a terminal.',
          tags,
          params: Id,
          body: SpawnRequest,
          response: { 200: SpawnResult, ...refusals(...ofGuest, 'process_not_started') },
        },
      },
      async (request) => {
        const held = await sessions.holdFor(projectOf(request).id, request.params.id);
        return spawn(held, request.body).finally(() => held.release());
      },
    );

    app.get(
      '/browsers/:id/process/:process_id/status',
      {
        schema: {
          operationId: 'processStatus',
          summary: 'Whether a process runs, and what it takes.',
          tags,
          params: OneProcess,
          response: { 200: ProcessStatus, ...refusals(...ofGuest, 'process_not_found', 'invalid_input') },
        },
      },
      async (request) => {
        const held = await sessions.holdFor(projectOf(request).id, request.params.id);
        return status(held, request.params.process_id).finally(() => held.release());
      },
    );

    app.get(
      '/browsers/:id/process/:process_id/stdout/stream',
      {
        schema: {
          operationId: 'processStdoutStream',
          summary: 'Everything a process prints, from the beginning, and then how it ended.',
          tags,
          params: OneProcess,
          response: {
            200: eventsOf(OutputEvent, 'The output.'),
            ...refusals(...ofGuest, 'process_not_found', 'invalid_input'),
          },
        },
      },
      async (request, reply) => {
        const held = await sessions.holdFor(projectOf(request).id, request.params.id);
        try {
          const reading = await read(held, request.params.process_id);
          const events = eventStream(reply, { everyMs: 15_000, comment: 'still here' }, held.until);
          events.closed.addEventListener('abort', () => reading.close(), { once: true });
          for (let item; !events.closed.aborted && (item = await reading.next());)
            if (!(await events.send(item))) break;
          events.end();
          reading.close();
        } finally {
          held.release();
        }
      },
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
      async (request) => {
        const { data_b64, eof = false } = request.body;
        const held = await sessions.holdFor(projectOf(request).id, request.params.id);
        return writeStdin(held, request.params.process_id, data_b64, eof).finally(() => held.release());
      },
    );

    app.post(
      '/browsers/:id/process/:process_id/kill',
      {
        schema: {
          operationId: 'processKill',
          summary: 'Signal a process and everything it started.',
          tags,
          params: OneProcess,
          body: KillRequest,
          response: { 200: Ok, ...refusals(...ofGuest, 'process_not_found', 'process_exited') },
        },
      },
      async (request) => {
        const held = await sessions.holdFor(projectOf(request).id, request.params.id);
        return kill(held, request.params.process_id, request.body.signal).finally(() => held.release());
      },
    );

    app.post(
      '/browsers/:id/process/:process_id/resize',
      {
        schema: {
          operationId: 'processResize',
          summary: 'Give the terminal of a process another size.',
          tags,
          params: OneProcess,
          body: ResizeRequest,
          response: { 200: Ok, ...refusals(...ofGuest, 'process_not_found', 'process_exited', 'no_terminal') },
        },
      },
      async (request) => {
        const { rows, cols } = request.body;
        const held = await sessions.holdFor(projectOf(request).id, request.params.id);
        return resize(held, request.params.process_id, rows, cols).finally(() => held.release());
      },
    );
  };
}
