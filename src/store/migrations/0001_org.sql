-- Names match without regard to case and accents, wherever a name is compared: 'CAFÉ' finds 'café'.
create collation name_match (provider = icu, locale = 'und-u-ks-level1', deterministic = false);

create table projects (
  id         text primary key,
  name       text not null collate name_match,
  status     text not null default 'active' check (status in ('active', 'archived')),
  -- The project of every request that names none. Exactly one, made on the first start.
  is_default boolean not null default false,
  max_concurrent_sessions    integer,
  max_concurrent_invocations integer,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create unique index projects_name on projects (name) where deleted_at is null;
create unique index projects_default on projects (is_default) where is_default;
create index projects_created on projects (created_at, id) where deleted_at is null;

create table org_limits (
  only_row boolean primary key default true check (only_row),
  default_project_max_concurrent_sessions integer
);
insert into org_limits default values;

create table api_keys (
  id           text primary key,
  name         text not null collate name_match,
  -- sha-256 of the key; its first 16 hex digits find the row, the rest is compared in constant time.
  hash         bytea not null,
  lookup       text not null unique,
  masked_key   text not null,
  -- Null: the whole organisation.
  project_id   text references projects (id),
  created_by   text not null,
  created_by_name text,
  created_at   timestamptz not null default now(),
  expires_at   timestamptz,
  deleted_at   timestamptz
);
create index api_keys_created on api_keys (created_at, id);

-- Nodes remember keys and projects they have seen; whoever changes one tells them all, in the same transaction.
create function tell_org_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('corral_org', '');
  return null;
end $$;
create trigger api_keys_changed after update or delete on api_keys for each statement execute function tell_org_changed();
create trigger projects_changed after insert or update or delete on projects for each statement execute function tell_org_changed();

create table audit_log (
  id            bigint generated always as identity primary key,
  timestamp     timestamptz not null default now(),
  auth_strategy text not null,
  user_id       text not null,
  email         text not null,
  project_id    text,
  service       text not null,
  status        integer not null,
  method        text not null,
  path          text not null,
  route         text not null,
  domain        text not null,
  duration_ms   integer not null,
  client_ip     text not null,
  user_agent    text not null
);
create index audit_log_time on audit_log (timestamp desc, id desc);

-- Everything sealed at rest is a row here, named by the thing it belongs to: rotation is one walk over one table.
create table secrets (
  kind       text not null,
  owner      text not null,
  envelope   text not null,
  updated_at timestamptz not null default now(),
  primary key (kind, owner)
);
