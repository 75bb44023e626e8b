import { Readable } from 'node:stream';
import multipart, { type Multipart } from '@fastify/multipart';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { partsOf } from '../../api/body-clock.ts';
import { countedParts } from '../../api/large.ts';
import { bytesAs, empty, eventsOf, refusals } from '../../api/schema.ts';
import { eachOf, heldSessions, type HeldSessions, type Use } from '../held-routes.ts';
import { ofFiles, ofGuest, ofWriting } from '../refusals.ts';
import type { SessionService } from '../service.ts';
import {
  AtPath,
  CreateDirectory,
  DownloadZstd,
  FileEvent,
  FileInfo,
  MovePath,
  PathRequest,
  SetPermissions,
  StartedWatch,
  StartWatch,
  UploadFiles,
  UploadZip,
  UploadZstd,
  WriteFile,
} from './schema.ts';
import {
  change,
  download,
  info,
  list,
  readWatch,
  startWatch,
  stopWatch,
  upload,
  uploadArchive,
  uploadFiles,
  type Part,
} from './service.ts';

const tags = ['browsers'];
const Id = Type.Object({ id: Type.String() });
const OneWatch = Type.Object({ id: Type.String(), watch_id: Type.String({ maxLength: 64 }) });
const limits = { fileSize: Number.POSITIVE_INFINITY, fieldSize: 8192, fields: 2000, files: 1000, parts: 3000 };
/** Streamed bodies are checked while they arrive, not before. */
const anything = () => () => true;

/** No body at all: clients take an empty body for JSON, and `null` for an answer. */
const nothing = undefined as never;

type App = Parameters<FastifyPluginAsyncTypebox>[0];

/** Files inside a session. */
export function fsRoutes({ sessions }: { sessions: SessionService }): FastifyPluginAsyncTypebox {
  const held = heldSessions({ sessions });
  return async (app) => {
    readingRoutes(app, held);
    changingRoutes(app, held);
    watchRoutes(app, held);
    await app.register(async (scope) => bytesIn(scope, held));
    await app.register(async (scope) => formsIn(scope, held));
  };
}

function readingRoutes(app: App, { using, sendBytes }: HeldSessions) {
  const send = (
    request: FastifyRequest,
    reply: FastifyReply,
    what: Parameters<typeof download>[1],
    args: object,
    headers: Record<string, string>,
  ): Promise<FastifyReply> =>
    sendBytes(request, reply, async ({ held, gone }) => {
      const { size, content, close } = await download(held, what, args, gone);
      // A file of /proc reports a size of zero although it has content.
      if (size !== undefined && size > 0) void reply.header('Content-Length', size);
      void reply.headers(headers);
      return { content: Readable.from(size ? exactly(size, content) : content, { objectMode: false }), close };
    });

  app.get(
    '/browsers/:id/fs/read_file',
    {
      schema: {
        operationId: 'readFile',
        summary: 'Read a file.',
        tags,
        params: Id,
        querystring: AtPath,
        response: {
          200: bytesAs('application/octet-stream', 'The file.'),
          ...refusals(...ofFiles),
        },
      },
    },
    (request, reply) => send(request, reply, 'read', request.query, { 'Content-Type': 'application/octet-stream' }),
  );

  app.get(
    '/browsers/:id/fs/download_dir_zip',
    {
      schema: {
        operationId: 'downloadDirZip',
        summary: 'Download a directory as a zip archive.',
        tags,
        params: Id,
        querystring: AtPath,
        response: { 200: bytesAs('application/zip', 'The archive.'), ...refusals(...ofFiles) },
      },
    },
    (request, reply) => send(request, reply, 'zip', request.query, { 'Content-Type': 'application/zip' }),
  );

  app.get(
    '/browsers/:id/fs/download_dir_zstd',
    {
      schema: {
        operationId: 'downloadDirZstd',
        summary: 'Download a directory as a tar archive compressed with zstd.',
        tags,
        params: Id,
        querystring: DownloadZstd,
        response: { 200: bytesAs('application/zstd', 'The archive.'), ...refusals(...ofFiles) },
      },
    },
    (request, reply) => {
      const { path, compression_level: level = 'default' } = request.query;
      return send(request, reply, 'pack', { path, level }, { 'Content-Type': 'application/zstd' });
    },
  );

  app.get(
    '/browsers/:id/fs/list_files',
    {
      schema: {
        operationId: 'listFiles',
        summary: 'List a directory.',
        tags,
        params: Id,
        querystring: AtPath,
        response: { 200: Type.Array(FileInfo), ...refusals(...ofFiles, 'memory_full') },
      },
    },
    async (request, reply) => {
      const parts = await using(request, reply, ({ held, gone }) => list(held, request.query.path, gone));
      return reply.type('application/json; charset=utf-8').send(countedParts(reply, parts) as never);
    },
  );

  app.get(
    '/browsers/:id/fs/file_info',
    {
      schema: {
        operationId: 'fileInfo',
        summary: 'Get the type, size and mode of a file or directory.',
        tags,
        params: Id,
        querystring: AtPath,
        response: { 200: FileInfo, ...refusals(...ofFiles) },
      },
    },
    (request, reply) => using(request, reply, ({ held }) => info(held, request.query.path)),
  );
}

/** The paths that make one change and have no response body. */
function changingRoutes(app: App, { using }: HeldSessions) {
  const changes = (
    name: string,
    status: 200 | 201,
    route: {
      operationId: string;
      summary: string;
      body: TSchema;
      refusals: object;
      ask?: Parameters<typeof change>[1];
      args?: (body: never) => object;
    },
  ) => {
    const { operationId, summary, body, args = (given: object) => given } = route;
    app.put(
      `/browsers/:id/fs/${name}`,
      {
        schema: {
          operationId,
          summary,
          tags,
          params: Id,
          body,
          response: { [status]: empty('Done.'), ...route.refusals },
        },
      },
      async (request, reply) => {
        const ask = route.ask ?? (name as Parameters<typeof change>[1]);
        await using(request, reply, ({ held }) => change(held, ask, args(request.body as never)));
        return reply.code(status).send(nothing);
      },
    );
  };

  changes('create_directory', 201, {
    operationId: 'createDirectory',
    summary: 'Create a directory and its parents. An existing directory is no error.',
    body: CreateDirectory,
    refusals: refusals(...ofWriting),
    args: ({ path, mode = null }: { path: string; mode?: string | null }) => ({ path, mode }),
  });
  changes('delete_file', 200, {
    operationId: 'deleteFile',
    summary: 'Delete a file.',
    body: PathRequest,
    refusals: refusals(...ofFiles),
  });
  changes('delete_directory', 200, {
    operationId: 'deleteDirectory',
    summary: 'Delete a directory and its contents.',
    body: PathRequest,
    refusals: refusals(...ofFiles),
  });
  changes('move', 200, {
    operationId: 'movePath',
    summary: 'Move or rename a file or directory.',
    body: MovePath,
    refusals: refusals(...ofWriting),
  });
  changes('set_file_permissions', 200, {
    operationId: 'setFilePermissions',
    summary: 'Change the mode and the owner of a file.',
    body: SetPermissions,
    refusals: refusals(...ofFiles),
    ask: 'set_permissions',
    args: (body: { owner?: string; group?: string }) => ({ owner: null, group: null, ...body }),
  });
}

function watchRoutes(app: App, { using, sendEvents }: HeldSessions) {
  app.post(
    '/browsers/:id/fs/watch',
    {
      schema: {
        operationId: 'startFsWatch',
        summary: 'Watch a directory. Events are kept until they are read.',
        tags,
        params: Id,
        body: StartWatch,
        response: { 201: StartedWatch, ...refusals(...ofFiles, 'too_many_watches') },
      },
    },
    async (request, reply) => {
      const { path, recursive = false } = request.body;
      return reply.code(201).send(await using(request, reply, ({ held }) => startWatch(held, { path, recursive })));
    },
  );

  app.get(
    '/browsers/:id/fs/watch/:watch_id/events',
    {
      schema: {
        operationId: 'streamFsEvents',
        summary: 'Stream the events of a watched directory, in order, until the watch is stopped.',
        tags,
        params: OneWatch,
        response: {
          200: eventsOf(FileEvent, 'The events.'),
          ...refusals(...ofGuest, 'watch_not_found', 'invalid_input', 'too_many_streams'),
        },
      },
    },
    (request, reply) =>
      sendEvents(request, reply, async ({ held, gone }) =>
        eachOf(await readWatch(held, request.params.watch_id, gone)),
      ),
  );

  app.delete(
    '/browsers/:id/fs/watch/:watch_id',
    {
      schema: {
        operationId: 'stopFsWatch',
        summary: 'Stop watching. A stream of its events sends the remaining events and ends.',
        tags,
        params: OneWatch,
        response: { 204: empty('Stopped.'), ...refusals(...ofGuest, 'watch_not_found', 'invalid_input') },
      },
    },
    async (request, reply) => {
      await using(request, reply, ({ held }) => stopWatch(held, request.params.watch_id));
      return reply.code(204).send(null);
    },
  );
}

/** A body that is processed while it arrives. If it is refused the rest of it is drained, so that the client reads the answer. */
async function taking(
  { using }: HeldSessions,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (use: Use) => Promise<void>,
): Promise<void> {
  try {
    await using(request, reply, work);
  } catch (error) {
    request.raw.unpipe();
    setImmediate(() => request.raw.resume()); // once its reader has released it
    throw error;
  }
}

/** In a scope of its own: the body is a file, for every content type. */
function bytesIn(app: App, held: HeldSessions) {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.put(
    '/browsers/:id/fs/write_file',
    {
      config: { body: 'stream' },
      validatorCompiler: ({ schema, httpPart }) =>
        httpPart === 'body' ? anything() : app.validatorCompiler!({ schema, httpPart } as never),
      schema: {
        operationId: 'writeFile',
        summary: 'Write a file and create its parent directories. If writing fails, the file does not change.',
        tags,
        params: Id,
        querystring: WriteFile,
        body: bytesAs('application/octet-stream', 'The file.'),
        response: { 201: empty('Written.'), ...refusals(...ofWriting, 'empty_file') },
      },
    },
    async (request, reply) => {
      const { path, mode = null } = request.query;
      const content = request.body instanceof Readable ? request.body : Readable.from([]);
      await taking(held, request, reply, ({ held, gone }) => upload(held, { path, mode }, content, gone));
      return reply.code(201).send(nothing);
    },
  );
}

async function formsIn(app: App, held: HeldSessions) {
  app.removeAllContentTypeParsers();
  await app.register(multipart, { limits, throwFileSizeLimit: true });

  app.post(
    '/browsers/:id/fs/upload',
    {
      config: { body: 'form' },
      validatorCompiler: anything,
      schema: {
        operationId: 'uploadFiles',
        summary: 'Write several files. All of them are written, or none.',
        tags,
        params: Id,
        body: asForm(UploadFiles),
        response: { 201: empty('Written.'), ...refusals(...ofWriting) },
      },
    },
    async (request, reply) => {
      await taking(held, request, reply, ({ held, gone }) => uploadFiles(held, fieldsOf(request), gone));
      return reply.code(201).send(nothing);
    },
  );

  const unpacking = (
    path: `/browsers/:id/${string}`,
    format: 'zip' | 'zstd',
    { operationId, archive, body }: { operationId: string; archive: string; body: TSchema },
  ) =>
    app.post(
      path,
      {
        config: { body: 'form' },
        validatorCompiler: anything,
        schema: {
          operationId,
          summary: `Unpack a ${archive}. A refused archive changes nothing.`,
          tags,
          params: Id,
          body: asForm(body),
          response: { 201: empty('Unpacked.'), ...refusals(...ofWriting, 'bad_archive', 'archive_too_large') },
        },
      },
      async (request, reply) => {
        await taking(held, request, reply, ({ held, gone }) => uploadArchive(held, format, fieldsOf(request), gone));
        return reply.code(201).send(nothing);
      },
    );
  unpacking('/browsers/:id/fs/upload_zip', 'zip', {
    operationId: 'uploadZip',
    archive: 'zip archive',
    body: UploadZip,
  });
  unpacking('/browsers/:id/fs/upload_zstd', 'zstd', {
    operationId: 'uploadZstd',
    archive: 'tar archive compressed with zstd',
    body: UploadZstd,
  });
}

const asForm = (schema: TSchema) => Type.Unsafe<unknown>({ content: { 'multipart/form-data': { schema } } });

async function* fieldsOf(request: FastifyRequest): AsyncGenerator<Part> {
  for await (const part of partsOf(request)) yield partOf(part);
}

function partOf(part: Multipart): Part {
  if (part.type === 'file') return { name: part.fieldname, content: part.file };
  return { name: part.fieldname, value: String(part.value) };
}

/** Exactly as many bytes as announced: the client and HTTP both count them. */
async function* exactly(size: number, content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let left = size;
  for await (const chunk of content) {
    yield chunk.length > left ? chunk.subarray(0, left) : chunk;
    left -= chunk.length;
    if (left <= 0) return; // the file has grown since
  }
  if (left > 0) throw new Error('The file became shorter while it was read.');
}
