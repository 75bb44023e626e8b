-- What is typed into login pages. The values and the TOTP secret are sealed in `secrets` (kinds 'credential values' and
-- 'credential totp'). A credential is removed for good: other tables refer to it by id, with `on delete set null`.
create table credentials (
  id              text primary key,
  project_id      text not null references projects (id),
  name            text not null collate name_match,
  domain          text not null,
  sso_provider    text,
  -- The names of the sealed values: lists and reads show them without opening a seal.
  value_keys      text[] not null default '{}',
  has_totp_secret boolean not null default false,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now()
);
create unique index credentials_name on credentials (project_id, name);
create index credentials_listed on credentials (project_id, created_at, id);

-- Stores of credentials outside of the service, for all projects. The token is sealed (kind 'credential provider token').
create table credential_providers (
  id                text primary key,
  provider_type     text not null check (provider_type in ('passwordmanager', 'onepassword', 'vault', 'http')),
  name              text not null collate name_match,
  enabled           boolean not null default true,
  -- Lower numbers are asked first.
  priority          integer not null default 0,
  cache_ttl_seconds integer not null default 300,
  server_url        text,
  ca_bundle         text,
  -- Of type vault: the namespace, and the mounts to look at; null for every mount that the token sees.
  namespace         text,
  mounts            text[],
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now()
);
create unique index credential_providers_name on credential_providers (name);
create index credential_providers_order on credential_providers (priority, created_at, id);
