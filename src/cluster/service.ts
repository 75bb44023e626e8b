import type { IncomingMessage } from 'node:http';
import { errors, ServiceError } from '../errors.ts';
import type { EventBus } from '../events.ts';
import type { Keyring } from '../lib/seal.ts';
import { tokens } from '../lib/tokens.ts';
import { credentialHeader, credentials, type Journey, type Passenger } from './credential.ts';
import { wayTo, type Answer, type Way } from './forward.ts';
import { membership, type MembershipOptions } from './membership.ts';
import { mostRoom, nearestRoom, type Room } from './placement.ts';
import { splice, type Upgrade } from './splice.ts';
import type { NodeRow } from './store.ts';

export type Cluster = ReturnType<typeof cluster>;

/** A node as clients see it. */
export interface Member {
  id: string;
  public_url: string;
  version: string;
  running: number;
  capacity: number;
  silent_ms: number;
}

/**
 * The nodes that share one database: which exist, which have room, and the connections between them. With a single node,
 * it is a list with one entry and sends nothing.
 */
export function cluster(
  options: Omit<MembershipOptions, 'keys' | 'onMembers'> & { keys: () => Keyring; events: EventBus },
) {
  const { id, load, events, log } = options;
  let known: string[] = [];
  const ways = new Map<string, Way>();
  /** Sessions sent to a node since its last heartbeat, which does not count them yet. */
  const sent = new Map<string, { since: number; count: number }>();
  const forwarded = { http: 0, websocket: 0 };

  const members = membership({ ...options, keys: () => options.keys().ids, onMembers });
  const credential = credentials({
    tokens: tokens(options.keys, () => members.now(), 'node to node'),
    now: () => members.now(),
  });

  function onMembers(nodes: readonly NodeRow[]) {
    const left = known.filter((nodeId) => !nodes.some((node) => node.id === nodeId));
    known = nodes.map((node) => node.id);
    for (const nodeId of left) if (nodeId !== id) events.publish('node.left', { nodeId });
    for (const [nodeId, way] of ways) {
      if (nodes.some((node) => node.id === nodeId && node.internal_url === way.internalUrl)) continue;
      ways.delete(nodeId);
      way.close();
    }
    for (const [nodeId, { since }] of sent) {
      const node = nodes.find((one) => one.id === nodeId);
      if (!node || node.heartbeat_at.getTime() > since) sent.delete(nodeId);
    }
  }

  const others = () => members.members.filter((node) => node.id !== id);
  const find = (nodeId: string) => members.members.find((node) => node.id === nodeId);

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

  function rooms(): { self: Room; others: Room[] } {
    const { capacity, running } = load();
    return {
      self: { id, free: capacity - running },
      others: others().map((node) => ({
        id: node.id,
        free: node.capacity - node.running - (sent.get(node.id)?.count ?? 0),
      })),
    };
  }

  function count(nodeId: string) {
    if (nodeId === id) return;
    const { since, count } = sent.get(nodeId) ?? { since: find(nodeId)?.heartbeat_at.getTime() ?? 0, count: 0 };
    sent.set(nodeId, { since, count: count + 1 });
  }

  return {
    id,
    join: members.join,
    ready: members.ready,
    refresh: members.refresh,
    complaints: members.complaints,
    drain: members.drain,

    async leave(): Promise<void> {
      await members.leave();
      for (const known of ways.values()) known.close();
    },

    /** Whether there are other nodes. */
    get company(): boolean {
      return members.members.length > 1;
    },

    members: (): Member[] =>
      members.members.map(({ id: nodeId, public_url, version, running, capacity, silent_ms }) => ({
        id: nodeId,
        public_url,
        version,
        ...(nodeId === id ? load() : { running, capacity }),
        silent_ms: Math.round(silent_ms),
      })),

    /** Host and port of the other nodes, which sessions must not reach. */
    *addresses(): Generator<URL> {
      for (const { internal_url, public_url } of others()) yield* [new URL(internal_url), new URL(public_url)];
    },

    /** Where clients reach a node; undefined for this node and for absent ones. */
    publicUrlOf: (nodeId: string) => (nodeId === id ? undefined : find(nodeId)?.public_url),

    /** Whether a node is a member, as far as the database knows now. */
    async knows(nodeId: string): Promise<boolean> {
      if (!find(nodeId)) await members.refresh(); // it may have joined since the last heartbeat
      return find(nodeId) !== undefined;
    },

    /** The capacity of all nodes together. */
    capacity: () => others().reduce((sum, node) => sum + node.capacity, load().capacity),

    /** The node with the most room that is none of these; this node when no other has more. The new session is counted there. */
    place(except: ReadonlySet<string> = new Set()): string | undefined {
      const { self, others: rest } = rooms();
      const [first, ...more] = [self, ...rest].filter((node) => node.free > 0 && !except.has(node.id));
      if (!first) return undefined;
      const best = mostRoom(first, more).id;
      count(best);
      return best;
    },

    /** Another node for a session that was requested here; undefined when it is best made here. */
    placeElsewhere(): string | undefined {
      const { self, others: rest } = rooms();
      const best = nearestRoom(self, rest).id;
      if (best === id) return undefined;
      count(best);
      return best;
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

    forwarded: () => forwarded,
  };
}

function unreachable(nodeId: string, error: Error): ServiceError {
  if (error instanceof ServiceError) return error;
  const detail = error.message || (error as NodeJS.ErrnoException).code || 'no answer';
  return errors.node_unreachable({ node: nodeId, detail }, { cause: error });
}
