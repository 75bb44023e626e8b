import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { callerOf } from '../api/caller.ts';
import { sendPage } from '../api/paging.ts';
import { empty, listOf, refusals } from '../api/schema.ts';
import type { ApiKeyService } from './api-keys.ts';
import type { AuditService } from './audit.ts';
import type { LimitService } from './limits.ts';
import type { ProjectService } from './projects.ts';
import * as shape from './schema.ts';

const Id = Type.Object({ id: Type.String() });
const config = { access: 'org' } as const;
/** An app may read which project it is in, and what that may use. */
const readable = { ...config, apps: true } as const;

type App = Parameters<FastifyPluginAsyncTypebox>[0];

interface OrgRoom {
  projects: ProjectService;
  limits: LimitService;
  keys: ApiKeyService;
  audit: AuditService;
}

/** HTTP in, one service call, HTTP out. */
export function orgRoutes(room: OrgRoom): FastifyPluginAsyncTypebox {
  return async (app) => {
    projectRoutes(app, room);
    limitRoutes(app, room);
    keyRoutes(app, room);
    auditRoutes(app, room);
  };
}

function projectRoutes(app: App, { projects }: OrgRoom) {
  const tags = ['projects'];
  app.post(
    '/org/projects',
    {
      config,
      schema: {
        operationId: 'createProject',
        summary: 'Create a project.',
        tags,
        body: shape.CreateProject,
        response: { 201: shape.Project, ...refusals('already_exists', 'project_not_found') },
      },
    },
    async (request, reply) => reply.code(201).send(await projects.create(callerOf(request), request.body.name)),
  );

  app.get(
    '/org/projects',
    {
      config: readable,
      schema: {
        operationId: 'listProjects',
        summary: 'List projects.',
        tags,
        querystring: shape.ProjectList,
        response: {
          200: listOf(shape.Project, 'A page of projects, oldest first.'),
          ...refusals('project_not_found'),
        },
      },
    },
    async (request, reply) => sendPage(reply, request.query, await projects.list(callerOf(request), request.query)),
  );

  app.get(
    '/org/projects/:id',
    {
      config: readable,
      schema: {
        operationId: 'getProject',
        summary: 'Get a project by id or name.',
        tags,
        params: Id,
        response: { 200: shape.Project, ...refusals('project_not_found') },
      },
    },
    (request) => projects.get(callerOf(request), request.params.id),
  );

  app.patch(
    '/org/projects/:id',
    {
      config,
      schema: {
        operationId: 'updateProject',
        summary: 'Rename, archive or unarchive a project.',
        tags,
        params: Id,
        body: shape.UpdateProject,
        response: {
          200: shape.Project,
          ...refusals('project_not_found', 'already_exists', 'last_active_project', 'default_project'),
        },
      },
    },
    (request) => projects.update(callerOf(request), request.params.id, request.body),
  );

  app.delete(
    '/org/projects/:id',
    {
      config,
      schema: {
        operationId: 'deleteProject',
        summary: 'Delete an empty project and its keys.',
        tags,
        params: Id,
        response: {
          204: empty('Deleted.'),
          ...refusals('project_not_found', 'project_not_empty', 'last_active_project', 'default_project'),
        },
      },
    },
    async (request, reply) => {
      await projects.remove(callerOf(request), request.params.id);
      return reply.code(204).send(null);
    },
  );
}

function limitRoutes(app: App, { limits }: OrgRoom) {
  const tags = ['limits'];
  app.get(
    '/org/projects/:id/limits',
    {
      config: readable,
      schema: {
        operationId: 'getProjectLimits',
        summary: 'Get the caps of a project.',
        tags,
        params: Id,
        response: { 200: shape.ProjectLimits, ...refusals('project_not_found') },
      },
    },
    (request) => limits.project(callerOf(request), request.params.id),
  );

  app.patch(
    '/org/projects/:id/limits',
    {
      config,
      schema: {
        operationId: 'updateProjectLimits',
        summary: 'Set or remove caps of a project.',
        tags,
        params: Id,
        body: shape.UpdateProjectLimits,
        response: { 200: shape.ProjectLimits, ...refusals('project_not_found') },
      },
    },
    (request) => limits.updateProject(callerOf(request), request.params.id, request.body),
  );

  app.get(
    '/org/limits',
    {
      config: readable,
      schema: {
        operationId: 'getOrgLimits',
        summary: 'Get the caps of the organisation.',
        tags,
        response: { 200: shape.OrgLimits },
      },
    },
    () => limits.org(),
  );

  app.patch(
    '/org/limits',
    {
      config,
      schema: {
        operationId: 'updateOrgLimits',
        summary: 'Set the cap of projects without a cap of their own.',
        tags,
        body: shape.UpdateOrgLimits,
        response: { 200: shape.OrgLimits },
      },
    },
    (request) => limits.updateOrg(callerOf(request), request.body),
  );
}

function keyRoutes(app: App, { keys }: OrgRoom) {
  const tags = ['api_keys'];
  app.post(
    '/org/api_keys',
    {
      config,
      schema: {
        operationId: 'createApiKey',
        summary: 'Create an API key. Only this answer contains the full key.',
        tags,
        body: shape.CreateApiKey,
        response: { 201: shape.CreatedApiKey, ...refusals('project_not_found', 'api_key_limit_reached') },
      },
    },
    async (request, reply) => reply.code(201).send(await keys.create(callerOf(request), request.body)),
  );

  app.get(
    '/org/api_keys',
    {
      config,
      schema: {
        operationId: 'listApiKeys',
        summary: 'List API keys.',
        tags,
        querystring: shape.ApiKeyList,
        response: { 200: listOf(shape.ApiKey, 'A page of keys, masked.') },
      },
    },
    async (request, reply) => sendPage(reply, request.query, await keys.list(callerOf(request), request.query)),
  );

  app.get(
    '/org/api_keys/:id',
    {
      config,
      schema: {
        operationId: 'getApiKey',
        summary: 'Get an API key.',
        tags,
        params: Id,
        querystring: shape.IncludeDeleted,
        response: { 200: shape.ApiKey, ...refusals('api_key_not_found') },
      },
    },
    (request) => keys.get(callerOf(request), request.params.id, request.query.include_deleted),
  );

  app.patch(
    '/org/api_keys/:id',
    {
      config,
      schema: {
        operationId: 'updateApiKey',
        summary: 'Rename an API key.',
        tags,
        params: Id,
        body: shape.UpdateApiKey,
        response: { 200: shape.ApiKey, ...refusals('api_key_not_found') },
      },
    },
    (request) => keys.rename(callerOf(request), request.params.id, request.body.name),
  );

  app.post(
    '/org/api_keys/:id/rotate',
    {
      config,
      schema: {
        operationId: 'rotateApiKey',
        summary: 'Create a successor of the key. The old key remains valid for a while.',
        tags,
        params: Id,
        body: shape.RotateApiKey,
        response: { 201: shape.CreatedApiKey, ...refusals('api_key_not_found', 'api_key_limit_reached') },
      },
    },
    async (request, reply) =>
      reply.code(201).send(await keys.rotate(callerOf(request), request.params.id, request.body)),
  );

  app.delete(
    '/org/api_keys/:id',
    {
      config,
      schema: {
        operationId: 'deleteApiKey',
        summary: 'Revoke an API key immediately, on every node.',
        tags,
        params: Id,
        response: { 204: empty('Revoked.'), ...refusals('api_key_not_found', 'cannot_delete_current_key') },
      },
    },
    async (request, reply) => {
      await keys.remove(callerOf(request), request.params.id);
      return reply.code(204).send(null);
    },
  );
}

function auditRoutes(app: App, { audit }: OrgRoom) {
  const tags = ['audit_logs'];
  app.get(
    '/audit-logs',
    {
      config,
      schema: {
        operationId: 'listAuditLogs',
        summary: 'Read the audit log, newest first.',
        tags,
        querystring: shape.AuditLogList,
        response: {
          200: Object.assign(Type.Array(shape.AuditLogEntry), {
            description: 'A page of entries.',
            headers: {
              'X-Limit': Type.Integer(),
              'X-Has-More': Type.Boolean(),
              'X-Next-Page-Token': Type.String({
                description: 'The `page_token` of the next page, when there is one.',
              }),
            },
          }),
          ...refusals('search_too_slow'),
        },
      },
    },
    async (request, reply) => {
      const { entries, next } = await audit.list(callerOf(request), request.query);
      void reply.headers({ 'X-Limit': String(request.query.limit), 'X-Has-More': String(next !== undefined) });
      if (next) void reply.header('X-Next-Page-Token', next);
      return entries;
    },
  );

  app.get(
    '/audit-logs/export/chunk',
    {
      config,
      schema: {
        operationId: 'exportAuditLogs',
        summary: 'Download entries as JSON lines, chunk by chunk. A chunk ends early at about 4 MiB.',
        tags,
        querystring: shape.AuditLogExport,
        response: {
          200: {
            description: 'One chunk.',
            headers: {
              'X-Has-More': Type.Boolean(),
              'X-Next-Cursor': Type.String(),
              'X-Row-Count': Type.Integer(),
              'X-Content-Sha256': Type.String(),
            },
            content: {
              'application/octet-stream': { schema: Type.Unsafe<Buffer>({ type: 'string', format: 'binary' }) },
            },
          },
          ...refusals('search_too_slow'),
        },
      },
    },
    async (request, reply) => {
      const { body, rows, next, sha256 } = await audit.exportChunk(callerOf(request), request.query);
      void reply.headers({
        'X-Has-More': String(next !== undefined),
        'X-Row-Count': String(rows),
        'X-Content-Sha256': sha256,
      });
      if (next) void reply.header('X-Next-Cursor', next);
      return reply.type('application/octet-stream').send(body);
    },
  );
}
