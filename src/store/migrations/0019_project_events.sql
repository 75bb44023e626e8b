-- What happened to the things of a project, for GET /events. It is bounded (project-events/store.ts). The rows are written by
-- triggers, in the transaction of the change: every change on every node is told, and one that is rolled back is not.
create table project_events (
  id          bigint generated always as identity primary key,
  -- The place in the stream, given after the commit by place_events(). An id is drawn before it: readers that went by ids would
  -- pass over a transaction that commits late. Positions have no gaps, so a reader notices what was removed.
  position    bigint,
  project_id  text,
  -- Keys that are not bound to a project see it, whatever project they work in.
  for_org     boolean not null,
  type        text not null,
  resource_id text not null,
  at          timestamptz not null default clock_timestamp(),
  data        jsonb not null
);
create unique index project_events_position on project_events (position) where position is not null;
create index project_events_unplaced on project_events (id) where position is null;

create table event_clock (
  only_row     boolean primary key default true check (only_row),
  -- The newest position. Positions are given under the lock of this row.
  last         bigint not null default 0,
  -- Some node has readers until then. Without any no notification is sent: a commit with one waits for all others that have one.
  wanted_until timestamptz not null default now()
);
insert into event_clock default values;

create function tell_event(of_type text, of_project text, of_resource text, facts jsonb, for_org boolean default false)
returns void language plpgsql as $$
begin
  insert into project_events (project_id, for_org, type, resource_id, data)
    values (of_project, for_org, of_type, of_resource, jsonb_strip_nulls(facts));
  if exists (select from event_clock where wanted_until > now()) then perform pg_notify('corral_project_events', ''); end if;
end $$;

-- Gives positions to what was committed, at most `most` at once; answers how many. The counts of a pool are read here and not by
-- the triggers: of many changes at once, one event is left, and leasing a browser counts nothing.
create function place_events(most integer) returns integer language plpgsql as $$
declare
  these bigint[];
  placed integer;
begin
  if not exists (select from project_events where position is null) then return 0; end if;
  perform from event_clock for update;
  select array_agg(id) into these from (select id from project_events where position is null order by id limit most) unplaced;
  delete from project_events where id in (
    select id from (select id, resource_id, row_number() over (partition by resource_id order by id desc) as nth
      from project_events where id = any (these) and type = 'pool.counts') counts
    where nth > 1 or not exists (select from pools p where p.id = resource_id and p.deleted_at is null));
  update project_events e set data = jsonb_build_object('name', p.name, 'size', p.size,
      'available', (select count(*) from sessions s where s.pool_id = p.id and s.deleted_at is null and s.state = 'live' and s.lease_id is null and s.idle_since is not null),
      'acquired', (select count(*) from sessions s where s.pool_id = p.id and s.deleted_at is null and s.lease_id is not null),
      'warming', (select count(*) from sessions s where s.pool_id = p.id and s.deleted_at is null and s.lease_id is null and s.idle_since is null),
      'waiting', (select count(*) from pool_waiters w where w.pool_id = p.id and w.session_id is null))
    from pools p where e.id = any (these) and e.type = 'pool.counts' and p.id = e.resource_id;
  update project_events e set position = clock.last + numbered.n
    from event_clock clock, (select id, row_number() over (order by id) as n from project_events where id = any (these)) numbered
    where e.id = numbered.id;
  get diagnostics placed = row_count;
  update event_clock set last = last + placed;
  return cardinality(these);
end $$;

-- A browser of a pool is a session for clients as long as it is leased.
create function tell_session() returns trigger language plpgsql as $$
declare
  held boolean := new.pool_id is null or new.lease_id is not null;
  was_held boolean := tg_op = 'UPDATE' and (old.pool_id is null or old.lease_id is not null);
  what text;
begin
  what := case
    when tg_op = 'INSERT' then case when held then 'session.created' end
    when held and not was_held then 'session.leased'
    when was_held and not held then 'session.returned'
    when not held then null
    when new.state in ('stopped', 'failed') then case when old.state not in ('stopped', 'failed') then 'session.ended' end
    when new.deleted_at is not null then case when old.deleted_at is null then 'session.stopping' end
    when old.state <> new.state then 'session.live'
    when old.awake_since is null and new.awake_since is not null then 'session.woken'
    when old.awake_since is not null and new.awake_since is null then 'session.standby'
    else 'session.changed'
  end;
  if what is not null then
    perform tell_event(what, new.project_id, new.id, jsonb_build_object('name', new.name, 'pool_id', new.pool_id, 'reason', new.ended_reason,
      'state', case when new.state in ('stopped', 'failed') then new.state when new.deleted_at is not null then 'stopping'
        when new.state = 'live' and new.awake_since is null then 'standby' else new.state end));
  end if;
  if new.pool_id is not null and (tg_op = 'INSERT' or (old.state, old.lease_id, old.idle_since, old.deleted_at)
      is distinct from (new.state, new.lease_id, new.idle_since, new.deleted_at)) then
    perform tell_event('pool.counts', new.project_id, new.pool_id, '{}');
  end if;
  return null;
end $$;
create trigger sessions_told_new after insert on sessions for each row execute function tell_session();
create trigger sessions_told after update on sessions for each row when (
  (old.state, old.deleted_at, old.lease_id, old.idle_since, old.awake_since is null, old.name, old.tags, old.proxy_id, old.profile_id,
    old.viewport_width, old.viewport_height, old.telemetry)
  is distinct from (new.state, new.deleted_at, new.lease_id, new.idle_since, new.awake_since is null, new.name, new.tags, new.proxy_id,
    new.profile_id, new.viewport_width, new.viewport_height, new.telemetry)) execute function tell_session();

create function tell_pool() returns trigger language plpgsql as $$
begin
  perform tell_event(case when tg_op = 'INSERT' then 'pool.created' when new.deleted_at is not null then 'pool.deleted' else 'pool.changed' end,
    new.project_id, new.id, jsonb_build_object('name', new.name, 'size', new.size));
  return null;
end $$;
create trigger pools_told_new after insert on pools for each row execute function tell_pool();
create trigger pools_told after update on pools for each row when (
  (old.name, old.size, old.config, old.version, old.last_error_at, old.deleted_at)
  is distinct from (new.name, new.size, new.config, new.version, new.last_error_at, new.deleted_at)) execute function tell_pool();

create function tell_waiters() returns trigger language plpgsql as $$
declare
  waiter pool_waiters := coalesce(new, old);
begin
  perform tell_event('pool.counts', (select project_id from pools where id = waiter.pool_id), waiter.pool_id, '{}');
  return null;
end $$;
create trigger pool_waiters_told after insert or delete on pool_waiters for each row execute function tell_waiters();

create function tell_profile() returns trigger language plpgsql as $$
begin
  perform tell_event(case
      when tg_op = 'INSERT' then 'profile.created'
      when new.deleted_at is not null then 'profile.deleted'
      when old.version_id is distinct from new.version_id then 'profile.saved'
      when new.last_save_error is not null and old.last_save_error_at is distinct from new.last_save_error_at then 'profile.save_failed'
      else 'profile.changed' end,
    new.project_id, new.id, jsonb_build_object('name', new.name));
  return null;
end $$;
create trigger profiles_told_new after insert on profiles for each row execute function tell_profile();
create trigger profiles_told after update on profiles for each row when (
  (old.name, old.version_id, old.last_save_error_at, old.deleted_at)
  is distinct from (new.name, new.version_id, new.last_save_error_at, new.deleted_at)) execute function tell_profile();

create function tell_extension() returns trigger language plpgsql as $$
begin
  perform tell_event(case when tg_op = 'INSERT' then 'extension.created' when new.deleted_at is not null then 'extension.deleted'
    else 'extension.changed' end, new.project_id, new.id, jsonb_build_object('name', new.name));
  return null;
end $$;
create trigger extensions_told_new after insert on extensions for each row execute function tell_extension();
create trigger extensions_told after update on extensions for each row when (
  (old.name, old.deleted_at) is distinct from (new.name, new.deleted_at)) execute function tell_extension();

create function tell_proxy() returns trigger language plpgsql as $$
begin
  perform tell_event(case
      when tg_op = 'INSERT' then 'proxy.created'
      when new.deleted_at is not null then 'proxy.deleted'
      when old.last_checked is distinct from new.last_checked then 'proxy.checked'
      else 'proxy.changed' end,
    new.project_id, new.id, jsonb_build_object('name', new.name, 'status', new.status));
  return null;
end $$;
create trigger proxies_told_new after insert on proxies for each row execute function tell_proxy();
create trigger proxies_told after update on proxies for each row when (
  (old.name, old.config, old.bypass_hosts, old.last_checked, old.deleted_at)
  is distinct from (new.name, new.config, new.bypass_hosts, new.last_checked, new.deleted_at)) execute function tell_proxy();

create function tell_credential() returns trigger language plpgsql as $$
declare
  it credentials := coalesce(new, old);
begin
  perform tell_event(case tg_op when 'INSERT' then 'credential.created' when 'DELETE' then 'credential.deleted' else 'credential.changed' end,
    it.project_id, it.id, jsonb_build_object('name', it.name, 'domain', it.domain));
  return null;
end $$;
create trigger credentials_told after insert or update or delete on credentials for each row execute function tell_credential();

create function tell_credential_provider() returns trigger language plpgsql as $$
declare
  it credential_providers := coalesce(new, old);
begin
  perform tell_event(case tg_op when 'INSERT' then 'credential_provider.created' when 'DELETE' then 'credential_provider.deleted'
      else 'credential_provider.changed' end,
    null, it.id, jsonb_build_object('name', it.name, 'enabled', it.enabled), true);
  return null;
end $$;
create trigger credential_providers_told after insert or update or delete on credential_providers
  for each row execute function tell_credential_provider();

create function tell_auth_connection() returns trigger language plpgsql as $$
declare
  it auth_connections := coalesce(new, old);
begin
  perform tell_event(case tg_op when 'INSERT' then 'auth_connection.created' when 'DELETE' then 'auth_connection.deleted'
      else 'auth_connection.changed' end,
    it.project_id, it.id, jsonb_build_object('domain', it.domain, 'status', it.status));
  return null;
end $$;
create trigger auth_connections_told_new after insert or delete on auth_connections for each row execute function tell_auth_connection();
create trigger auth_connections_told after update on auth_connections for each row when (
  (old.status, old.login_url, old.allowed_domains, old.credential_kind, old.credential_id, old.provider_id, old.provider_path, old.proxy_id,
    old.health_check_interval, old.health_checks, old.auto_reauth, old.save_credentials, old.record_session, old.last_login_at, old.last_auth_check_at)
  is distinct from (new.status, new.login_url, new.allowed_domains, new.credential_kind, new.credential_id, new.provider_id, new.provider_path,
    new.proxy_id, new.health_check_interval, new.health_checks, new.auto_reauth, new.save_credentials, new.record_session, new.last_login_at,
    new.last_auth_check_at)) execute function tell_auth_connection();

-- A login or a check, told as its connection's.
create function tell_auth_run() returns trigger language plpgsql as $$
begin
  perform tell_event('auth_connection.flow', project_id, id,
      jsonb_build_object('domain', domain, 'status', status, 'flow', new.kind, 'flow_status', new.status, 'flow_step', new.step))
    from auth_connections where id = new.connection_id;
  return null;
end $$;
create trigger auth_runs_told_new after insert on auth_runs for each row execute function tell_auth_run();
create trigger auth_runs_told after update on auth_runs for each row when (
  (old.status, old.step, old.revision) is distinct from (new.status, new.step, new.revision)) execute function tell_auth_run();

create function tell_deployment() returns trigger language plpgsql as $$
begin
  perform tell_event(case when tg_op = 'INSERT' then 'deployment.created' else 'deployment.changed' end,
    new.project_id, new.id, jsonb_build_object('status', new.status, 'version', new.version));
  return null;
end $$;
create trigger deployments_told_new after insert on deployments for each row execute function tell_deployment();
create trigger deployments_told after update on deployments for each row when (old.status <> new.status) execute function tell_deployment();

create function tell_invocation() returns trigger language plpgsql as $$
begin
  perform tell_event(case when tg_op = 'INSERT' then 'invocation.created' else 'invocation.changed' end, new.project_id, new.id,
    jsonb_build_object('app_name', new.app_name, 'action_name', new.action_name, 'version', new.version, 'status', new.status));
  return null;
end $$;
create trigger invocations_told_new after insert on invocations for each row execute function tell_invocation();
create trigger invocations_told after update on invocations for each row when (old.status <> new.status) execute function tell_invocation();

create function tell_replay() returns trigger language plpgsql as $$
begin
  perform tell_event(case when tg_op = 'INSERT' then 'replay.created' else 'replay.changed' end, new.project_id, new.id,
    jsonb_build_object('session_id', new.session_id, 'state', new.state));
  return null;
end $$;
create trigger replays_told_new after insert on replays for each row execute function tell_replay();
create trigger replays_told after update on replays for each row when (old.state <> new.state) execute function tell_replay();

-- Of the organisation: keys, projects, nodes.
create function tell_api_key() returns trigger language plpgsql as $$
begin
  perform tell_event(case when tg_op = 'INSERT' then 'api_key.created' when new.deleted_at is not null then 'api_key.deleted'
    else 'api_key.changed' end, new.project_id, new.id, jsonb_build_object('name', new.name), true);
  return null;
end $$;
create trigger api_keys_told_new after insert on api_keys for each row when (not new.hidden) execute function tell_api_key();
create trigger api_keys_told after update on api_keys for each row when (
  not new.hidden and (old.name, old.expires_at, old.deleted_at, old.masked_key) is distinct from (new.name, new.expires_at, new.deleted_at, new.masked_key))
  execute function tell_api_key();

create function tell_project() returns trigger language plpgsql as $$
begin
  perform tell_event(case when tg_op = 'INSERT' then 'project.created' when new.deleted_at is not null then 'project.deleted'
    else 'project.changed' end, new.id, new.id, jsonb_build_object('name', new.name, 'status', new.status), true);
  return null;
end $$;
create trigger projects_told after insert or update on projects for each row execute function tell_project();

create function tell_node() returns trigger language plpgsql as $$
declare
  it nodes := coalesce(new, old);
begin
  perform tell_event(case when tg_op = 'DELETE' then 'node.left' else 'node.joined' end, null, it.id,
    jsonb_build_object('version', it.version, 'capacity', it.capacity), true);
  return null;
end $$;
create trigger nodes_told_new after insert or delete on nodes for each row execute function tell_node();
create trigger nodes_told after update on nodes for each row when (old.life <> new.life) execute function tell_node();
