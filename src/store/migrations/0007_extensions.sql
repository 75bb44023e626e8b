create table extensions (
  id           text primary key,
  project_id   text not null references projects (id),
  name         text collate name_match,
  size_bytes   integer not null,
  -- sha-256 of the bytes as they were uploaded.
  checksum     text not null,
  created_at   timestamptz not null default now(),
  last_used_at timestamptz,
  deleted_at   timestamptz
);
create unique index extensions_name on extensions (project_id, name) where deleted_at is null;
create index extensions_listed on extensions (project_id, created_at, id) where deleted_at is null;

-- The zip, in the database because that is what all nodes share.
create table extension_chunks (
  extension_id text not null references extensions (id),
  position     integer not null,
  bytes        bytea not null,
  primary key (extension_id, position)
);
alter table extension_chunks alter column bytes set storage external; -- it is compressed already

-- What the selectors in a pool's configuration meant when they were given.
alter table pools
  add column profile_id    text references profiles (id),
  add column extension_ids text[] not null default '{}';
create index pools_profile on pools (profile_id) where deleted_at is null;
