import type { IncomingMessage } from 'node:http';
import { errors, ServiceError } from '../errors.ts';
import type { Passenger } from '../lib/caller.ts';
import type { Log } from '../lib/log.ts';
import { credentialHeader, type Credentials, type Journey } from './credential.ts';
import { wayTo, type Answer, type Way } from './forward.ts';
import { splice, type Upgrade } from './splice.ts';
import type { NodeRow } from './store.ts';

/** What passes between this node and the others: requests and websockets, each with a credential. */
export function traffic({
  id,
  credential,
  find,
  log,
}: {
  /** This node. */
  id: string;
  credential: Credentials;
  find: (nodeId: string) => NodeRow | undefined;
  log: Log;
}) {
  const ways = new Map<string, Way>();
  const forwarded = { http: 0, websocket: 0 };

  function way(nodeId: string): Way {
    const node = find(nodeId);
    if (!node) throw unreachable(nodeId, new Error('it is not among the nodes any more'));
    const known = ways.get(nodeId) ?? wayTo(node.internal_url);
    ways.set(nodeId, known);
    return known;
  }

  const credentialFor = (journey: Journey, passenger: Passenger, body?: string): [string, string] => [
    credentialHeader,
    credential.write(journey, passenger, body),
  ];

  return {
    /** Forwards a client's request to the node that serves it, streaming. */
    async forward(
      nodeId: string,
      request: IncomingMessage,
      passenger: Passenger,
      hungUp: AbortSignal,
    ): Promise<Answer> {
      forwarded.http++;
      const { method = '', url = '', headers } = request;
      const note = credentialFor({ to: nodeId, method, url, headers }, passenger);
      return way(nodeId)
        .forward(request, note, hungUp)
        .catch((error: Error) => {
          throw hungUp.aborted ? hungUp.reason : unreachable(nodeId, error);
        });
    },

    /** Forwards a websocket to the node that serves it. */
    async splice(nodeId: string, upgrade: Upgrade, passenger: Passenger): Promise<void> {
      forwarded.websocket++;
      const { method = 'GET', url = '/', headers } = upgrade.request;
      const { origin, gone } = way(nodeId);
      await splice(upgrade, origin, credentialFor({ to: nodeId, method, url, headers }, passenger), gone).catch(
        (error: Error) => {
          throw unreachable(nodeId, error);
        },
      );
    },

    /** Sends a JSON request of this node to a route of another node, on behalf of a project. */
    async ask(
      nodeId: string,
      request: { method: string; url: string; body?: unknown },
      passenger: Passenger,
      signal?: AbortSignal,
    ): Promise<{ status: number; body: unknown }> {
      const { method, url } = request;
      const body = request.body === undefined ? undefined : JSON.stringify(request.body);
      const headers =
        body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
      return way(nodeId)
        .ask({ method, url, body }, credentialFor({ to: nodeId, method, url, headers }, passenger, body), signal)
        .catch((error: Error) => {
          throw signal?.aborted ? signal.reason : unreachable(nodeId, error);
        });
    },

    /** The caller of a request that another node forwarded. The header is removed in any case, since a client may have written it. */
    passengerOf(request: IncomingMessage): Passenger | undefined {
      const given = request.headers[credentialHeader];
      if (given === undefined) return undefined;
      delete request.headers[credentialHeader];
      const journey = { to: id, method: request.method ?? '', url: request.url ?? '', headers: request.headers };
      const passenger = typeof given === 'string' ? credential.read(given, journey) : 'malformed';
      if (typeof passenger !== 'string') return passenger;
      log.warn({ fault: passenger, from: request.socket.remoteAddress }, 'node.credential_refused');
      return undefined;
    },

    forwarded: () => forwarded,

    /** The nodes were read again: connections to nodes that left, or that moved, end. */
    read(nodes: readonly Pick<NodeRow, 'id' | 'internal_url'>[]) {
      for (const [nodeId, known] of ways) {
        if (nodes.some((node) => node.id === nodeId && node.internal_url === known.internalUrl)) continue;
        ways.delete(nodeId);
        known.close();
      }
    },

    close() {
      for (const known of ways.values()) known.close();
    },
  };
}

function unreachable(nodeId: string, error: Error): ServiceError {
  if (error instanceof ServiceError) return error;
  const detail = error.message || (error as NodeJS.ErrnoException).code || 'no answer';
  return errors.node_unreachable({ node: nodeId, detail }, { cause: error });
}
