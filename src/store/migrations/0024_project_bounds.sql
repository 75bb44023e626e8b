-- What the ended invocations and deployments of a project take, so that it can be bounded (deployments/run-history-store.ts).

-- The bytes of the lines in run_logs, and of their rows. Written when the log is complete.
alter table invocations add column log_bytes bigint not null default 0;
alter table deployments add column log_bytes bigint not null default 0;
update invocations i set log_bytes = l.bytes
  from (select owner, sum(octet_length(message) + 200) as bytes from run_logs group by owner) l where l.owner = i.id;
update deployments d set log_bytes = l.bytes
  from (select owner, sum(octet_length(message) + 200) as bytes from run_logs group by owner) l where l.owner = d.id;

-- With 1 KiB for the row and its indexes.
alter table invocations add column kept_bytes bigint not null generated always as (
  1024 + octet_length(app_name) + octet_length(version) + octet_length(action_name) + coalesce(octet_length(payload), 0)
    + coalesce(octet_length(output), 0) + coalesce(octet_length(status_reason), 0) + log_bytes) stored;
create index invocations_kept on invocations (project_id, finished_at, id) include (kept_bytes) where finished_at is not null;
-- Deleting a deployment looks for invocations that refer to it.
create index invocations_by_deployment on invocations (deployment_id);
create index deployments_ended on deployments (project_id, updated_at, id) where status in ('stopped', 'failed');

-- A policy may have 5 MiB, and rows stay for CORRAL_HISTORY_DAYS: an ended session keeps a small policy only, a deleted pool none.
update sessions set policy = null
  where policy is not null and state in ('stopped', 'failed') and octet_length(policy::text) > 16384;
update pools set config = config - 'engine_policy' where deleted_at is not null;
-- Lists end a page by these sizes. To compute them for each list would read every policy of the page.
alter table sessions add column policy_bytes integer generated always as (octet_length(policy::text)) stored;
alter table pools add column config_bytes integer not null generated always as (octet_length(config::text)) stored;
