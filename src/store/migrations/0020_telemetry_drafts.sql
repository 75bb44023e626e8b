-- Events of which a part is still to come (a response whose body is not read yet), as they are so far: the last chunk of its session. No
-- reader sees it while the session runs. The node that runs the session replaces it. If that node is lost, it stays as it is.
alter table telemetry_chunks add column draft boolean not null default false;
create index telemetry_chunks_drafts on telemetry_chunks (session_id) where draft;
