import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '../../errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Session } from '../../sessions/schema.ts';
import type { Returned } from '../../sessions/session-loans.ts';
import type { Ending } from '../../sessions/state.ts';
import type { Lease, PoolStore } from '../store.ts';
import type { SessionsHere } from './here.ts';

/** Sends a request to another node, and resolves with its answer. */
type Ask = (
  nodeId: string,
  request: { method: string; url: string; body?: unknown },
  signal: AbortSignal,
) => Promise<{ status: number; body: unknown }>;

/** Result of asking a node for a browser: its place is taken there, the pool, the project or the node is full, or the node failed. */
export type Placed = 'placed' | 'pool_full' | 'project_full' | 'node_full' | 'refused';

/** Longer than it takes to detect a browser that does not answer. */
const lendMs = 4500;
/** A place is taken immediately or refused. A node that hangs must not prevent the pool from being filled on other nodes. */
const placeMs = 3000;
/** A node that does not answer is declared dead after ten seconds; its sessions are settled then. */
const patienceMs = 20_000;

export type SessionsAnywhere = ReturnType<typeof sessionsAnywhere>;

/** A pool's browsers on all nodes: on this node by a call, on others by a request to the node that runs them. */
export function sessionsAnywhere({
  here,
  store,
  nodeId,
  ask,
  log,
}: {
  here: SessionsHere;
  store: Pick<PoolStore, 'ownerOf'>;
  nodeId: string;
  ask: Ask;
  log: Log;
}) {
  /** The other node that runs the session; undefined when it is this node, or none. */
  async function elsewhere(id: string): Promise<string | undefined> {
    if (here.has(id)) return undefined;
    const owner = await store.ownerOf(id);
    return owner === nodeId ? undefined : owner;
  }

  return {
    /** The lease that a browser of this node knows of. */
    leaseHere: here.leaseOf,

    async lend(id: string, lease: Lease, keyId: string): Promise<Session> {
      const owner = await elsewhere(id);
      if (!owner) return here.lend(id, lease, keyId);
      const { startUrl, ...rest } = lease;
      const body = { lease: rest, key_id: keyId, ...(startUrl === null ? {} : { start_url: startUrl }) };
      const url = `/nodes/sessions/${id}/lend`;
      const answer = await ask(owner, { method: 'POST', url, body }, AbortSignal.timeout(lendMs));
      if (answer.status === 200) return answer.body as Session;
      if (answer.status === 409) throw errors.already_exists({ thing: 'session', name: lease.name ?? '' });
      throw errors.session_not_found({ session: id });
    },

    /** Disconnects the clients of this lease. Never rejects: a node that does not answer in time leaves it unknown. */
    async takeBack(id: string, lease: string): Promise<Returned> {
      try {
        const owner = await elsewhere(id);
        if (!owner) return await here.takeBack(id, lease);
        const request = { method: 'POST', url: `/nodes/sessions/${id}/take_back`, body: { lease } };
        const { status, body } = await ask(owner, request, AbortSignal.timeout(lendMs));
        return status === 200 ? (body as { returned: Returned }).returned : 'unknown';
      } catch (error) {
        log.warn({ session: id, error: (error as Error).message }, 'pool.not_taken_back');
        return 'unknown';
      }
    },

    /** Never rejects: if the node does not answer, the browser is settled with its node, or found by it later. */
    async stop(id: string, reason: Ending): Promise<void> {
      for (const until = performance.now() + patienceMs; ; await sleep(1000)) {
        try {
          const owner = await elsewhere(id);
          if (!owner) return await here.stop(id, reason);
          const request = { method: 'POST', url: `/nodes/sessions/${id}/stop`, body: { reason } };
          return void (await ask(owner, request, AbortSignal.timeout(patienceMs)));
        } catch (error) {
          log.warn({ session: id, error: (error as Error).message }, 'pool.browser_not_stopped');
          if (performance.now() > until) return;
        }
      }
    },

    /** Asks another node to make a browser for a pool. That node does the rest. */
    async makeAt(target: string, poolId: string): Promise<Placed> {
      try {
        const url = `/nodes/pools/${poolId}/browsers`;
        const { status, body } = await ask(target, { method: 'POST', url }, AbortSignal.timeout(placeMs));
        return status === 200 ? (body as { placed: Placed }).placed : 'refused';
      } catch (error) {
        log.warn({ pool: poolId, node: target, error: (error as Error).message }, 'pool.node_did_not_make');
        return 'refused';
      }
    },
  };
}
