import { errors } from '../errors.ts';
import { toTimelineEvent } from './answer.ts';
import { connectionConfiguring, type ConfiguringOptions } from './connection-settings.ts';
import { connectionFinding, type Asking, type FindingOptions } from './connection-lookup.ts';
import type { Explained, Recipe } from './flow/types.ts';
import { loginRequests, type RequestOptions } from './login-requests.ts';
import { connectionStore } from './store.ts';
import { runStore } from './run-store.ts';
import type { Connection, TimelineEvent, TimelineList } from './schema.ts';

export type { Asking } from './connection-lookup.ts';
export type LoginService = ReturnType<typeof loginService>;

/** The operations on auth connections. Lookup, settings and login requests have a file each. */
export function loginService(
  options: FindingOptions & ConfiguringOptions & Omit<RequestOptions, 'finding' | 'proxyId'>,
) {
  const runs = runStore(options.db);
  const finding = connectionFinding(options);
  const { find, shown } = finding;
  const { proxyId, ...configuring } = connectionConfiguring({ ...options, finding });

  return {
    ...configuring,
    ...loginRequests({ ...options, finding, proxyId }),

    async get(asking: Asking, id: string): Promise<Connection> {
      return shown(await find(asking.projectId, id), asking);
    },

    async timeline({ projectId }: Asking, id: string, filter: TimelineList): Promise<TimelineEvent[]> {
      await find(projectId, id);
      return (await runs.timeline(id, filter)).map(toTimelineEvent);
    },

    async recipe({ projectId }: Asking, id: string): Promise<Recipe> {
      await find(projectId, id);
      const recipe = await connectionStore(options.db).recipe(id);
      if (!recipe) throw errors.recipe_not_found({ connection: id });
      return recipe;
    },

    async explain({ projectId }: Asking, id: string): Promise<{ flow: TimelineEvent | null; records: Explained[] }> {
      await find(projectId, id);
      const found = await runs.explained(id);
      return { flow: found ? toTimelineEvent(found.run) : null, records: found?.explained ?? [] };
    },
  };
}
