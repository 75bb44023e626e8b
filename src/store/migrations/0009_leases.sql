-- A lease that was taken and is about to be handed over, by this node. Null once the browser was lent, or nobody has it.
alter table sessions add column lease_node text;
create index sessions_lease_under_way on sessions (lease_node) where lease_node is not null;

-- Launches that fail are held back by the node on which they fail, so that they do not hold back the others.
alter table pools drop column failures, drop column retry_at;
