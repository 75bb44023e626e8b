import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import { lostAfterMs, nodeStore, type NodeRow } from './store.ts';

/** The number of heartbeats between two searches for sessions of absent nodes. */
const beatsPerSweep = 5;

/**
 * Ends the sessions and other work of a lost node in the transaction that removes the node, so exactly once. The returned
 * function is called after the commit and notifies others. `silentMs` is the time since the last sign of the node.
 */
export type Settler = (nodeId: string, within: Db, silentMs: number) => Promise<() => void>;

export interface SettlementOptions {
  db: Db;
  id: string;
  /** False when no other node can reach the database: then this node cannot be declared dead, and no confirmation is needed. */
  shared: boolean;
  settlers: () => readonly Settler[];
  /** Nodes that have something to settle, present or not. */
  nodesInUse: (within: Db) => Promise<string[]>;
  log: Log;
}

/** Declares silent nodes dead, and ends their sessions and other work. */
export function settlement({ db, id, shared, settlers, nodesInUse, log }: SettlementOptions) {
  let members: readonly NodeRow[] = [];
  let settling: Promise<void> | undefined;
  let beats = 0;

  /** Runs beside the heartbeat, which must not wait for it. */
  function soon(now: readonly NodeRow[]) {
    members = now;
    const silent = members.filter((node) => node.id !== id && node.silent_ms >= lostAfterMs);
    const sweep = shared && ++beats % beatsPerSweep === 0;
    if (settling || (silent.length === 0 && !sweep)) return;
    settling = (async () => {
      for (const node of silent) await settle(node);
      if (sweep) await settleAbsent();
    })()
      .catch((error: Error) => log.error({ error }, 'node.not_settled'))
      .finally(() => (settling = undefined));
  }

  /** Every surviving node tries; the database lets one. */
  async function settle(node: NodeRow): Promise<void> {
    const notices = await db.transaction(async (tx) =>
      (await nodeStore(tx).takeSilent(node)) ? runSettlers(node.id, tx, node.silent_ms) : undefined,
    );
    if (!notices) return;
    log.warn({ node: node.id, silentMs: Math.round(node.silent_ms) }, 'node.lost');
    for (const notify of notices) notify();
  }

  /** Settles sessions of a node that is not on the list: it was declared dead while it created them, or left without ending them. */
  async function settleAbsent(): Promise<void> {
    const notices = await db.transaction(async (tx) => {
      const inUse = await nodesInUse(tx);
      if (inUse.every((node) => members.some((member) => member.id === node))) return [];
      await nodeStore(tx).lock();
      const done = [];
      for (const absent of await nodeStore(tx).absentAmong(inUse)) done.push(...(await runSettlers(absent, tx)));
      return done;
    });
    for (const notify of notices) notify();
  }

  async function runSettlers(nodeId: string, tx: Db, silentMs = 0): Promise<(() => void)[]> {
    const done = [];
    for (const settler of settlers()) done.push(await settler(nodeId, tx, silentMs));
    return done;
  }

  return { soon, underWay: () => settling };
}
