import type { Caller } from '../lib/caller.ts';
import { errors } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { findByKey, hashOf, lookupOf } from './api-keys.ts';
import { orgStore, type ApiKeyRow, type ProjectRow } from './store.ts';
import { strangers } from './strangers.ts';

const remembered = 10_000;

/**
 * Authenticates keys and resolves projects. Keys and projects are cached while `trusted` says that changes reach this
 * node (the database notifies every node, see the triggers in 0001_org.sql); `forget` clears the cache.
 */
export function gatekeeper({ db, trusted, now = Date.now }: { db: Db; trusted: () => boolean; now?: () => number }) {
  const store = orgStore(db);
  const keys = memory<ApiKeyRow>(trusted);
  const keysById = memory<ApiKeyRow>(trusted);
  const projects = memory<ProjectRow>(trusted);

  const wrongKeys = strangers(now);
  const lookups = lookupList(() => store.keyLookups(), now);

  async function authenticate(key: string, from: string): Promise<Caller> {
    const hash = hashOf(key);
    const name = hash.toString('base64');
    const row = await keys.get(name, async () => {
      const refusal = wrongKeys.refusal(from);
      // A client with a valid key is not refused for sharing an address with a guesser: the lookups of all keys fit into
      // a list, which is read now and then.
      if (refusal && !(await lookups.has(lookupOf(hash)))) throw refusal;
      return wrongKeys.isUnknown(name) ? undefined : findByKey(db, key);
    });
    if (!row) wrongKeys.count(from, name);
    if (!row || row.deleted_at) throw errors.unauthorized({ detail: 'This key is not known here, or was revoked.' });
    if (row.expires_at && row.expires_at.getTime() <= now()) {
      throw errors.unauthorized({
        detail: `This key expired at ${row.expires_at.toISOString()}. Rotate it or create another.`,
      });
    }
    return { keyId: row.id, keyName: row.name, projectId: row.project_id, ...(row.hidden && { deployed: true }) };
  }

  /** The project that the header names, within the scope of the key. */
  async function resolveProject(caller: Caller, { id, idOrName }: { id?: string; idOrName?: string }) {
    const selector = id ?? idOrName;
    const project =
      selector === undefined
        ? await projects.get(caller.projectId ?? '', () =>
            caller.projectId ? store.findProject(caller.projectId) : store.defaultProject(),
          )
        : await projects.get(`${id ? 'id' : 'any'}:${selector}`, () =>
            id ? store.findProject(id) : store.findProjectByIdOrName(selector),
          );
    if (caller.projectId !== null && selector !== undefined && project?.id !== caller.projectId) {
      throw errors.forbidden({
        detail: `This key is for one project only, and '${selector}' is another. Leave the project header out.`,
      });
    }
    if (project?.status !== 'active')
      throw errors.project_not_found({ project: selector ?? caller.projectId ?? 'Default' });
    return { id: project.id, name: project.name };
  }

  /** What has been revoked since a token was made: its key or its project. Tokens outlive the request that made them. */
  async function lapseOf(made: { keyId: string; projectId: string }): Promise<'key' | 'project' | undefined> {
    const { keyId, projectId } = made;
    const key = await keysById.get(keyId, () => store.findKey(keyId, null));
    if (!key || key.deleted_at || (key.expires_at && key.expires_at.getTime() <= now())) return 'key';
    if (key.project_id !== null && key.project_id !== projectId) return 'key';
    const project = await projects.get(`id:${projectId}`, () => store.findProject(projectId));
    return project?.status === 'active' ? undefined : 'project';
  }

  return {
    authenticate,
    resolveProject,
    lapseOf,
    forget() {
      keys.clear();
      keysById.clear();
      wrongKeys.forgetKeys();
      projects.clear();
    },
  };
}

/** The lookups of all keys, read at most once a second. */
function lookupList(read: () => Promise<Set<string>>, now: () => number) {
  let list: Promise<Set<string>> | undefined;
  let readAt = -Infinity;
  return {
    async has(lookup: string): Promise<boolean> {
      if (!list || now() - readAt > 1000) {
        readAt = now();
        list = read();
        list.catch(() => (list = undefined));
      }
      return (await list).has(lookup);
    },
  };
}

/**
 * Caches only known keys and projects, so that unknown keys cannot fill it. A lookup that started before a `clear`
 * is not cached, since its result may be older than the change that cleared it.
 */
function memory<T>(trusted: () => boolean) {
  const found = new Map<string, T>();
  let generation = 0;
  return {
    async get(key: string, look: () => Promise<T | undefined>): Promise<T | undefined> {
      const known = trusted() ? found.get(key) : undefined;
      if (known) return known;
      const asked = generation;
      const value = await look();
      if (value && asked === generation && trusted()) {
        if (found.size >= remembered) found.clear();
        found.set(key, value);
      }
      return value;
    },
    clear() {
      generation++;
      found.clear();
    },
  };
}
