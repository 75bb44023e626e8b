import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf, projectOf } from '../../api/caller.ts';
import { empty, refusals } from '../../api/schema.ts';
import { errors } from '../../errors.ts';
import type { Addresses } from '../addresses.ts';
import { ofBrowser, ofSession } from '../refusals.ts';
import { byteRange } from './range.ts';
import { Replay, StartReplay } from './schema.ts';
import type { ReplayService } from './service.ts';
import { replayView, replayViewCsp } from './view.ts';

const tags = ['browsers'];
const Id = Type.Object({ id: Type.String() });
const ReplayId = Type.Object({ id: Type.String(), replay_id: Type.String() });
const View = Type.Object({ jwt: Type.Optional(Type.String()), replay_id: Type.String({ maxLength: 64 }) });
const config = { access: 'token' } as const;

export function replayRoutes({
  replays,
  addresses,
}: {
  replays: ReplayService;
  addresses: Addresses;
}): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post(
      '/browsers/:id/replays',
      {
        schema: {
          operationId: 'startBrowserReplayRecording',
          summary: 'Record a video of the session from now on, or save its last seconds.',
          tags,
          params: Id,
          body: StartReplay,
          response: {
            201: Replay,
            ...refusals(
              ...ofBrowser,
              'engine_unavailable',
              'recording_limit_reached',
              'replay_not_found',
              'storage_full',
              'project_storage_full',
            ),
          },
        },
      },
      async (request, reply) =>
        reply
          .code(201)
          .send(await replays.start(projectOf(request).id, callerOf(request).keyId, request.params.id, request.body)),
    );

    app.get(
      '/browsers/:id/replays',
      {
        schema: {
          operationId: 'listBrowsersReplays',
          summary: 'List the videos of a session, also of an ended session.',
          tags,
          params: Id,
          response: {
            200: Type.Array(Replay, { description: 'The oldest first.' }),
            ...refusals(...ofSession),
          },
        },
      },
      (request) => replays.list(projectOf(request).id, callerOf(request).keyId, request.params.id),
    );

    app.get(
      '/browsers/:id/replays/:replay_id',
      {
        schema: {
          operationId: 'getBrowsersReplaysById',
          summary: 'Download the video as MP4. Range requests are supported.',
          tags,
          params: ReplayId,
          response: {
            200: {
              description: 'The video.',
              content: { 'video/mp4': { schema: { type: 'string', format: 'binary' } } },
            },
            202: {
              ...empty('The video is being created. Try again.'),
              headers: { 'Retry-After': Type.Integer({ minimum: 1 }) },
            },
            ...refusals(...ofSession, 'replay_not_found'),
          },
        },
      },
      async (request, reply) => {
        const { id, replay_id } = request.params;
        await send(request, reply, await replays.videoFor(projectOf(request).id, id, replay_id), replay_id);
        return reply as never;
      },
    );

    app.post(
      '/browsers/:id/replays/:replay_id/stop',
      {
        schema: {
          operationId: 'stopBrowserReplayRecording',
          summary: 'End a recording. The video is available a moment later.',
          tags,
          params: ReplayId,
          response: { 200: empty('Stopped.'), ...refusals(...ofSession, 'replay_not_found') },
        },
      },
      async (request, reply) => {
        await replays.stop(projectOf(request).id, request.params.id, request.params.replay_id);
        return reply.code(200).send(undefined as never);
      },
    );

    app.get('/browser/replays', { config, schema: { querystring: View } }, async (request, reply) => {
      const { jwt, replay_id } = request.query;
      const { sessionId } = await addresses.admit(jwt, 'replay');
      const ready = (await replays.video(sessionId, replay_id)) !== undefined;
      const videoPath = `replays/video?jwt=${jwt}&replay_id=${encodeURIComponent(replay_id)}`;
      void reply.headers({
        'Content-Security-Policy': replayViewCsp,
        'Cache-Control': 'no-store',
        'Referrer-Policy': 'no-referrer',
      });
      return reply.type('text/html; charset=utf-8').send(replayView({ ready, videoPath, title: replay_id }));
    });

    app.get('/browser/replays/video', { config, schema: { querystring: View } }, async (request, reply) => {
      const { jwt, replay_id } = request.query;
      const { sessionId } = await addresses.admit(jwt, 'replay');
      await send(request, reply, await replays.video(sessionId, replay_id), replay_id);
      return reply;
    });
  };
}

/** A file with range requests, as players need them; 202 while there is none. */
async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  video: { path: string } | undefined,
  id: string,
): Promise<void> {
  if (!video) return void reply.code(202).header('Retry-After', '1').send(undefined);
  const found = await stat(video.path).catch(() => undefined);
  if (!found) throw errors.replay_not_found({ detail: 'The video of this replay is gone.' });
  const range = byteRange(request.headers.range, found.size);
  void reply.headers({
    'Content-Type': 'video/mp4',
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, max-age=3600',
    'Content-Disposition': `inline; filename="${id}.mp4"`,
  });
  if (range === 'unsatisfiable') {
    return void reply
      .code(416)
      .header('Content-Range', `bytes */${found.size}`)
      .removeHeader('Content-Type')
      .send(undefined);
  }
  const { start, end } = range ?? { start: 0, end: found.size - 1 };
  if (range) void reply.code(206).header('Content-Range', `bytes ${start}-${end}/${found.size}`);
  void reply.header('Content-Length', end - start + 1);
  await reply.send(createReadStream(video.path, { start, end }));
}
