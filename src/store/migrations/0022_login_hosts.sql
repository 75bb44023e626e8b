-- Where the values of a login may be typed.
alter table auth_connections
  -- The domain was given with http:. Otherwise nothing is typed without TLS.
  add column plain_http boolean not null default false,
  -- Hosts of identity providers that a person confirmed, each with the names of the values that the person typed there.
  add column sso_hosts  jsonb not null default '{}';
