-- Where the one-time codes of a credential come from without a person: mailboxes, and addresses that programs post codes to. The password of a
-- mailbox is sealed (kind 'one-time code mailbox'); of an address, only the hash of its token is stored.
create table one_time_code_sources (
  id            text primary key,
  credential_id text not null references credentials (id) on delete cascade,
  position      integer not null,
  type          text not null check (type in ('imap', 'webhook')),
  -- Of a mailbox: host, user, folder and patterns.
  settings      jsonb not null,
  token_hash    bytea unique,
  created_at    timestamptz not null default now()
);
create index one_time_code_sources_listed on one_time_code_sources (credential_id, position);

-- Codes that were posted and that no login has taken yet. They are kept for two minutes, sealed (kind 'one-time code').
create table posted_codes (
  id          bigint generated always as identity primary key,
  source_id   text not null references one_time_code_sources (id) on delete cascade,
  received_at timestamptz not null default now()
);
create index posted_codes_newest on posted_codes (source_id, id);
create index posted_codes_old on posted_codes (received_at);

-- Mails with codes that a login has used, as hashes of mailbox and UID. No mail is used twice.
create table used_code_mails (
  mail    bytea primary key,
  used_at timestamptz not null default now()
);
create index used_code_mails_old on used_code_mails (used_at);
