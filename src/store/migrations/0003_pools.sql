create table pools (
  id            text primary key,
  project_id    text not null references projects (id),
  name          text collate name_match,
  size          integer not null check (size >= 1),
  -- Everything else that was asked for, with its defaults, as the API shows it.
  config        jsonb not null,
  -- Raised by an update that browsers made before do not follow.
  version       integer not null default 1,
  -- The first fill is not paced; it is over when the pool was full once.
  filled_once   boolean not null default false,
  -- Background filling makes one browser at a time, not before this.
  next_fill_at  timestamptz not null default now(),
  -- After launches that failed, none is tried before this.
  failures      integer not null default 0,
  retry_at      timestamptz not null default now(),
  last_error    text,
  last_error_at timestamptz,
  created_at    timestamptz not null default now(),
  deleted_at    timestamptz
);
create unique index pools_name on pools (project_id, name) where deleted_at is null;
create index pools_listed on pools (project_id, created_at, id) where deleted_at is null;

-- A browser of a pool with a lease is somebody's. One with an idle time is on the shelf. One with neither is being made or
-- cleaned. There is no other word for it anywhere, so nothing can disagree.
alter table sessions
  add column pool_id      text references pools (id),
  add column pool_version integer,
  add column lease_id     text,
  add column idle_since   timestamptz;
create index sessions_shelf on sessions (pool_id, idle_since) where state = 'live' and lease_id is null and idle_since is not null;
create index sessions_pooled on sessions (pool_id) where deleted_at is null;

-- The line of those who wait, oldest first, across all nodes. One that was given a browser has its id until it has taken it.
create table pool_waiters (
  place      bigint generated always as identity primary key,
  pool_id    text not null references pools (id),
  node_id    text not null,
  lease_id   text not null unique,
  session_id text
);
create index pool_waiters_line on pool_waiters (pool_id, place) where session_id is null;
