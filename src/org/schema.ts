import { Type, type Static } from 'typebox';
import { FreeName, named, nullable, oneOf, Paging, Search, Timestamp } from '../api/schema.ts';

// Projects

const projectStatuses = ['active', 'archived'] as const;

export const Project = named(
  'Project',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    status: oneOf(projectStatuses),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
);

export const CreateProject = named('CreateProjectRequest', Type.Object({ name: FreeName }));

export const UpdateProject = named(
  'UpdateProjectRequest',
  Type.Object({
    name: Type.Optional(FreeName),
    status: Type.Optional(
      oneOf(projectStatuses, { description: 'An archived project keeps its data and accepts no requests.' }),
    ),
  }),
);

export const ProjectList = Type.Object({ ...Paging, ...Search });

// Limits

const Cap = Type.Integer({ minimum: 0, maximum: 1_000_000 });
const Removable = (what: string) =>
  Type.Optional(
    nullable({ ...Cap, description: `${what} 0 removes the cap; left out or null keeps it.` } as typeof Cap),
  );

export const ProjectLimits = named(
  'ProjectLimits',
  Type.Object({
    max_concurrent_sessions: nullable(Type.Integer()),
    max_concurrent_invocations: nullable(Type.Integer()),
    max_pooled_sessions: nullable(Type.Integer({ deprecated: true, description: 'Always null.' })),
  }),
);

export const UpdateProjectLimits = named(
  'UpdateProjectLimitsRequest',
  Type.Object({
    max_concurrent_sessions: Removable('Browsers at the same time.'),
    max_concurrent_invocations: Removable('Invocations at the same time.'),
    max_pooled_sessions: Type.Optional(nullable(Type.Integer({ deprecated: true, description: 'Refused.' }))),
  }),
);

export const OrgLimits = named(
  'OrgLimits',
  Type.Object({
    max_concurrent_sessions: Type.Integer({
      description: 'The capacity of all nodes together; set by CORRAL_MAX_SESSIONS.',
    }),
    default_project_max_concurrent_sessions: nullable(
      Type.Integer({ description: 'The cap of projects without a cap of their own.' }),
    ),
  }),
);

export const UpdateOrgLimits = named(
  'UpdateOrgLimitsRequest',
  Type.Object({ default_project_max_concurrent_sessions: Removable('Browsers at the same time in a project.') }),
);

// API keys

export const ApiKey = named(
  'ApiKey',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    created_at: Timestamp,
    created_by: named(
      'ApiKeyCreator',
      Type.Object({ id: Type.String(), email: Type.String({ format: 'email' }), name: nullable(Type.String()) }),
    ),
    expires_at: nullable(Timestamp),
    deleted_at: nullable(Timestamp),
    project_id: nullable(Type.String()),
    project_name: nullable(Type.String()),
    masked_key: Type.String({ description: 'Enough to recognise a key, not to use it.' }),
  }),
);

export const CreatedApiKey = named(
  'CreatedApiKey',
  Type.Object({ ...ApiKey.properties, key: Type.String({ description: 'The key itself. Shown this once.' }) }),
);

const Days = (least: number, description: string) => Type.Integer({ minimum: least, maximum: 3650, description });

export const CreateApiKey = named(
  'CreateApiKeyRequest',
  Type.Object({
    name: FreeName,
    days_to_expire: Type.Optional(nullable(Days(1, 'Days until it expires; never when left out.'))),
    project_id: Type.Optional(
      nullable(
        Type.String({
          maxLength: 255,
          description: 'The only project of the key; the whole organisation when left out.',
        }),
      ),
    ),
  }),
);

export const UpdateApiKey = named('UpdateApiKeyRequest', Type.Object({ name: FreeName }));

export const RotateApiKey = named(
  'RotateApiKeyRequest',
  Type.Object({
    days_to_expire: Type.Optional(nullable(Days(1, 'Days until the new key expires; never when left out.'))),
    expire_in_days: Type.Optional(nullable(Days(0, 'Days for which the old key remains valid; 7 when left out.'))),
  }),
);

const lifeFilters = {
  status: oneOf(['active', 'deleted', 'all'], { default: 'active' }),
  include_deleted: Type.Boolean({ default: false, deprecated: true, description: 'The same as `status=all`.' }),
};

export const ApiKeyList = Type.Object({
  ...Paging,
  ...Search,
  sort_by: oneOf(['created_at', 'name', 'expires_at'], { default: 'created_at' }),
  sort_direction: oneOf(['asc', 'desc'], { default: 'desc' }),
  ...lifeFilters,
});

export const IncludeDeleted = Type.Object({ include_deleted: Type.Boolean({ default: false }) });

// Audit log

const auditEntry = {
  timestamp: Timestamp,
  auth_strategy: Type.String(),
  user_id: Type.String({ description: 'The id of the key that was used.' }),
  email: Type.String(),
  status: Type.Integer(),
  method: Type.String(),
  path: Type.String(),
  route: Type.String(),
  domain: Type.String(),
  duration_ms: Type.Integer(),
  client_ip: Type.String(),
  user_agent: Type.String(),
};

export const AuditLogEntry = named('AuditLogEntry', Type.Object(auditEntry));

const auditFilters = {
  start: Type.String({ format: 'date-time', description: 'The start of the period.' }),
  end: Type.String({ format: 'date-time', description: 'The end of the period, at most 30 days after its start.' }),
  auth_strategy: Type.Optional(oneOf(['api_key', 'dashboard', 'oauth'])),
  service: Type.Optional(
    Type.String({ maxLength: 255, description: 'The tag of the route: projects, api_keys, browsers…' }),
  ),
  method: Type.Optional(Type.String({ maxLength: 16 })),
  exclude_method: Type.Optional(Type.Array(Type.String({ maxLength: 16 }), { maxItems: 10 })),
  search: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Part of the path, user id, email, address or status.' }),
  ),
  search_user_id: Type.Optional(
    Type.Array(Type.String({ maxLength: 255 }), { maxItems: 100, description: 'Entries of these users too.' }),
  ),
};

export const AuditLogList = Type.Object({
  ...auditFilters,
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 100 }),
  page_token: Type.Optional(Type.String({ maxLength: 255 })),
});

export const AuditLogExport = Type.Object({
  ...auditFilters,
  cursor: Type.Optional(Type.String({ maxLength: 255 })),
  limit: Type.Integer({ minimum: 1, maximum: 50_000, default: 50_000 }),
  format: oneOf(['jsonl', 'jsonl.gz'], { default: 'jsonl.gz' }),
});

export type Project = Static<typeof Project>;
export type ApiKey = Static<typeof ApiKey>;
export type CreatedApiKey = Static<typeof CreatedApiKey>;
export type CreateApiKey = Static<typeof CreateApiKey>;
export type RotateApiKey = Static<typeof RotateApiKey>;
export type UpdateProject = Static<typeof UpdateProject>;
export type ProjectLimits = Static<typeof ProjectLimits>;
export type UpdateProjectLimits = Static<typeof UpdateProjectLimits>;
export type OrgLimits = Static<typeof OrgLimits>;
export type UpdateOrgLimits = Static<typeof UpdateOrgLimits>;
export type AuditLogEntry = Static<typeof AuditLogEntry>;
export type ProjectList = Static<typeof ProjectList>;
export type ApiKeyList = Static<typeof ApiKeyList>;
export type AuditFilters = Pick<
  Static<typeof AuditLogList>,
  'start' | 'end' | 'auth_strategy' | 'service' | 'method' | 'exclude_method' | 'search' | 'search_user_id'
>;
