import { errors } from '../errors.ts';
import type { Cut } from '../store/pages.ts';
import type { Addresses } from './addresses.ts';
import { asSession } from './answer.ts';
import type { LiveSession } from './live-session.ts';
import type { Roster } from './roster.ts';
import type { CreateLiveViewLink, LiveViewLink, Session, SessionList } from './schema.ts';
import type { SessionFilter, SessionRow, SessionStore } from './store.ts';
import type { Thumbnail } from './thumbnail.ts';

/** How often a session that is ending is looked at again, and after how long. */
const mostTries = 50;
const pauseMs = 100;

/** A session by its id alone, or by project and id or name. */
export type SessionRef = { id: string } | { projectId: string; idOrName: string };

/** Finds and describes sessions and their nodes. `keyId` is the key of the request: addresses are valid for as long as it is. */
export function sessionFinding({
  store,
  addresses,
  roster,
  nodeId,
}: {
  store: Pick<SessionStore, 'find' | 'findByIdOrName' | 'list' | 'countActive' | 'ofInvocation' | 'tied'>;
  addresses: Addresses;
  roster: Roster;
  nodeId: string;
}) {
  async function find(projectId: string, idOrName: string, includeDeleted = false): Promise<SessionRow> {
    const row = await store.findByIdOrName(projectId, idOrName, includeDeleted);
    if (!row) throw errors.session_not_found({ session: idOrName });
    return row;
  }

  const toSession = (row: SessionRow, keyId: string): Session =>
    asSession(row, addresses, keyId, roster.live.get(row.id));

  return {
    find,
    toSession,

    /** Asks the browser for what only it knows. A list does not: it may have hundreds of sessions. */
    async get(projectId: string, keyId: string, idOrName: string, includeDeleted: boolean): Promise<Session> {
      const row = await find(projectId, idOrName, includeDeleted);
      const here = roster.live.get(row.id);
      if (!here) return toSession(row, keyId);
      const [memory] = await Promise.all([here.sight.memoryBytes(), here.sight.look()]);
      return { ...toSession(row, keyId), ...(memory === undefined ? {} : { memory_bytes: memory }) };
    },

    /** A small picture of the page in front; undefined when there is none. */
    async thumbnail(projectId: string, idOrName: string): Promise<Thumbnail | undefined> {
      const row = await find(projectId, idOrName);
      return roster.live.get(row.id)?.sight.thumbnail();
    },

    /** `before` and `failed` are for doors: their clients page by the last id and know other states. */
    async list(
      projectId: string,
      keyId: string,
      filter: SessionList & Pick<SessionFilter, 'before' | 'failed'>,
    ): Promise<Cut<Session>> {
      const { rows, cut } = await store.list({
        projectId,
        status: filter.include_deleted ? 'all' : filter.status,
        query: filter.query ?? null,
        tags: filter.tags ?? {},
        ...(filter.before === undefined ? {} : { before: filter.before }),
        ...(filter.failed === undefined ? {} : { failed: filter.failed }),
        limit: filter.limit,
        offset: filter.offset,
      });
      return { rows: rows.map((row) => toSession(row, keyId)), cut };
    },

    /** The active sessions of an invocation, without their policies. */
    async ofInvocation(keyId: string, invocationId: string): Promise<Session[]> {
      return (await store.ofInvocation(invocationId)).map((row) => toSession(row, keyId));
    },

    /** The active sessions that belong to an invocation, on all nodes: each with its invocation. */
    tied: (invocationId?: string) => store.tied(invocationId ?? null),

    idOf: async (projectId: string, idOrName: string, includeDeleted: boolean): Promise<string> =>
      (await find(projectId, idOrName, includeDeleted)).id,

    /** What people call the session: its name, or else its id. */
    nameOf: async (id: string): Promise<string> => (await store.find(id))?.name ?? id,

    /** The id of a session that has ended; undefined while it runs. Waits for an ending session, since its log is written last. */
    async endedId(projectId: string, idOrName: string): Promise<string | undefined> {
      for (let tries = 1; ; tries++) {
        const row = await find(projectId, idOrName, true);
        if (!row.deleted_at) return undefined;
        if (row.state !== 'stopping' || tries === mostTries) return row.id;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    },

    projectOf: async (id: string): Promise<string | undefined> => (await store.find(id))?.project_id,

    isHere: (id: string) => roster.live.has(id),

    /** A session with its browser on this node. */
    async here(ref: SessionRef): Promise<LiveSession | undefined> {
      if ('id' in ref) return roster.live.get(ref.id);
      const row = await store.findByIdOrName(ref.projectId, ref.idOrName, false);
      return row && roster.live.get(row.id);
    },

    /**
     * The node of an active session, or with `ended` of an ended one too; undefined when there is no such session. Asks the database only
     * when the session is not on this node.
     */
    async nodeOf(ref: SessionRef, ended = false): Promise<string | undefined> {
      const key = 'id' in ref ? ref.id : ref.idOrName;
      if (roster.live.has(key) || roster.launching.has(key)) return nodeId;
      const row = await ('id' in ref ? store.find(ref.id) : store.findByIdOrName(ref.projectId, ref.idOrName, ended));
      return row && (ended || !row.deleted_at) ? row.node_id : undefined;
    },

    /** A link to the session's live view, for people without a key. */
    async liveViewLink(
      projectId: string,
      keyId: string,
      idOrName: string,
      { read_only: watchOnly, expires_in_seconds: seconds }: CreateLiveViewLink,
    ): Promise<LiveViewLink> {
      const row = await find(projectId, idOrName);
      const session = { id: row.id, nodeId: row.node_id, lease: row.lease_id };
      const expires = new Date(Math.floor(Date.now() / 1000 + seconds) * 1000);
      const url = addresses.ofLiveView(session, { keyId, projectId: row.project_id }, { watchOnly, seconds });
      return { url, read_only: watchOnly, expires_at: expires.toISOString() };
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = await store.countActive(projectId);
      return count === 0 ? undefined : `${count} active ${count === 1 ? 'browser' : 'browsers'}`;
    },
  };
}

export type Finding = ReturnType<typeof sessionFinding>;
