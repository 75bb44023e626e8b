import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../lib/log.ts';
import { merge, pack, type Chunk } from './chunks.ts';
import { mostTail, type Journal } from './journal.ts';
import type { OwnedChunk, TelemetryStore } from './store.ts';

/** How long an event waits until it is written. With the write itself, less than a second. */
const roundMs = 400;
/** Pause after a write that failed. */
const pauseMs = 1000;
/** So many small chunks become one. */
const mergeCount = 16;
/** What is trimmed is trimmed to this share, so that it is not trimmed again at once. */
const trimTo = 0.9;
/** The most bytes in one transaction. */
const mostAtOnce = 4 * 2 ** 20;

export interface WriterOptions {
  store: TelemetryStore;
  sessionBytes: number;
  projectBytes: number;
  /** How often the bytes of a project are counted while it captures. */
  countMs?: number;
  /** Whether the disk of the database has no room for this; never for a database that the operator runs. */
  short: () => boolean;
  log: Log;
}

/** What the writer knows of a session's chunks in the archive. */
interface Written {
  bytes: number;
  /** The last chunks, as long as they are small and follow each other. */
  small: OwnedChunk[];
}

export type Writer = ReturnType<typeof telemetryWriter>;

/**
 * Writes the events of all sessions of this node, in rounds: one transaction for all of them, so that the disk is waited for
 * once in a round and not once for each session. `synchronous_commit` stays on: what was read once is never lost.
 */
export function telemetryWriter({ store, sessionBytes, projectBytes, countMs = 30_000, short, log }: WriterOptions) {
  const dirty = new Set<Journal>();
  const known = new Map<string, Written>();
  const counted = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let queued: Promise<void> | undefined;
  let failing = false;

  function onLines(journal: Journal, urgent: boolean) {
    dirty.add(journal);
    if (urgent && !failing) void round();
    else timer ??= setTimeout(() => void round(), failing ? pauseMs : roundMs);
  }

  /** Writes what there is. Resolves when it is written, or could not be. A call during a round is served by the next one. */
  function round(): Promise<void> {
    if (running) return (queued ??= running.then(round));
    clearTimeout(timer);
    timer = queued = undefined;
    running = writeAll().finally(() => {
      running = undefined;
      if (dirty.size > 0) timer ??= setTimeout(() => void round(), failing ? pauseMs : roundMs);
    });
    return running;
  }

  async function writeAll(): Promise<void> {
    const journals = [...dirty];
    dirty.clear();
    try {
      if (short()) {
        for (const journal of journals) {
          journal.seal();
          journal.discard();
        }
        return void (journals.length > 0 && complain('The disk is almost full.'));
      }
      for (const portion of portions(
        journals.flatMap((journal) => journal.seal().map((chunk) => ({ journal, chunk }))),
      ))
        await write(portion);
      failing = false;
    } catch (error) {
      for (const journal of journals) {
        journal.refused();
        if (!journal.clean) dirty.add(journal);
      }
      complain((error as Error).message);
      return;
    }
    for (const { sessionId, projectId } of journals) await tidy(sessionId, projectId);
  }

  async function write(portion: { journal: Journal; chunk: Parameters<typeof pack>[0] }[]): Promise<void> {
    const owned = await Promise.all(
      portion.map(async ({ journal: { sessionId, projectId }, chunk }) => ({
        ...(await pack(chunk)),
        sessionId,
        projectId,
      })),
    );
    await store.insert(owned);
    portion.forEach(({ journal }, index) => {
      const chunk = owned[index]!;
      journal.written(chunk);
      note(chunk);
    });
  }

  function note(chunk: OwnedChunk) {
    const there = known.get(chunk.sessionId) ?? { bytes: 0, small: [] };
    known.set(chunk.sessionId, there);
    there.bytes += chunk.packed.length;
    const follows = there.small.at(-1)?.lastSeq === chunk.firstSeq - 1;
    const raw = there.small.reduce((sum, { rawBytes }) => sum + rawBytes, chunk.rawBytes);
    there.small = raw > mostTail ? [] : follows ? [...there.small, chunk] : [chunk];
  }

  /** Merges small chunks and keeps to the bounds. A failure is tried again with later chunks. */
  async function tidy(sessionId: string, projectId: string): Promise<void> {
    const there = known.get(sessionId);
    try {
      if (there && there.small.length >= mergeCount) {
        const { small } = there;
        there.small = [];
        const merged = { ...(await merge(small)), sessionId, projectId };
        if (await store.replace(merged, small.length))
          there.bytes += merged.packed.length - small.reduce((sum, { packed }) => sum + packed.length, 0);
      }
      if (there && there.bytes > sessionBytes)
        there.bytes = await store.trimSession(sessionId, Math.floor(sessionBytes * trimTo));
      const now = performance.now();
      if (now - (counted.get(projectId) ?? -Infinity) < countMs) return;
      counted.set(projectId, now);
      if ((await store.projectBytes(projectId)) > projectBytes)
        await store.trimProject(projectId, Math.floor(projectBytes * trimTo));
    } catch (error) {
      log.warn({ session: sessionId, error: (error as Error).message }, 'telemetry.not_tidied');
    }
  }

  function complain(error: string) {
    if (!failing) log.warn({ error }, 'telemetry.not_written');
    failing = true;
  }

  return {
    onLines,
    flush: round,

    /** Resolves when the session's events are written, however long the database is away; or the service stops. */
    async finish(journal: Journal, stopped: () => boolean): Promise<void> {
      for (await round(); !journal.clean && !stopped(); await round()) await sleep(pauseMs, undefined, { ref: false });
      known.delete(journal.sessionId);
    },

    async close(): Promise<void> {
      await round();
      clearTimeout(timer);
      timer = undefined;
      counted.clear();
    },
  };
}

/** Chunks for one transaction each. */
function portions<T extends { chunk: Pick<Chunk, 'rawBytes'> }>(all: readonly T[]): T[][] {
  const groups: T[][] = [];
  let bytes = Infinity;
  for (const one of all) {
    if (bytes + one.chunk.rawBytes > mostAtOnce) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)!.push(one);
    bytes += one.chunk.rawBytes;
  }
  return groups;
}
