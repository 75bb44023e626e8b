import multipart from '@fastify/multipart';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { partsOf } from '../api/body-clock.ts';
import { projectOf } from '../api/caller.ts';
import { sendPage } from '../api/paging.ts';
import { empty, eventsOf, listOf, refusals } from '../api/schema.ts';
import { eventStream, type EventStream } from '../api/sse.ts';
import { takeProjectPlace } from '../api/stream-places.ts';
import { errors, ServiceError } from '../errors.ts';
import { mostZip, mostZipBytes, type Upload } from '../uploads/uploads.ts';
import type { following } from './event-streams.ts';
import { readForm } from './form.ts';
import { App, AppList, CreateDeployment, Deployment, DeploymentEvent, DeploymentList, Since } from './schema.ts';
import type { DeploymentService } from './service.ts';
import { readSince } from './since.ts';

const tags = ['deployments'];
const Id = Type.Object({ id: Type.String() });
const asForm = (schema: TSchema) => Type.Unsafe<unknown>({ content: { 'multipart/form-data': { schema } } });
const anything = () => () => true;

interface DeploymentRoom {
  deployments: DeploymentService;
  following: ReturnType<typeof following>;
  /** Takes a zip in, to the service's disk. */
  takeIn: (projectId: string, content: AsyncIterable<Buffer>) => Promise<Upload>;
  /** Aborts when the service closes: streams end then. */
  closing: AbortSignal;
}

/** HTTP in, one service call, HTTP out. */
export function deploymentRoutes(room: DeploymentRoom): FastifyPluginAsyncTypebox {
  const { deployments } = room;
  return async (app) => {
    app.get(
      '/deployments',
      {
        schema: {
          operationId: 'listDeployments',
          summary: 'List deployments, newest first. A page ends early when it is large.',
          tags,
          querystring: DeploymentList,
          response: { 200: listOf(Deployment, 'A page of deployments.'), ...refusals('search_too_slow') },
        },
      },
      async (request, reply) => {
        const { rows, cut } = await deployments.list(projectOf(request).id, request.query);
        return sendPage(reply, request.query, rows, cut);
      },
    );

    app.get(
      '/deployments/:id',
      {
        schema: {
          operationId: 'getDeployment',
          summary: 'Get a deployment.',
          tags,
          params: Id,
          response: { 200: Deployment, ...refusals('deployment_not_found') },
        },
      },
      (request) => deployments.get(projectOf(request).id, request.params.id),
    );

    app.delete(
      '/deployments/:id',
      {
        config: { apps: false },
        schema: {
          operationId: 'deleteDeployment',
          summary: 'Stop a deployment: its invocations end, and its key, source and build are deleted.',
          tags,
          params: Id,
          response: { 204: empty('Stopped.'), ...refusals('deployment_not_found') },
        },
      },
      async (request, reply) => {
        await deployments.remove(projectOf(request).id, request.params.id);
        return reply.code(204).send(null);
      },
    );

    app.get(
      '/deployments/:id/events',
      {
        schema: {
          operationId: 'followDeployment',
          summary: 'Follow a deployment: its log and its states, until it is stopped or has failed.',
          tags,
          params: Id,
          querystring: Since,
          response: {
            200: eventsOf(DeploymentEvent, 'Its events.'),
            ...refusals('deployment_not_found', 'too_many_streams'),
          },
        },
      },
      async (request, reply) => {
        const since = readSince(request.query.since);
        const { id, project_id: project } = await deployments.find(projectOf(request).id, request.params.id);
        takeProjectPlace(project, 'deployments', reply);
        await stream(reply, room.closing, ({ closed: signal, reserve }) =>
          room.following.ofDeployment({ id, since, signal, project, reserve }),
        );
      },
    );

    app.get(
      '/apps',
      {
        schema: {
          operationId: 'listApps',
          summary:
            'List the apps that can be invoked, newest first: one entry for each version. A page ends early when it is large.',
          tags: ['apps'],
          querystring: AppList,
          response: { 200: listOf(App, 'A page of apps.'), ...refusals('search_too_slow') },
        },
      },
      async (request, reply) => {
        const { rows, cut } = await deployments.apps(projectOf(request).id, request.query);
        return sendPage(reply, request.query, rows, cut);
      },
    );

    await app.register(formRoutes(room));
  };
}

/** Sends events until their source ends, the reader leaves or the service closes. A failure is the last event. */
export async function stream(
  reply: FastifyReply,
  closing: AbortSignal,
  source: (events: Pick<EventStream, 'closed' | 'reserve'>) => AsyncIterable<unknown>,
): Promise<void> {
  const events = eventStream(reply, undefined, closing);
  try {
    for await (const event of source(events)) if (!(await events.send(event))) return;
  } catch (error) {
    const { code, message } = error instanceof ServiceError ? error : errors.internal({ requestId: reply.request.id });
    await events.send({ event: 'error', timestamp: new Date().toISOString(), error: { code, message } });
    if (!(error instanceof ServiceError)) reply.request.log.error({ error }, 'events.broke');
  } finally {
    events.end();
  }
}

/** In a scope of its own, because the body is a form. */
function formRoutes({ deployments, takeIn }: DeploymentRoom): FastifyPluginAsyncTypebox {
  return async (forms) => {
    forms.removeAllContentTypeParsers();
    await forms.register(multipart, {
      limits: {
        fileSize: mostZipBytes + 1,
        files: 1,
        fields: 250,
        parts: 251,
        fieldSize: 256 * 1024,
        fieldNameSize: 300,
      },
    });

    forms.post(
      '/deployments',
      {
        config: { body: 'form', apps: false }, // what it deploys would have a key that outlives it
        validatorCompiler: anything,
        schema: {
          operationId: 'createDeployment',
          summary: `Deploy apps: a zip of their source, at most ${mostZip}, or a git repository. A node builds it, then its actions can be invoked.`,
          tags,
          body: asForm(CreateDeployment),
          response: {
            201: Deployment,
            ...refusals(
              'payload_too_large',
              'deployment_queue_full',
              'storage_full',
              'disk_overused',
              'project_storage_full',
              'no_sandbox',
            ),
          },
        },
      },
      (request, reply) =>
        withForm(request, async (fields, zip) => {
          const { entrypoint, git, ...rest } = readForm(fields, zip !== undefined);
          const source = zip ? { zip, entrypoint: entrypoint! } : { git: git! };
          return reply.code(201).send(await deployments.create(projectOf(request).id, { ...rest, source }));
        }),
    );
  };

  /** Reads a whole form, its file to the service's disk; the file is removed afterwards. */
  async function withForm<T>(
    request: FastifyRequest,
    use: (fields: Map<string, string>, zip: Upload | undefined) => Promise<T>,
  ): Promise<T> {
    const fields = new Map<string, string>();
    let fieldBytes = 0;
    let zip: Upload | undefined;
    try {
      for await (const part of partsOf(request)) {
        const { fieldname: name } = part;
        if (fields.has(name) || (name === 'file' && zip)) throw errors.invalid_input({ detail: `${name} came twice.` });
        fieldBytes += part.type === 'file' ? 0 : name.length + String(part.value).length;
        if (fieldBytes > mostFieldBytes)
          throw errors.invalid_input({
            detail: `The fields beside the file have more than ${mostFieldBytes / 1024} KiB.`,
          });
        if (part.type === 'file' && name === 'source') fields.set(name, await textOf(part.file));
        else if (part.type !== 'file') fields.set(name, String(part.value));
        else if (name === 'file') zip = await takeIn(projectOf(request).id, part.file);
        else throw errors.invalid_input({ detail: `${name} is not a file of a deployment; send it as file.` });
      }
      return await use(fields, zip);
    } catch (error) {
      // The unread rest would block the next request on this connection.
      request.raw.unpipe();
      request.raw.resume();
      throw error;
    } finally {
      await zip?.remove();
    }
  }
}

/** Clients may send `source` as a part of type application/json, which counts as a file. */
async function textOf(content: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of content) {
    size += piece.length;
    if (size > mostSource) throw errors.invalid_input({ detail: 'source has more than 64 KiB.' });
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

const mostSource = 64 * 1024;
/** Of all together; each alone is bounded by the parser. */
const mostFieldBytes = 512 * 1024;
