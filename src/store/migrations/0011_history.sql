-- For forgetting what ended long ago: finding it, and seeing that nothing refers to it any more.
create index sessions_ended on sessions (deleted_at) where deleted_at is not null;
create index sessions_of_pool on sessions (pool_id) where pool_id is not null;
create index sessions_of_profile on sessions (profile_id) where profile_id is not null;
