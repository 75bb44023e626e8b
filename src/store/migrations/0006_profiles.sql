create table profiles (
  id           text primary key,
  project_id   text not null references projects (id),
  name         text collate name_match,
  -- The version that sessions start with; null as long as nothing was saved.
  version_id   text,
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  last_used_at timestamptz,
  -- The last save that failed, until one succeeds.
  last_save_error    text,
  last_save_error_at timestamptz,
  deleted_at   timestamptz
);
create unique index profiles_name on profiles (project_id, name) where deleted_at is null;
create index profiles_listed on profiles (project_id, created_at, id) where deleted_at is null;

-- What a session saved. One that is not complete is being written, by the node it names; nobody reads it, and if that node goes, so does it.
create table profile_versions (
  id         text primary key,
  profile_id text not null references profiles (id),
  session_id text not null,
  node_id    text not null,
  complete   boolean not null default false,
  size_bytes bigint not null default 0,
  created_at timestamptz not null default now()
);
create index profile_versions_listed on profile_versions (profile_id, created_at desc, id);
create index profile_versions_unfinished on profile_versions (node_id) where not complete;

-- A version's archive, sealed with a key of its own (kind 'profile version' in secrets). In the database because that is what all nodes share.
create table profile_chunks (
  version_id text not null references profile_versions (id) on delete cascade,
  position   integer not null,
  sealed     bytea not null,
  primary key (version_id, position)
);
alter table profile_chunks alter column sealed set storage external; -- it is compressed already

alter table sessions
  add column profile_id       text references profiles (id),
  -- It is written back when the session ends.
  add column profile_saves    boolean not null default false,
  -- It came while the session ran, and goes with the lease if there is one.
  add column profile_attached boolean not null default false;
create index sessions_profile_writers on sessions (profile_id) where profile_saves and state in ('starting', 'live', 'stopping');

-- What a session shows of its profile.
create function profile_of(session sessions) returns jsonb language sql stable as $$
  select jsonb_build_object('id', id, 'name', name, 'created_at', created_at, 'updated_at', updated_at, 'last_used_at', last_used_at)
  from profiles where id = session.profile_id
$$;
