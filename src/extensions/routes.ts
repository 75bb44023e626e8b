import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { partsOf } from '../api/body-clock.ts';
import { projectOf } from '../api/caller.ts';
import { hungUp } from '../api/hung-up.ts';
import { sendPage } from '../api/paging.ts';
import { bytesAs, empty, listOf, refusals } from '../api/schema.ts';
import { errors } from '../errors.ts';
import { Extension, ExtensionList, FromChromeStore, LoadExtensions, UploadExtension } from './schema.ts';
import type { ExtensionService, Loadable } from './service.ts';
import { mostZip, mostZipBytes, type Upload } from '../uploads/uploads.ts';

const tags = ['extensions'];
const IdOrName = Type.Object({ id_or_name: Type.String() });
const slug = /^[A-Za-z0-9._-]{1,255}$/;
const octets = 'application/octet-stream';
const asForm = (schema: TSchema) => Type.Unsafe<unknown>({ content: { 'multipart/form-data': { schema } } });
/** Forms are checked part by part as they arrive; the schema is for the reference. */
const anything = () => () => true;

interface ExtensionRoom {
  extensions: ExtensionService;
  /** Loads extensions into a running session. */
  load: (projectId: string, sessionId: string, extensions: Loadable[]) => Promise<void>;
}

/** HTTP in, one service call, HTTP out. */
export function extensionRoutes(room: ExtensionRoom): FastifyPluginAsyncTypebox {
  const { extensions } = room;
  return async (app) => {
    app.get(
      '/extensions',
      {
        schema: {
          operationId: 'listExtensions',
          summary: 'List extensions, oldest first.',
          tags,
          querystring: ExtensionList,
          response: { 200: listOf(Extension, 'A page of extensions.') },
        },
      },
      async (request, reply) =>
        sendPage(reply, request.query, await extensions.list(projectOf(request).id, request.query)),
    );

    app.get(
      '/extensions/from_chrome_store',
      {
        schema: {
          operationId: 'getExtensionFromChromeStore',
          summary: 'Get an extension of the Chrome web store as a zip. Nothing is stored.',
          tags,
          querystring: FromChromeStore,
          response: {
            200: bytesAs(octets, 'The zip.'),
            ...refusals('chrome_store_unavailable', 'payload_too_large', 'storage_full', 'project_storage_full'),
          },
        },
      },
      async (request, reply) =>
        reply
          .type(octets)
          .send(Readable.from(await extensions.fromChromeStore(projectOf(request).id, request.query, hungUp(reply)))),
    );

    app.get(
      '/extensions/:id_or_name',
      {
        schema: {
          operationId: 'downloadExtension',
          summary: 'Download the uploaded zip of an extension.',
          tags,
          params: IdOrName,
          response: { 200: bytesAs(octets, 'The zip.'), ...refusals('extension_not_found') },
        },
      },
      async (request, reply) => {
        const { size, bytes } = await extensions.download(projectOf(request).id, request.params.id_or_name);
        return reply.type(octets).header('Content-Length', size).send(Readable.from(bytes));
      },
    );

    app.get(
      '/extensions/:id_or_name/metadata',
      {
        schema: {
          operationId: 'getExtension',
          summary: 'Get an extension.',
          tags,
          params: IdOrName,
          response: { 200: Extension, ...refusals('extension_not_found') },
        },
      },
      (request) => extensions.get(projectOf(request).id, request.params.id_or_name),
    );

    app.delete(
      '/extensions/:id_or_name',
      {
        schema: {
          operationId: 'deleteExtension',
          summary: 'Delete an extension. Browsers that have loaded it keep it.',
          tags,
          params: IdOrName,
          response: { 204: empty('Deleted.'), ...refusals('extension_not_found') },
        },
      },
      async (request, reply) => {
        await extensions.remove(projectOf(request).id, request.params.id_or_name);
        return reply.code(204).send(null);
      },
    );

    await app.register(formRoutes(room));
  };
}

/** In a scope of its own, because the bodies are forms. */
function formRoutes({ extensions, load }: ExtensionRoom): FastifyPluginAsyncTypebox {
  return async (forms) => {
    forms.removeAllContentTypeParsers();
    await forms.register(multipart, {
      limits: { fileSize: mostZipBytes + 1, files: 20, fields: 40, parts: 60, fieldSize: 1024, fieldNameSize: 200 },
    });

    forms.post(
      '/extensions',
      {
        config: { body: 'form' },
        validatorCompiler: anything,
        schema: {
          operationId: 'uploadExtension',
          summary: `Upload an extension: a zip of its unpacked directory, manifest version 3, at most ${mostZip}.`,
          tags,
          body: asForm(UploadExtension),
          response: {
            201: Extension,
            ...refusals('already_exists', 'payload_too_large', 'storage_full', 'project_storage_full'),
          },
        },
      },
      (request, reply) =>
        withForm(request, async (form) => {
          const zip = form.files.get('file');
          if (!zip) throw errors.invalid_input({ detail: 'file is missing.' });
          const name = form.fields.get('name');
          if (name !== undefined) checkName('name', name);
          return reply.code(201).send(await extensions.create(projectOf(request).id, name, zip));
        }),
    );

    forms.post(
      '/browsers/:id/extensions',
      {
        config: { body: 'form' },
        validatorCompiler: anything,
        schema: {
          operationId: 'uploadExtensionsToBrowser',
          summary: 'Load extensions into a running browser. Its clients stay connected.',
          tags: ['browsers'],
          params: Type.Object({ id: Type.String() }),
          body: asForm(LoadExtensions),
          response: {
            201: { description: 'Loaded.' },
            ...refusals(
              'session_not_found',
              'node_unreachable',
              'browser_silent',
              'extension_refused',
              'payload_too_large',
              'storage_full',
              'project_storage_full',
            ),
          },
        },
      },
      (request, reply) =>
        withForm(request, async (form) => {
          const { id } = request.params;
          await load(projectOf(request).id, id, await extensions.adHoc(listed(form)));
          return reply.code(201).send();
        }),
    );
  };

  /** Reads a whole form, each file to the service's disk; the files are removed afterwards. */
  async function withForm<T>(request: FastifyRequest, use: (form: Form) => Promise<T>): Promise<T> {
    const form: Form = { fields: new Map(), files: new Map() };
    try {
      for await (const part of partsOf(request)) {
        const name = nextName(form, part.fieldname);
        if (form.fields.has(name) || form.files.has(name))
          throw errors.invalid_input({ detail: `${name} came twice.` });
        if (part.type === 'file') form.files.set(name, await extensions.takeIn(projectOf(request).id, part.file));
        else form.fields.set(name, String(part.value));
      }
      return await use(form);
    } catch (error) {
      // The unread rest would block the next request on this connection.
      request.raw.unpipe();
      request.raw.resume();
      throw error;
    } finally {
      for (const file of form.files.values()) await file.remove();
    }
  }
}

interface Form {
  fields: Map<string, string>;
  files: Map<string, Upload>;
}

/** Clients write `extensions[0][name]`, `extensions[0].name` or `extensions.0.name`; and `extensions.name` in consecutive pairs. */
function nextName({ fields, files }: Form, name: string): string {
  const plain = name.replace(/\[(\w*)\]/g, '.$1');
  const [, field] = /^extensions\.\.?(name|zip_file)$/.exec(plain) ?? [];
  if (!field) return plain;
  for (let index = 0; ; index++) {
    const key = `extensions.${index}.${field}`;
    if (!fields.has(key) && !files.has(key)) return key;
  }
}

/** The items of a form, ordered by their numbers: parts may arrive in any order. */
function listed({ fields, files }: Form): { name: string; zip: Upload }[] {
  const numbers = new Set<number>();
  for (const key of [...fields.keys(), ...files.keys()]) {
    const [, number] = /^extensions\.(\d{1,4})\.(?:name|zip_file)$/.exec(key) ?? [];
    if (number === undefined) throw errors.invalid_input({ detail: `${key} is not a field here; send extensions.` });
    numbers.add(Number(number));
  }
  return [...numbers]
    .sort((a, b) => a - b)
    .map((number) => {
      const name = fields.get(`extensions.${number}.name`);
      const zip = files.get(`extensions.${number}.zip_file`);
      if (name === undefined) throw errors.invalid_input({ detail: `extensions.${number}.name is missing.` });
      if (!zip) throw errors.invalid_input({ detail: `extensions.${number}.zip_file is missing.` });
      checkName(`extensions.${number}.name`, name);
      return { name, zip };
    });
}

/** `.` and `..` would not give the extension a directory of its own. */
function checkName(field: string, name: string) {
  if (!slug.test(name) || /^\.\.?$/.test(name))
    throw errors.invalid_input({ detail: `${field} has characters it may not have; it must match ${slug.source}.` });
}
