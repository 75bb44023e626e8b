import { isCreation, mayBeElsewhere, sessionParameter } from '../lib/forwarded-routes.ts';
import { errors } from '../errors.ts';
import type { Addresses, Purpose } from './addresses.ts';
import type { SessionRef } from './session-lookup.ts';
import type { SessionService } from './service.ts';

/** What has to be known of the nodes to find a session. */
interface Nodes {
  readonly id: string;
  /** Whether there is any other node. */
  readonly company: boolean;
  knows(nodeId: string): Promise<boolean>;
  /** A node that is better suited for a new session. */
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
 * Which node answers a request for a session. All paths below a session's path go to the node that has its browser, including paths added
 * later, so that new routes need not handle this.
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
  /** Undefined: this node answers, because it has the session or because the session does not exist. */
  async function ofSession(ref: SessionRef): Promise<string | undefined> {
    if (!nodes.company) return undefined;
    const nodeId = await sessions.nodeOf(ref);
    if (nodeId === undefined || nodeId === nodes.id) return undefined;
    if (!(await nodes.knows(nodeId))) throw errors.session_not_found({ session: 'id' in ref ? ref.id : ref.idOrName });
    return nodeId;
  }

  /** The replays of a session are on the node it ran on; if that node is lost, the receiving node reports it. */
  async function ofReplay(ref: SessionRef): Promise<string | undefined> {
    const nodeId = await sessions.nodeOf(ref, true);
    return nodeId !== undefined && nodeId !== nodes.id && (await nodes.knows(nodeId)) ? nodeId : undefined;
  }

  return {
    ofSession,

    /** Without other nodes there is no lookup. */
    ofRequest({ method, route, params, query, projectId }: Asked): Promise<string | undefined> | undefined {
      if (!nodes.company || !mayBeElsewhere(method, route)) return undefined;
      if (isCreation(method, route)) {
        // A WebDriver client may have its key in the body, which is read here.
        return projectId === null ? undefined : Promise.resolve(nodes.placeElsewhere());
      }
      const idOrName = sessionParameter(route);
      if (idOrName !== undefined && projectId !== null) {
        const ref = { projectId, idOrName: params[idOrName] ?? '' };
        if (/\/telemetry\/(?!stream)/.test(route)) return undefined; // in the database, also when the node is lost
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
