import { errors } from '../errors.ts';
import type { Addresses, Purpose } from './addresses.ts';
import type { SessionRef } from './finding.ts';
import type { SessionService } from './service.ts';

/** What is to be known of the nodes in order to find a session. */
interface Nodes {
  readonly id: string;
  /** Whether there is any other. */
  readonly company: boolean;
  knows(nodeId: string): Promise<boolean>;
  /** A node that a new session had better be made on. */
  placeElsewhere(): string | undefined;
}

interface Asked {
  method: string;
  route: string;
  params: Record<string, string>;
  query: Record<string, unknown>;
  projectId: string | null;
}

export type Whereabouts = ReturnType<typeof whereabouts>;

/**
 * Which node has to answer for a session. What is asked under a session's path goes to the node that has its browser, for
 * every path there is and will be, so that whoever adds one need not think of it.
 */
export function whereabouts({
  sessions,
  addresses,
  nodes,
}: {
  sessions: Pick<SessionService, 'nodeOf'>;
  addresses: Pick<Addresses, 'admit'>;
  nodes: Nodes;
}) {
  /** Undefined: here, where it is, or where it is said that there is none. */
  async function ofSession(ref: SessionRef): Promise<string | undefined> {
    if (!nodes.company) return undefined;
    const nodeId = await sessions.nodeOf(ref);
    if (nodeId === undefined || nodeId === nodes.id) return undefined;
    if (!(await nodes.knows(nodeId))) throw errors.session_not_found({ session: 'id' in ref ? ref.id : ref.idOrName });
    return nodeId;
  }

  /** What is left of a session is where it was; if that node is gone, whoever is asked says so. */
  async function ofReplay(ref: SessionRef): Promise<string | undefined> {
    const nodeId = await sessions.nodeOf(ref, true);
    return nodeId !== undefined && nodeId !== nodes.id && (await nodes.knows(nodeId)) ? nodeId : undefined;
  }

  return {
    ofSession,

    /** Asks nobody when there is no other node. */
    ofRequest({ method, route, params, query, projectId }: Asked): Promise<string | undefined> | undefined {
      if (!nodes.company) return undefined;
      if (method === 'POST' && route === '/browsers') return Promise.resolve(nodes.placeElsewhere());
      const idOrName = /^\/browsers\/:(\w+)/.exec(route)?.[1];
      if (idOrName !== undefined && projectId !== null) {
        const ref = { projectId, idOrName: params[idOrName] ?? '' };
        return /^\/browsers\/:\w+\/replays\b/.test(route) ? ofReplay(ref) : ofSession(ref);
      }
      const admitted = async (token: unknown, purpose: Purpose) =>
        (await addresses.admit(typeof token === 'string' ? token : undefined, purpose)).sessionId;
      const ofToken = async (token: unknown, purpose: Purpose) => ofSession({ id: await admitted(token, purpose) });
      if (route.startsWith('/browser/kernel/:token')) return ofToken(params['token'], 'base');
      if (route.startsWith('/browser/replays')) {
        return admitted(query['jwt'], 'replay').then((id) => ofReplay({ id }));
      }
      if (route === '/browser/live') return ofToken(query['jwt'], 'live');
      return undefined;
    },
  };
}
