create table proxies (
  id           text primary key,
  project_id   text not null references projects (id),
  -- Chosen freely; several may have the same one.
  name         text collate name_match,
  type         text not null check (type in ('datacenter', 'isp', 'residential', 'mobile', 'custom')),
  protocol     text not null check (protocol in ('http', 'https', 'socks5')),
  bypass_hosts text[] not null default '{}',
  -- As the API shows it. A password is not in here but sealed, in `secrets`.
  config       jsonb not null,
  has_password boolean not null default false,
  -- What the last check found; null before the first one.
  status       text check (status in ('available', 'unavailable')),
  ip_address   text,
  latency_ms   integer,
  last_checked timestamptz,
  -- Whoever moves this on does the check that is due.
  next_check_at timestamptz not null default now(),
  created_at   timestamptz not null default now(),
  deleted_at   timestamptz
);
create index proxies_listed on proxies (project_id, created_at, id) where deleted_at is null;
create index proxies_name on proxies (project_id, name) where deleted_at is null;
create index proxies_due on proxies (next_check_at) where deleted_at is null;

-- A deleted proxy stays the one that sessions went by.
alter table sessions
  add column proxy_id text,
  add column default_proxy_disabled boolean not null default false;
