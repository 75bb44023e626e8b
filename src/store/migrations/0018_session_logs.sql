-- The last lines that an ended session wrote, for as long as its row is there (CORRAL_HISTORY_DAYS): JSON, compressed.
create table session_logs (
  session_id text primary key references sessions on delete cascade,
  project_id text not null,
  kept_at    timestamptz not null default now(),
  bytes      integer not null,
  packed     bytea not null
);
alter table session_logs alter column packed set storage external; -- it is compressed already
create index session_logs_of_project on session_logs (project_id, kept_at desc) include (bytes);
