import { setTimeout as sleep } from 'node:timers/promises';
import { withoutOwner } from '../lib/scope.ts';
import { turns } from '../lib/turns.ts';
import { pack, type LooseChunk } from './chunks.ts';
import type { Journal } from './journal.ts';
import { tidying, type TidyingOptions } from './chunk-cleanup.ts';

/** How long an event waits until it is written. With the write itself, less than a second. */
const roundMs = 400;
/** Pause after a write that failed. */
const pauseMs = 1000;
/** The most bytes in one transaction. */
const mostAtOnce = 4 * 2 ** 20;

interface WriterOptions extends TidyingOptions {
  /** Whether the disk of the database has no room for this; never for a database that the operator runs. */
  short: () => boolean;
}

/** A chunk to write. */
interface Sealed {
  journal: Journal;
  chunk: LooseChunk;
  draft: boolean;
}

/**
 * Writes the events of all sessions of this node, in rounds: one transaction for all of them, so that the disk is waited for
 * once in a round and not once for each session. `synchronous_commit` stays on: events that were read once are never lost.
 */
export function telemetryWriter({ short, ...options }: WriterOptions) {
  const { store, log } = options;
  const archive = tidying(options);
  const dirty = new Set<Journal>();
  /** Those of which the archive has drafts, or may have. */
  const drafted = new Set<Journal>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let queued: Promise<void> | undefined;
  let failing = false;

  function onLines(journal: Journal, urgent: boolean) {
    dirty.add(journal);
    if (urgent && !failing) void round();
    else roundLater();
  }

  function roundLater() {
    timer ??= withoutOwner(() => setTimeout(() => void round(), failing ? pauseMs : roundMs));
  }

  /** Writes what there is. Resolves when it is written, or could not be. A call during a round is served by the next one. */
  const round = () => withoutOwner(nextRound); // it writes for all sessions, so a fault in it belongs to no caller

  function nextRound(): Promise<void> {
    if (running) return (queued ??= running.then(nextRound));
    clearTimeout(timer);
    timer = queued = undefined;
    running = writeAll().finally(() => {
      running = undefined;
      if (dirty.size > 0) roundLater();
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
      await writeSealed(journals);
      failing = false;
    } catch (error) {
      for (const journal of journals) {
        journal.refused();
        if (!isDone(journal)) dirty.add(journal);
      }
      complain((error as Error).message);
      return;
    }
    for (const { sessionId, projectId } of journals) await archive.tidy(sessionId, projectId);
  }

  /** Whether the archive has all events of the journal, and no drafts. */
  const isDone = (journal: Journal) => journal.clean && !journal.hasDrafts && !drafted.has(journal);

  async function writeSealed(journals: readonly Journal[]): Promise<void> {
    const [sealed, drafts]: [Sealed[], Sealed[]] = [[], []];
    const turn = turns();
    for (const journal of journals) {
      sealed.push(...journal.seal().map((chunk) => ({ journal, chunk, draft: false })));
      const chunk = await journal.sealDrafts(turn);
      if (chunk) drafts.push({ journal, chunk, draft: true });
    }
    let undrafted = journals.filter((journal) => drafted.has(journal)).map(({ sessionId }) => sessionId);
    for (const { journal } of drafts) drafted.add(journal); // also when the write fails: its outcome may be unknown
    const all = portions([...sealed, ...drafts]);
    if (all.length === 0 && undrafted.length > 0) all.push([]);
    for (const portion of all) {
      await write(portion, undrafted);
      undrafted = [];
    }
    for (const journal of journals) if (!drafts.some((draft) => draft.journal === journal)) drafted.delete(journal);
  }

  async function write(portion: readonly Sealed[], undrafted: readonly string[]): Promise<void> {
    const owned = await Promise.all(
      portion.map(async ({ journal: { sessionId, projectId }, chunk, draft }) => ({
        ...(await pack(chunk)),
        sessionId,
        projectId,
        draft,
      })),
    );
    await store.insert(owned, undrafted);
    portion.forEach(({ journal, draft }, index) => {
      if (draft) return;
      const chunk = owned[index]!;
      journal.written(chunk);
      archive.note(chunk);
    });
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
      // On a full disk a draft may stay behind. No reader sees it, and it expires.
      const isLeft = () => !isDone(journal) && !(journal.clean && short());
      for (await round(); isLeft() && !stopped(); await round()) await sleep(pauseMs, undefined, { ref: false });
      archive.forget(journal.sessionId);
      drafted.delete(journal);
    },

    async close(): Promise<void> {
      await round();
      clearTimeout(timer);
      timer = undefined;
      archive.close();
    },
  };
}

/** Chunks for one transaction each. */
function portions(all: readonly Sealed[]): Sealed[][] {
  const groups: Sealed[][] = [];
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
