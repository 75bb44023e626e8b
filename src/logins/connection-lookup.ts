import { errors } from '../errors.ts';
import type { Db } from '../store/db.ts';
import { toConnection, type FlowAddresses } from './answer.ts';
import { hostedUrl, type FlowTokens } from './hosted/token.ts';
import { runStore, type RunRow } from './run-store.ts';
import type { Connection } from './schema.ts';
import { connectionStore, type ConnectionRow } from './store.ts';

/** The caller: the holder of a key, or an invitee, which sees one flow only. */
export interface Asking {
  projectId: string;
  /** The key of the request, or the key that an invitee's flow was started with. Addresses in answers are valid for as long as it is. */
  keyId: string;
  /** The key is of the whole organisation. */
  orgWide?: boolean;
  /** Of an invitee. */
  flowId?: string;
}

export interface FindingOptions {
  db: Db;
  tokens: FlowTokens;
  publicUrl: () => string;
  /** The live view of a session, for the holder of a key. */
  liveView: (asking: { projectId: string; keyId: string }, sessionId: string) => Promise<string>;
}

export type Finding = ReturnType<typeof connectionFinding>;

/** Finds connections with their newest login, and describes them to callers. */
export function connectionFinding({ db, tokens, publicUrl, liveView }: FindingOptions) {
  const store = connectionStore(db);
  const runs = runStore(db);

  async function find(projectId: string, id: string): Promise<ConnectionRow> {
    const row = await store.find(projectId, id);
    if (!row) throw errors.connection_not_found({ connection: id });
    return row;
  }

  /** The addresses of a login that runs. Each read gives another code, and each code is good for one exchange. */
  async function addressesOf(flow: RunRow | undefined, { projectId, keyId }: Asking): Promise<FlowAddresses> {
    if (!flow || flow.status !== 'IN_PROGRESS' || flow.expires_at === null) return {};
    const { id: flowId, connection_id: connectionId, expires_at: expiresAt, session_id: sessionId } = flow;
    const code = tokens.code({ connectionId, flowId, projectId, keyId }, expiresAt);
    const hosted_url = hostedUrl(publicUrl(), connectionId, code);
    if (sessionId === null) return { hosted_url };
    const live_view_url = await liveView({ projectId, keyId }, sessionId).catch(() => undefined); // it may have just ended
    return { hosted_url, ...(live_view_url === undefined ? {} : { live_view_url }) };
  }

  const newestFlow = async (connectionId: string) => (await runs.latest([connectionId])).get(connectionId);

  /** The newest login of a connection. An invitee is refused unless it is the one of the invitee's token. */
  async function flowFor(connectionId: string, { flowId }: Asking): Promise<RunRow | undefined> {
    const flow = await newestFlow(connectionId);
    if (flowId === undefined || flow?.id === flowId) return flow;
    throw errors.unauthorized({
      detail: 'The login of this link is over, and another one was started. Ask for a new link.',
    });
  }

  return {
    find,
    addressesOf,
    newestFlow,
    flowFor,

    async shown(row: ConnectionRow, asking: Asking): Promise<Connection> {
      const flow = await flowFor(row.id, asking);
      // The end of a login changes both rows at once. A connection that was read before its login may be older than that end, and a
      // client that polls would see SUCCESS beside NEEDS_AUTH.
      const now = flow ? ((await store.find(asking.projectId, row.id)) ?? row) : row;
      return toConnection(now, flow, await addressesOf(flow, asking));
    },

    async runningFlow(connectionId: string, asking: Asking): Promise<RunRow> {
      const flow = await flowFor(connectionId, asking);
      if (flow?.status !== 'IN_PROGRESS') throw errors.no_active_flow({ connection: connectionId });
      return flow;
    },
  };
}
