import type { Caller } from '../lib/caller.ts';
import { errors } from '../errors.ts';
import type { Db } from '../store/db.ts';
import type { ProjectService } from './projects.ts';
import type { OrgLimits, ProjectLimits, UpdateOrgLimits, UpdateProjectLimits } from './schema.ts';
import { orgStore, type ProjectRow } from './store.ts';

export type LimitService = ReturnType<typeof limitService>;

/** `capacity` is what all nodes carry together; no cap exceeds it. */
export function limitService({
  db,
  projects,
  capacity,
}: {
  db: Db;
  projects: Pick<ProjectService, 'find' | 'orgWide'>;
  capacity: () => Promise<number>;
}) {
  const store = orgStore(db);

  async function org(): Promise<OrgLimits> {
    return {
      max_concurrent_sessions: await capacity(),
      default_project_max_concurrent_sessions: await store.orgDefaultCap(),
    };
  }

  return {
    org,

    async updateOrg(caller: Caller, request: UpdateOrgLimits): Promise<OrgLimits> {
      projects.orgWide(caller, 'changing limits');
      const cap = change(request.default_project_max_concurrent_sessions);
      const most = await capacity();
      if (cap !== undefined && cap !== null && cap > most) {
        throw errors.invalid_input({
          detail: `default_project_max_concurrent_sessions (${cap}) must be at most max_concurrent_sessions (${most}).`,
        });
      }
      if (cap !== undefined) await store.setOrgDefaultCap(cap);
      return org();
    },

    async project(caller: Caller, id: string): Promise<ProjectLimits> {
      return toLimits(await projects.find(caller, id));
    },

    async updateProject(caller: Caller, id: string, request: UpdateProjectLimits): Promise<ProjectLimits> {
      projects.orgWide(caller, 'changing limits');
      if (request.max_pooled_sessions !== undefined) {
        throw errors.invalid_input({
          detail: 'max_pooled_sessions is no longer accepted; pooled browsers count in max_concurrent_sessions.',
        });
      }
      await projects.find(caller, id);
      const row = await store.updateLimits(
        id,
        change(request.max_concurrent_sessions),
        change(request.max_concurrent_invocations),
      );
      if (!row) throw errors.project_not_found({ project: id });
      return toLimits(row);
    },

    /** How many invocations may run at once in a project; null for no cap. */
    async invocationCap(projectId: string): Promise<number | null> {
      return (await store.findProject(projectId))?.max_concurrent_invocations ?? null;
    },

    /** How many browsers may run at once in a project: its own cap, else the organisation's default, else no cap. */
    async sessionCap(projectId: string): Promise<number | null> {
      const row = await store.findProject(projectId);
      return row?.max_concurrent_sessions ?? (await store.orgDefaultCap());
    },
  };
}

/** Converts a cap of the wire, where null and a missing field keep the old cap and 0 removes it, to undefined (keep) and null (remove). */
const change = (cap: number | null | undefined) =>
  cap === undefined || cap === null ? undefined : cap === 0 ? null : cap;

const toLimits = (row: ProjectRow): ProjectLimits => ({
  max_concurrent_sessions: row.max_concurrent_sessions,
  max_concurrent_invocations: row.max_concurrent_invocations,
  max_pooled_sessions: null,
});
