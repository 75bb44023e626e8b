-- Videos of sessions. The file is on the node that recorded it; the row is how the others know.
create table replays (
  id             text primary key,
  -- Kept when the session is over, until the replay is.
  session_id     text not null references sessions (id) on delete cascade,
  project_id     text not null,
  node_id        text not null,
  state          text not null default 'recording',
  framerate      integer not null,
  -- Why it ended, or why there is no video.
  ended_reason   text,
  bytes          bigint not null default 0,
  started_at     timestamptz not null default now(),
  finished_at    timestamptz
);

create index replays_of_session on replays (session_id, started_at);
create index replays_of_node on replays (node_id, state);
