import { conflict, entry, final } from './entry.ts';

/** Projects, API keys and what a project may store. */
export const orgErrors = {
  cannot_delete_current_key: entry(
    400,
    'A key cannot delete itself.',
    () => 'This key is the one you are using. Delete it with another key, or rotate it instead.',
  ),
  project_not_found: entry(
    404,
    'No active project has that id or name.',
    (p: { project: string }) => `No active project is '${p.project}'. GET /org/projects lists them.`,
  ),
  api_key_not_found: entry(
    404,
    'No API key within reach has that id.',
    (p: { id: string }) => `No API key has the id '${p.id}'. GET /org/api_keys lists them.`,
  ),
  api_key_limit_reached: conflict(
    'The project has as many API keys as it may.',
    (p: { most: number }) =>
      `The project has ${p.most} API keys that are valid, which is the most. Delete those that are not used.`,
  ),
  project_not_empty: conflict(
    'A project that holds things cannot be deleted.',
    (p: { holds: string }) => `The project still holds ${p.holds}. Delete those first, or archive the project.`,
  ),
  last_active_project: conflict(
    'One project has to stay active.',
    () => 'This is the last active project. Create another one first.',
  ),
  default_project: conflict(
    'The default project stays.',
    () => 'The default project serves every request that names none; it can be renamed, not archived or deleted.',
  ),
  project_storage_full: final(
    507,
    'The project has stored as much as it may.',
    (p: { used: number; most: number }) =>
      `The project stores ${p.used} MiB of replays, extensions, profile versions and deployments, what is under way included, and may store ${p.most} MiB (CORRAL_PROJECT_STORAGE_MB). Delete profiles or extensions, stop deployments, or wait until replays expire.`,
  ),
};
