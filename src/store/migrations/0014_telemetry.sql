-- The categories that are captured. None: nothing is.
alter table sessions add column telemetry text[] not null default '{}';

-- What browsers did: events in chunks, some lines of JSON each, compressed. No foreign key: a lock on the session's row would make
-- pools pass over an idle browser while its events are written. A session stays as long as its chunks do (store/history.ts).
create table telemetry_chunks (
  session_id text not null,
  first_seq  bigint not null,
  last_seq   bigint not null,
  project_id text not null,
  -- The earliest and the latest event, in microseconds since 1970.
  from_us    bigint not null,
  to_us      bigint not null,
  -- A bit for each category in it.
  categories integer not null,
  bytes      integer not null,
  written_at timestamptz not null default now(),
  packed     bytea not null,
  primary key (session_id, last_seq)
);
alter table telemetry_chunks alter column packed set storage external; -- it is compressed already
create index telemetry_chunks_back on telemetry_chunks (session_id, first_seq);
create index telemetry_chunks_written on telemetry_chunks (written_at);
create index telemetry_chunks_of_project on telemetry_chunks (project_id, written_at) include (bytes);
