import { conflict, entry, final } from './entry.ts';

/** Projects, API keys and the storage of a project. */
export const orgErrors = {
  cannot_delete_current_key: entry(
    400,
    'A key cannot delete itself.',
    () => 'The request uses this key. Delete the key with another key, or rotate it.',
  ),
  project_not_found: entry(
    404,
    'No active project has that id or name.',
    (p: { project: string }) => `No active project is '${p.project}'. GET /org/projects lists them.`,
  ),
  api_key_not_found: entry(
    404,
    'No API key that the caller may see has that id.',
    (p: { id: string }) => `No API key has the id '${p.id}'. GET /org/api_keys lists them.`,
  ),
  api_key_limit_reached: conflict(
    'The project has its maximum of API keys.',
    (p: { most: number }) => `The project has ${p.most} valid API keys, which is the maximum. Delete unused keys.`,
  ),
  project_not_empty: conflict(
    'The project is not empty, so it cannot be deleted.',
    (p: { holds: string }) => `The project still has ${p.holds}. Delete them first, or archive the project.`,
  ),
  last_active_project: conflict(
    'The last active project cannot be archived or deleted.',
    () => 'This is the last active project. Create another one first.',
  ),
  default_project: conflict(
    'The default project cannot be archived or deleted.',
    () =>
      'The default project is used for requests that name no project. It can be renamed, but not archived or deleted.',
  ),
  project_storage_full: final(
    507,
    'The storage of the project is full.',
    (p: { used: number; most: number }) =>
      `The project stores ${p.used} MiB of replays, extensions, profile versions and deployments, including unfinished ones, and may store ${p.most} MiB (CORRAL_PROJECT_STORAGE_MB). Delete profiles or extensions, stop deployments, or wait until replays expire.`,
  ),
};
