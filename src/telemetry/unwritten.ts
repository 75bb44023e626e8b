import type { LooseChunk } from './chunks.ts';

/** What waits in memory for the database, of one session. Beyond that, the oldest is lost. */
const mostUnwritten = 4 * 2 ** 20;

/** The closed chunks of a journal that are not in the archive, oldest first. */
export function unwrittenChunks(onLost: (events: number) => void) {
  let all: LooseChunk[] = [];
  /** Those that are being written: they are not dropped, because they may already be in the archive. */
  const writing = new Set<LooseChunk>();
  /** Dropped events that were not reported to `onLost` yet. */
  let lost = 0;

  /** Drops the excess of the waiting events, the oldest first. */
  function giveUp(): void {
    const waiting = all.filter((chunk) => !writing.has(chunk));
    const given = new Set<LooseChunk>();
    let bytes = waiting.reduce((sum, { rawBytes }) => sum + rawBytes, 0);
    for (const chunk of waiting) {
      if (bytes <= mostUnwritten) break;
      bytes -= chunk.rawBytes;
      lost += chunk.lines.length;
      given.add(chunk);
    }
    if (given.size > 0) all = all.filter((chunk) => !given.has(chunk));
  }

  /** Once in a round: events may be lost all the time. */
  function tellLost(): void {
    if (lost > 0) onLost(lost);
    lost = 0;
  }

  return {
    get all(): readonly LooseChunk[] {
      return all;
    },

    add(chunk: LooseChunk): void {
      all.push(chunk);
      giveUp();
    },

    /** All of them, to be written now. */
    write(): readonly LooseChunk[] {
      tellLost();
      for (const chunk of all) writing.add(chunk);
      return [...all];
    },

    /** The chunk with this last number is in the archive. */
    written(lastSeq: number): LooseChunk | undefined {
      const chunk = all.find((one) => one.lastSeq === lastSeq);
      all = all.filter((one) => one !== chunk);
      if (chunk) writing.delete(chunk);
      return chunk;
    },

    /** They cannot be written for now. */
    refused(): void {
      writing.clear();
      giveUp();
      tellLost();
    },

    /** Drops all of them. */
    discard(): void {
      lost += all.reduce((sum, { lines }) => sum + lines.length, 0);
      all = [];
      writing.clear();
      tellLost();
    },
  };
}
