-- The services that share this database. A row is a node that is there; one that left or was lost has none.
create table nodes (
  id           text primary key,
  -- New at every registration: whoever was given up and comes back finds that the row is no longer its own.
  life         text not null,
  -- Where the other nodes reach it, and where clients do.
  internal_url text not null,
  public_url   text not null,
  version      text not null,
  -- Ids of its secret keys, the current one first. They tell nothing of the keys.
  keys         text[] not null,
  capacity     integer not null,
  running      integer not null,
  started_at   timestamptz not null default now(),
  -- By this server's clock alone, as is every comparison with it.
  heartbeat_at timestamptz not null default now()
);

-- Nodes keep the list in memory; whoever comes or goes is told to all at once, heartbeats are not.
create function tell_nodes_changed() returns trigger language plpgsql as $$
begin
  perform pg_notify('corral_nodes', '');
  return null;
end $$;
create trigger nodes_changed after insert or delete on nodes for each statement execute function tell_nodes_changed();
