import { conflict, entry } from './entry.ts';

/** Auth connections and their logins. */
export const loginErrors = {
  resource_in_use: entry(
    400,
    'Something else needs it and would stop working.',
    (p: { thing: string; users: string }) => `${p.thing} is used by ${p.users}. Change or delete those first.`,
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
      `Auth connection '${p.connection}' has no recipe. POST /auth/connections/{id}/login makes one when it succeeds.`,
  ),
  flow_in_progress: conflict(
    'A login with this profile is under way.',
    (p: { connection: string }) =>
      `A login of auth connection '${p.connection}' is under way with this profile. Follow it, or wait until it ends.`,
  ),
  handoff_code_gone: entry(
    410,
    'The handoff code was used before, has expired, or belongs to a login that is over.',
    () => 'This handoff code was used before, or its login is over. POST /auth/connections/{id}/login gives another.',
  ),
  no_active_flow: entry(
    422,
    'No login is under way that could take it.',
    (p: { connection: string }) =>
      `No login of auth connection '${p.connection}' is under way. POST /auth/connections/{id}/login starts one.`,
  ),
  stale_interaction: entry(
    422,
    'The login has gone on to another question.',
    (p: { connection: string }) =>
      `interaction_id is of an earlier question. GET /auth/connections/${p.connection} has the one that is asked now.`,
  ),
  flow_not_waiting: entry(422, 'The login does not wait for this now.', (p: { detail: string }) => p.detail),
};
