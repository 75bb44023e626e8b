-- A profile that is kept logged in at one site.
create table auth_connections (
  id                    text primary key,
  project_id            text not null references projects (id),
  profile_id            text not null references profiles (id),
  domain                text not null,
  login_url             text,
  allowed_domains       text[] not null default '{}',
  -- How the credential is named: by its id, as one item of a provider, or found by the site in one or in all providers. What is deleted
  -- leaves a kind without its id, which counts as no credential: 'auto_of' must not become 'auto'.
  credential_kind       text check (credential_kind in ('stored', 'item', 'auto_of', 'auto')),
  credential_id         text references credentials (id) on delete set null,
  provider_id           text references credential_providers (id) on delete set null,
  provider_path         text,
  proxy_id              text references proxies (id),
  health_check_interval integer not null default 3600,
  health_checks         boolean not null default true,
  auto_reauth           boolean not null default true,
  save_credentials      boolean not null default true,
  record_session        boolean not null default false,
  browser_telemetry     jsonb,
  status                text not null default 'NEEDS_AUTH' check (status in ('AUTHENTICATED', 'NEEDS_AUTH')),
  -- What logins have found out. A recipe names fields and never holds a value.
  post_login_url        text,
  sso_provider          text,
  requirements          jsonb,
  recipe                jsonb,
  -- The newest window whose one-time code was used: no code is sent twice.
  totp_counter          bigint,
  -- A code was pushed and used: codes reach this connection without a person.
  takes_codes           boolean not null default false,
  has_passkeys          boolean not null default false,
  last_login_at         timestamptz,
  last_auth_check_at    timestamptz,
  -- The schedule. A node that checks holds a claim, which it renews; a claim that is not renewed lapses.
  next_check_at         timestamptz not null default now(),
  failures              integer not null default 0,
  claim_id              text,
  claim_node            text,
  claimed_until         timestamptz,
  created_at            timestamptz not null default now(),
  updated_at            timestamptz not null default now()
);
create unique index auth_connections_site on auth_connections (profile_id, domain);
create index auth_connections_listed on auth_connections (project_id, created_at, id);
create index auth_connections_due on auth_connections (next_check_at) where status = 'AUTHENTICATED' and health_checks;
create index auth_connections_credential on auth_connections (credential_id);
create index auth_connections_proxy on auth_connections (proxy_id);

-- Logins and checks: what runs, and what ran. A login is on the node that has its browser.
create table auth_runs (
  id                 text primary key,
  connection_id      text not null references auth_connections (id) on delete cascade,
  -- Two logins at once with one profile would overwrite what the other saves.
  profile_id         text not null,
  kind               text not null check (kind in ('login', 'reauth', 'health_check')),
  status             text not null,
  step               text,
  previous_status    text,
  node_id            text not null,
  -- The key that asked for it; addresses in answers are valid for as long as it is.
  key_id             text,
  session_id         text,
  replay_id          text,
  telemetry_captured boolean not null default false,
  -- What the page asks for, as the flow reported it last: labels and selectors, never values.
  state              jsonb,
  website_error      text,
  error_code         text,
  error_message      text,
  used_codes         text[] not null default '{}',
  -- When the hosted page was last open. A person is there.
  attended_at        timestamptz,
  -- The last looks at the page and what was decided, of the newest login only.
  explained          jsonb,
  revision           integer not null default 0,
  started_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now(),
  expires_at         timestamptz,
  ended_at           timestamptz
);
create unique index auth_runs_under_way on auth_runs (profile_id) where status = 'IN_PROGRESS';
create index auth_runs_listed on auth_runs (connection_id, started_at desc, id);
create index auth_runs_nodes on auth_runs (node_id) where status = 'IN_PROGRESS';

-- What a person submitted or a program pushed, until the node of the login takes it. The values are sealed (kind 'auth input').
create table auth_inputs (
  id         bigint generated always as identity primary key,
  run_id     text not null references auth_runs (id) on delete cascade,
  is_code    boolean not null default false,
  created_at timestamptz not null default now()
);
create index auth_inputs_waiting on auth_inputs (run_id, id);
