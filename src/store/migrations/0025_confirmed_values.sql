-- A name says nothing about a value that was changed later. So sso_hosts has, for each host, an object of names with keyed hashes of the values
-- that a person typed there. The values of the names that are stored so far are sealed; their hosts stay, and a person types them once more.
update auth_connections
  set sso_hosts = (select jsonb_object_agg(key, '{}'::jsonb) from jsonb_object_keys(sso_hosts) as hosts(key))
  where sso_hosts <> '{}';
