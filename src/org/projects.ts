import type { Caller } from '../lib/caller.ts';
import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import { newId } from '../lib/ids.ts';
import type { Db } from '../store/db.ts';
import { unlessTaken } from '../store/names.ts';
import type { Project, ProjectList, UpdateProject } from './schema.ts';
import { orgStore, type ProjectRow } from './store.ts';

/** A room with resources in projects. */
export interface Occupant {
  /** The resources of a project: "3 browsers", or undefined for none. They keep it from being deleted. */
  occupancy(projectId: string): Promise<string | undefined>;
}

export type ProjectService = ReturnType<typeof projectService>;

export function projectService({
  db,
  events,
  changed,
  occupants,
}: {
  db: Db;
  events: EventBus;
  changed: () => void;
  occupants: () => readonly Occupant[];
}) {
  const store = orgStore(db);

  function orgWide(caller: Caller, what: string) {
    if (caller.projectId !== null)
      throw errors.forbidden({ detail: `This key is for one project; ${what} takes an organisation-wide key.` });
  }

  async function find(caller: Caller, id: string): Promise<ProjectRow> {
    const row = await store.findProject(id);
    if (!row || (caller.projectId !== null && row.id !== caller.projectId))
      throw errors.project_not_found({ project: id });
    return row;
  }

  /** Runs `leave` if the project may stop being active: neither the default project nor the last active one. */
  async function leaving(id: string, leave: (tx: Db) => Promise<void>) {
    await db.transaction(async (tx) => {
      const active = await orgStore(tx).lockProjects();
      const project = active.find((row) => row.id === id);
      if (project && active.length === 1) throw errors.last_active_project();
      if (project?.is_default) throw errors.default_project();
      await leave(tx);
    });
    changed();
    events.publish('project.closed', { projectId: id });
  }

  return {
    async create(caller: Caller, name: string): Promise<Project> {
      orgWide(caller, 'creating projects');
      const row = await written(name, () => store.insertProject(newId('proj_'), name));
      changed();
      return toProject(row);
    },

    async list(caller: Caller, filter: ProjectList): Promise<Project[]> {
      return (await store.listProjects(filter, caller.projectId)).map(toProject);
    },

    /** By id or by name; the only operation of this room that accepts a name. */
    async get(caller: Caller, idOrName: string): Promise<Project> {
      const row = await store.findProjectByIdOrName(idOrName);
      if (!row || (caller.projectId !== null && row.id !== caller.projectId))
        throw errors.project_not_found({ project: idOrName });
      return toProject(row);
    },

    async update(caller: Caller, id: string, { name, status }: UpdateProject): Promise<Project> {
      const before = await find(caller, id);
      if (status !== undefined && status !== before.status) orgWide(caller, 'archiving and unarchiving');
      const set = (tx: Db) => written(name ?? '', () => orgStore(tx).updateProject(id, name ?? null, status ?? null));
      if (status === 'archived' && before.status === 'active') await leaving(id, async (tx) => void (await set(tx)));
      else await set(db);
      changed();
      return toProject(await find(caller, id));
    },

    async remove(caller: Caller, id: string): Promise<void> {
      orgWide(caller, 'deleting projects');
      await find(caller, id);
      const holds = (await Promise.all(occupants().map((room) => room.occupancy(id)))).filter(
        (held) => held !== undefined,
      );
      if (holds.length > 0) throw errors.project_not_empty({ holds: holds.join(' and ') });
      await leaving(id, (tx) => orgStore(tx).deleteProject(id));
    },

    ensureDefault: () => store.ensureDefaultProject(newId('proj_')),
    find,
    orgWide,
  };
}

async function written(name: string, write: () => Promise<ProjectRow | undefined>): Promise<ProjectRow> {
  const row = await unlessTaken({ index: 'projects_name', thing: 'project', name }, write);
  if (!row) throw errors.project_not_found({ project: name });
  return row;
}

function toProject(row: ProjectRow): Project {
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}
