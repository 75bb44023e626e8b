-- Since when the session has been awake; null while it stands by, starts or has ended. Its uptime is then known on every node, and to the
-- node that settles it after a crash.
alter table sessions add column awake_since timestamptz;

create function uptime_of(s sessions, until timestamptz default now()) returns bigint language sql stable as $$
  select s.uptime_ms + coalesce(greatest(0, (extract(epoch from until - s.awake_since) * 1000)::bigint), 0)
$$;
