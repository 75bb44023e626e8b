import { join } from 'node:path';
import type { Isolation } from '../chromium/sandbox/isolation.ts';
import { removeTree } from '../chromium/sandbox/outside.ts';
import { unpackBuild, type Unpacked } from '../chromium/workshop/artifact.ts';
import { WorkerError } from '../chromium/workshop/worker.ts';
import type { Log } from '../lib/log.ts';

const unpackMs = 120_000;
/** Unpacked builds that stay without a worker. */
const mostKept = 16;

interface Unpacking {
  bytes: () => AsyncIterable<Buffer>;
  /** Hears how much was unpacked so far, and throws when that is too much. */
  cover?: (bytes: number) => Promise<void>;
  signal?: AbortSignal;
}

/** The builds on this node's disk, each fetched when it is first needed. */
export function unpackedBuilds(deps: {
  dir: string;
  isolation: Isolation;
  /** What one may take. */
  diskBytes: number;
  /** Whether the disk has only its reserve left. */
  short: () => boolean;
  /** The deployments of all workers. */
  inUse: () => Iterable<string>;
  /** Ends the workers that wait for their next action. */
  endIdle: () => Promise<unknown>;
  log: Log;
}) {
  const { dir, isolation, log } = deps;
  const unpacked = new Map<string, Promise<Unpacked>>();
  const unpacking = new Set<AbortController>();
  const leaving = new Map<string, Promise<void>>();
  const taking: string[] = [];
  let room: Promise<void> | undefined;

  function of(id: string, how: Unpacking): Promise<Unpacked> {
    const there = unpacked.get(id) ?? unpack(id, how);
    unpacked.delete(id); // so that the builds are in the order of their last use
    unpacked.set(id, there);
    there.catch(() => unpacked.delete(id));
    return there;
  }

  async function unpack(id: string, { bytes, cover, signal }: Unpacking): Promise<Unpacked> {
    const at = join(dir, id);
    const giveUp = new AbortController();
    unpacking.add(giveUp);
    const short = async () => {
      if (deps.short()) await leaveUnused();
      return deps.short();
    };
    try {
      await leaving.get(id);
      await removeTree(at, isolation);
      const signals = [giveUp.signal, AbortSignal.timeout(unpackMs), ...(signal ? [signal] : [])];
      const { diskBytes } = deps;
      return await unpackBuild(at, bytes(), isolation, { diskBytes, short, cover, signal: AbortSignal.any(signals) });
    } finally {
      unpacking.delete(giveUp);
    }
  }

  /** Builds that no worker runs, the least recently used first. */
  function unused(): string[] {
    const used = new Set([...deps.inUse(), ...taking]);
    return [...unpacked.keys()].filter((id) => !used.has(id));
  }

  function leave(id: string): Promise<void> {
    unpacked.delete(id);
    const left = removeTree(join(dir, id), isolation)
      .catch((error: Error) => log.warn({ error: error.message }, 'workshop.directory_left'))
      .finally(() => leaving.delete(id));
    leaving.set(id, left);
    return left;
  }

  /** One at a time: a second caller would find nothing that the first one is not removing already, and conclude that there is no more. */
  function leaveUnused(): Promise<void> {
    room ??= leaveWhileShort().finally(() => (room = undefined));
    return room;
  }

  /** First the builds that no worker uses, then idle workers with theirs. All of it can be made again. */
  async function leaveWhileShort(): Promise<void> {
    for (const id of unused()) if (deps.short()) await leave(id);
    if (!deps.short()) return;
    await deps.endIdle();
    for (const id of unused()) if (deps.short()) await leave(id);
  }

  return {
    of,
    ids: () => [...unpacked.keys()],
    /** The directory of the build does not exist any more. */
    lost: (id: string) => void unpacked.delete(id),

    /** Runs while the deployment's build must stay. Unused ones are kept for later, but not all: each may have as much as a session. */
    async keeping<T>(id: string, work: Promise<T>): Promise<T> {
      taking.push(id);
      try {
        return await work;
      } finally {
        taking.splice(taking.indexOf(id), 1);
        const left = unused();
        for (const oldest of left.slice(0, Math.max(0, left.length - mostKept))) void leave(oldest);
      }
    },

    /** Removes builds while the disk is short. Builds that are being unpacked are aborted last: an invocation waits for each. */
    async makeRoom(): Promise<void> {
      await leaveUnused();
      if (!deps.short()) return;
      for (const one of unpacking) one.abort(new WorkerError('The disk of the node is full. Run it again later.'));
      await Promise.allSettled(unpacked.values());
    },

    async remove(id: string): Promise<void> {
      const build = unpacked.get(id);
      if (!build) return;
      unpacked.delete(id);
      await build.catch(() => {});
      await removeTree(join(dir, id), isolation);
    },

    close() {
      for (const one of unpacking) one.abort();
    },
  };
}
