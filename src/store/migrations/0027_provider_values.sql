-- The names of the values that a person typed at an identity provider and not at the site. It is kept with the values: a credential may be used by
-- several connections, and what a connection knows of them ends with it. Values of before are known by the names in sso_hosts.
alter table credentials add column provider_keys text[] not null default '{}';
update credentials
  set provider_keys = known.names
  from (
    select c.credential_id, array_agg(distinct named.name) as names
    from auth_connections c
      cross join lateral jsonb_each(c.sso_hosts) as place(host, marks)
      cross join lateral jsonb_object_keys(place.marks) as named(name)
    where place.host <> '' and not coalesce(jsonb_exists(c.sso_hosts -> '', named.name), false)
    group by c.credential_id) known
  where credentials.id = known.credential_id;
