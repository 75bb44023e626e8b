-- An app's source, built and run by this service.
create table deployments (
  id              text primary key,
  project_id      text not null references projects (id),
  status          text not null default 'queued',
  status_reason   text,
  version         text not null,
  region          text not null,
  force           boolean not null,
  entrypoint      text not null,
  -- The file that workers load: the entry point, or what it was compiled to.
  entry           text,
  -- Their values are sealed.
  env_names       text[] not null,
  source_type     text not null check (source_type in ('file', 'github')),
  source_url      text,
  source_ref      text,
  source_path     text,
  source_checksum text,
  source_bytes    bigint not null default 0,
  build_bytes     bigint not null default 0,
  -- The key that its workers use, until it stops.
  key_id          text,
  -- The node that builds it, and how often a build was begun.
  node_id         text,
  attempts        integer not null default 0,
  -- Another deployment has its apps now. It stops when its last invocation has ended.
  replaced        boolean not null default false,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now()
);
create index deployments_listed on deployments (project_id, created_at desc, id);
create index deployments_queued on deployments (created_at) where status = 'queued';
create index deployments_building on deployments (node_id) where status = 'in_progress';

-- The source and the build, in pieces. Removed when the deployment stops.
create table deployment_chunks (
  deployment_id text not null references deployments (id) on delete cascade,
  kind          text not null check (kind in ('source', 'build')),
  position      integer not null,
  bytes         bytea not null,
  primary key (deployment_id, kind, position)
);
alter table deployment_chunks alter column bytes set storage external;

-- What a running deployment serves. A version of an app is served by one deployment.
create table apps (
  id            text primary key,
  project_id    text not null references projects (id),
  app_name      text not null,
  version       text not null,
  deployment_id text not null references deployments (id),
  actions       jsonb not null,
  created_at    timestamptz not null default now(),
  unique (project_id, app_name, version)
);
create index apps_of_deployment on apps (deployment_id);

-- The name of each app that a deployment has had, so that a stopped one is still found by it.
create table deployment_apps (
  deployment_id text not null references deployments (id) on delete cascade,
  app_name      text not null,
  primary key (deployment_id, app_name)
);
create index deployment_apps_name on deployment_apps (app_name);

create table invocations (
  id              text primary key,
  project_id      text not null references projects (id),
  deployment_id   text not null references deployments (id),
  app_name        text not null,
  version         text not null,
  action_name     text not null,
  payload         text,
  status          text not null default 'queued',
  status_reason   text,
  output          text,
  timeout_seconds integer not null,
  -- The node that runs it.
  node_id         text,
  created_at      timestamptz not null default now(),
  started_at      timestamptz,
  finished_at     timestamptz
);
create index invocations_listed on invocations (project_id, created_at desc, id);
create index invocations_queue on invocations (created_at, id) where status = 'queued';
create index invocations_running on invocations (node_id) where status = 'running';
create index invocations_of_deployment on invocations (deployment_id) where status in ('queued', 'running');
create index invocations_over on invocations (finished_at) where finished_at is not null;

-- Lines that builds and invocations printed. `owner` is the id of a deployment or of an invocation.
create table run_logs (
  id      bigint generated always as identity primary key,
  owner   text not null,
  at      timestamptz not null,
  message text not null
);
create index run_logs_of on run_logs (owner, id);
create index run_logs_time on run_logs (at);

-- The key of a deployment is listed nowhere and made by no request.
alter table api_keys add column hidden boolean not null default false;

create index sessions_of_invocation on sessions (invocation_id) where invocation_id is not null and deleted_at is null;
