create table sessions (
  id              text primary key,
  project_id      text not null references projects (id),
  -- The node whose browser it is.
  node_id         text not null,
  state           text not null default 'starting',
  name            text collate name_match,
  tags            jsonb not null default '{}',
  headless        boolean not null,
  stealth         boolean not null,
  gpu             boolean not null,
  kiosk_mode      boolean not null,
  timeout_seconds integer not null,
  viewport_width  integer not null,
  viewport_height integer not null,
  refresh_rate    integer,
  start_url       text,
  policy          jsonb,
  invocation_id   text,
  -- Time in which it was not standing by.
  uptime_ms       bigint not null default 0,
  ended_reason    text,
  ended_detail    text,
  created_at      timestamptz not null default now(),
  -- Set when it stops being somebody's, before the browser is gone.
  deleted_at      timestamptz
);
create unique index sessions_name on sessions (project_id, name) where deleted_at is null;
create index sessions_listed on sessions (project_id, created_at desc, id);
create index sessions_active on sessions (project_id) where deleted_at is null;
create index sessions_unsettled on sessions (node_id) where state in ('starting', 'live', 'stopping');
create index sessions_tags on sessions using gin (tags);
