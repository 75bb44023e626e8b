-- The projects that may use a provider: ids, or '*' for all. Until here every project used every provider. Existing providers stay shared
-- with the projects that use them: those with an auth connection that names the provider, those with one that asks all enabled providers,
-- and the default project. PATCH /org/credential_providers/{id} changes it.
alter table credential_providers
  add column projects text[] not null default '{}',
  -- Fields of items that logins may type besides user name, mail address, password and one-time code.
  add column fields text[] not null default '{}';

-- No event: nobody has changed a provider.
alter table credential_providers disable trigger credential_providers_told;
update credential_providers v set projects = array(
  select id from projects where is_default and deleted_at is null
  union
  select project_id from auth_connections c
    where c.provider_id = v.id or (c.credential_kind = 'auto' and v.enabled));
alter table credential_providers enable trigger credential_providers_told;

-- A deleted project leaves the lists.
create function unshare_providers() returns trigger language plpgsql as $$
begin
  update credential_providers set projects = array_remove(projects, new.id) where new.id = any (projects);
  return null;
end $$;
create trigger projects_unshared after update on projects for each row
  when (old.deleted_at is null and new.deleted_at is not null) execute function unshare_providers();
