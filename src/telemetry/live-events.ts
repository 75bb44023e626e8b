/** A reader may be this many events behind. */
export const ringSize = 1024;

export interface Line {
  seq: number;
  line: string;
}

/** What a reader follows: the journal of a session. */
interface Followed {
  /** The number of the newest event. */
  last(): number;
  ended(): boolean;
  /** Lines after `seq` that are in memory; undefined when the next one is not. */
  inMemory(seq: number): Line[] | undefined;
  /** The first number in memory that is greater than `seq`. */
  nextInMemory(seq: number): number;
  /** Lines after `seq` from the archive. */
  archived(seq: number): Promise<Line[]>;
  /** Called and emptied when there is something new. */
  waiting: Set<() => void>;
}

/**
 * Lines after `seq`, and then each new one, until the session ends or `until` aborts. It waits for its reader. A reader that
 * falls too far behind misses events, which shows in the numbers.
 */
export async function* followLines(seq: number, until: AbortSignal, journal: Followed): AsyncGenerator<Line> {
  const { last, ended, inMemory, nextInMemory, archived, waiting } = journal;
  let at = Math.min(seq, last());
  let wake: (() => void) | undefined;
  const onAbort = () => wake?.();
  until.addEventListener('abort', onAbort, { once: true });
  try {
    while (!until.aborted) {
      if (at >= last()) {
        if (ended()) return;
        await new Promise<void>((resolve) => waiting.add((wake = resolve)));
        waiting.delete(wake!);
        continue;
      }
      at = Math.max(at, last() - ringSize);
      const lines = inMemory(at) ?? (await archived(at));
      if (lines.length === 0) at = Math.max(at, nextInMemory(at) - 1); // lost, or trimmed from the archive
      for (const line of lines) {
        if (until.aborted) return;
        if (line.seq <= last() - ringSize) continue;
        yield line;
        at = line.seq;
      }
      at = Math.max(at, lines.at(-1)?.seq ?? 0);
    }
  } finally {
    until.removeEventListener('abort', onAbort);
  }
}
