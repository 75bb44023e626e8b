-- What a project is about to store: recordings, saves and uploads under way. What is stored counts by its own row. One goes with its node.
create table storage_claims (
  id         text primary key,
  project_id text not null,
  node_id    text not null,
  bytes      bigint not null
);
create index storage_claims_of_project on storage_claims (project_id);
create index replays_of_project on replays (project_id);
