import { conflict, entry } from './entry.ts';

/** Auth connections and their logins. */
export const loginErrors = {
  resource_in_use: entry(
    400,
    'Another resource uses it.',
    (p: { thing: string; users: string }) => `${p.thing} is used by ${p.users}. Change or delete the users first.`,
  ),
  connection_not_found: entry(
    404,
    'No auth connection of the project has that id.',
    (p: { connection: string }) => `No auth connection has the id '${p.connection}'. GET /auth/connections lists them.`,
  ),
  recipe_not_found: entry(
    404,
    'No login of the auth connection has succeeded yet, so there is no recipe.',
    (p: { connection: string }) =>
      `Auth connection '${p.connection}' has no recipe. A successful POST /auth/connections/{id}/login creates it.`,
  ),
  flow_in_progress: conflict(
    'A login with this profile is in progress.',
    (p: { connection: string }) =>
      `A login of auth connection '${p.connection}' is in progress with this profile. Follow it, or wait until it ends.`,
  ),
  handoff_code_gone: entry(
    410,
    'The handoff code was used before, has expired, or is for a login that has ended.',
    () =>
      'This handoff code was used before, or its login has ended. POST /auth/connections/{id}/login returns another.',
  ),
  no_active_flow: entry(
    422,
    'No login is in progress that could receive the values.',
    (p: { connection: string }) =>
      `No login of auth connection '${p.connection}' is in progress. POST /auth/connections/{id}/login starts one.`,
  ),
  stale_interaction: entry(
    422,
    'The login has continued to another question.',
    (p: { connection: string }) =>
      `interaction_id is of an earlier question. GET /auth/connections/${p.connection} has the current one.`,
  ),
  flow_not_waiting: entry(422, 'The login does not wait for this input.', (p: { detail: string }) => p.detail),
};
