import { setTimeout as sleep } from 'node:timers/promises';
import { finishedWithin } from '../lib/deadline.ts';
import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { Db } from '../store/db.ts';
import { disagreement, NodesDisagree, refuseStrangers } from './agreement.ts';
import { settlement, type SettlementOptions } from './settlement.ts';
import { lostAfterMs, nodeStore, type NodeRow } from './store.ts';

const beatEveryMs = 2000;
/** The time after a heartbeat in which this node cannot be declared dead: less than the others wait, because clocks differ. */
const trustMs = lostAfterMs - 1000;
/** How long a request waits for the database to confirm that this node is still a member. */
const patienceMs = 5000;

export interface MembershipOptions extends SettlementOptions {
  /** For heartbeats, which may be lost in a crash of the database: the next one follows. */
  quick: Db;
  version: string;
  /** Ids of the secret keys, the current one first. */
  keys: () => readonly string[];
  load: () => { capacity: number; running: number };
  /** Ends the sessions that other nodes settled, if they declared this node dead. Called after each join; requests wait for it. */
  givenUp: () => Promise<void>;
  /** Called with all nodes, whenever they were read. */
  onMembers: (members: readonly NodeRow[]) => void;
  onFatal: (error: Error) => void;
}

/**
 * Membership of this node in the cluster: sends a heartbeat every two seconds, keeps a list of the other nodes, declares
 * silent ones dead, and notices when this node was declared dead. All decisions are made in the database: one row per node, on the
 * database's clock.
 */
export function membership(options: MembershipOptions) {
  const { id, version, keys, load, shared, givenUp, onMembers, onFatal, log } = options;
  const store = nodeStore(options.db);
  const pulse = nodeStore(options.quick);
  let place: { internalUrl: string; publicUrl: string } | undefined;
  /** Identifies the row of this node. Undefined before it has joined, and after it was declared dead. */
  let life: string | undefined;
  let members: readonly NodeRow[] = [];
  let confirmed: Moment | undefined;
  let clockOffsetMs = 0;
  /** Set while this node, after joining, ends the sessions that the others settled. */
  let returning: Promise<void> | undefined;
  let beating: Promise<void> | undefined;
  const settling = settlement(options);
  let timer: NodeJS.Timeout | undefined;
  let draining = false;
  let closed = false;

  /** Undefined when this node may serve. Otherwise it may have been declared dead, and the promise resolves when it is confirmed as a member. */
  function ready(): Promise<void> | undefined {
    if (!shared || (returning === undefined && isRecent(confirmed))) return undefined;
    return confirm();
  }

  async function confirm(): Promise<void> {
    // A heartbeat that was under way while this process was suspended may be outdated, so it may have to be repeated.
    for (let attempt = 0; attempt < 3; attempt++) {
      await finishedWithin(patienceMs, beat());
      await returning;
      if (isRecent(confirmed)) return;
    }
    throw errors.store_unavailable();
  }

  function beat(): Promise<void> {
    return (beating ??= beatOnce()
      .catch((error: Error) => {
        if (error instanceof NodesDisagree) onFatal(error);
        else if (!closed) log.warn({ error: error.message }, 'node.heartbeat_failed');
      })
      .finally(() => {
        beating = undefined;
        clearTimeout(timer);
        if (!closed) timer = setTimeout(() => void beat(), beatEveryMs).unref();
      }));
  }

  async function beatOnce(): Promise<void> {
    if (!place || closed) return;
    const sent = moment();
    const self = { id, keys: [...keys()], ...load(), ...(draining ? { capacity: 0 } : {}) };
    if (life !== undefined) {
      const { standing, nodes } = await pulse.beat({ ...self, life });
      if (standing) return take(nodes, sent);
      log.warn({ node: id }, 'node.was_given_up');
      life = undefined;
    }
    const nodes = await join(self, place);
    // After joining, not before: until this node is on the list, sessions that it makes (pools are filled from the start,
    // or it was making them when it fell silent) may be settled as those of a lost node.
    returning = endWhatWasSettled().finally(() => (returning = undefined));
    take(nodes, sent);
  }

  async function join(
    self: Pick<NodeRow, 'id' | 'keys' | 'capacity' | 'running'>,
    { internalUrl, publicUrl }: NonNullable<typeof place>,
  ): Promise<NodeRow[]> {
    const row = { ...self, life: newId(), version, internal_url: internalUrl, public_url: publicUrl };
    const nodes = await options.db.transaction(async (tx) => {
      const within = nodeStore(tx);
      await within.lock();
      refuseStrangers(row, await within.list());
      await within.put(row);
      return within.list();
    });
    life = row.life;
    log.info({ node: id, nodes: nodes.length }, 'node.joined');
    return nodes;
  }

  async function endWhatWasSettled(): Promise<void> {
    while (!closed) {
      try {
        return await givenUp();
      } catch (error) {
        log.error({ error: error as Error }, 'node.leftovers_not_ended');
        await sleep(500);
      }
    }
  }

  function take(nodes: readonly NodeRow[], sent: Moment) {
    const now = nodes[0]?.now_ms;
    if (now !== undefined) clockOffsetMs = now - (sent.wall + Date.now()) / 2;
    members = nodes.map((node) => (node.id === id ? { ...node, silent_ms: 0 } : node));
    confirmed = sent;
    onMembers(members);
    settling.soon(members);
  }

  return {
    ready,

    get members() {
      return members;
    },

    /** The database's clock, as far as it is known. Nodes compare times on it, never on their own clocks. */
    now: () => Date.now() + clockOffsetMs,

    /** Joins the nodes. Resolves when the others know, or when the first attempt failed and will be repeated. */
    async join(where: NonNullable<typeof place>): Promise<void> {
      place = where;
      await beat();
    },

    /** Called when a node joined or left. */
    refresh(): Promise<void> {
      if (!place || closed) return Promise.resolve();
      return beating ? beating.then(() => beat()) : beat();
    },

    /** Conflicts between this node and the others. They can only appear after it has joined, so they are not fatal. */
    complaints: () => complaintsOf({ id, version, keys: [...keys()] }, members, place?.internalUrl),

    /** This node is about to stop: no other node may place sessions here any more. */
    async drain(): Promise<void> {
      draining = true;
      if (!shared || life === undefined) return;
      await beat();
      await store.tell('corral_nodes', '').catch(() => {});
    },

    async leave(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      const signOff = async () => {
        await Promise.all([beating, settling.underWay(), returning]);
        if (life !== undefined) await store.remove({ id, life });
      };
      // A database that does not answer must not block the stop: the other nodes give this node up then.
      await finishedWithin(patienceMs, signOff()).catch((error: Error) =>
        log.warn({ error: error.message }, 'node.did_not_sign_off'),
      );
    },
  };
}

function complaintsOf(
  self: Pick<NodeRow, 'id' | 'version' | 'keys'>,
  members: readonly NodeRow[],
  internalUrl: string | undefined,
): string[] {
  const others = members.filter((node) => node.id !== self.id);
  return [
    ...others.flatMap((node) => disagreement(self, node) ?? []),
    ...others
      .filter((node) => node.internal_url === internalUrl)
      .map(
        (node) =>
          `Node ${node.id} says it is reached at ${node.internal_url}, as this one does. Set CORRAL_INTERNAL_URL on both.`,
      ),
    ...others
      .filter((node) => node.silent_ms > 2 * beatEveryMs)
      .map((node) => `Node ${node.id} has been silent for ${Math.round(node.silent_ms / 1000)} s.`),
  ];
}

/** On two clocks: one stops while the machine sleeps, the other jumps when it is set. A gap on either raises doubt. */
interface Moment {
  steady: number;
  wall: number;
}

const moment = (): Moment => ({ steady: performance.now(), wall: Date.now() });

const isRecent = (then: Moment | undefined) =>
  then !== undefined && performance.now() - then.steady < trustMs && Math.abs(Date.now() - then.wall) < trustMs;
