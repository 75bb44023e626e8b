import { errors } from '../errors.ts';
import type { Addresses } from './addresses.ts';
import { asSession } from './answer.ts';
import type { LiveSession } from './live-session.ts';
import type { Roster } from './roster.ts';
import type { CreateLiveViewLink, LiveViewLink, Session, SessionList } from './schema.ts';
import type { SessionRow, SessionStore } from './store.ts';

/** A session by its id alone, or by project and id or name. */
export type SessionRef = { id: string } | { projectId: string; idOrName: string };

/** Finds and describes sessions and their nodes. `keyId` is the key of the request: addresses are valid for as long as it is. */
export function sessionFinding({
  store,
  addresses,
  roster,
  nodeId,
}: {
  store: Pick<SessionStore, 'find' | 'findByIdOrName' | 'list' | 'countActive'>;
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
    asSession(row, addresses, keyId, roster.live.get(row.id)?.uptimeMs() ?? Number(row.uptime ?? row.uptime_ms));

  return {
    find,
    toSession,

    async get(projectId: string, keyId: string, idOrName: string, includeDeleted: boolean): Promise<Session> {
      return toSession(await find(projectId, idOrName, includeDeleted), keyId);
    },

    async list(projectId: string, keyId: string, filter: SessionList): Promise<Session[]> {
      const rows = await store.list({
        projectId,
        status: filter.include_deleted ? 'all' : filter.status,
        query: filter.query ?? null,
        tags: filter.tags ?? {},
        limit: filter.limit,
        offset: filter.offset,
      });
      return rows.map((row) => toSession(row, keyId));
    },

    idOf: async (projectId: string, idOrName: string, includeDeleted: boolean): Promise<string> =>
      (await find(projectId, idOrName, includeDeleted)).id,

    isHere: (id: string) => roster.live.has(id),

    /** A session whose browser runs on this node. */
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
