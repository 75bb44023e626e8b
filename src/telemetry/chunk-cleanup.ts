import type { Log } from '../lib/log.ts';
import { merge } from './chunks.ts';
import { mostTail } from './journal.ts';
import type { OwnedChunk, TelemetryStore } from './store.ts';

/** So many small chunks become one. */
const mergeCount = 16;
/** Chunks are trimmed to this share, so that they are not trimmed again at once. */
const trimTo = 0.9;

export interface TidyingOptions {
  store: TelemetryStore;
  sessionBytes: number;
  projectBytes: number;
  /** How often the bytes of a project are counted while it captures. */
  countMs?: number;
  log: Log;
}

/** The known state of a session's chunks in the archive. */
interface Written {
  bytes: number;
  /** The last chunks, as long as they are small and follow each other. */
  small: OwnedChunk[];
}

/** Keeps the archive in order while it is written: few rows, and no more bytes than a session and a project may have. */
export function tidying({ store, sessionBytes, projectBytes, countMs = 30_000, log }: TidyingOptions) {
  const known = new Map<string, Written>();
  const counted = new Map<string, number>();

  return {
    /** The chunk was written. */
    note(chunk: OwnedChunk): void {
      const there = known.get(chunk.sessionId) ?? { bytes: 0, small: [] };
      known.set(chunk.sessionId, there);
      there.bytes += chunk.packed.length;
      const follows = there.small.at(-1)?.lastSeq === chunk.firstSeq - 1;
      const raw = there.small.reduce((sum, { rawBytes }) => sum + rawBytes, chunk.rawBytes);
      there.small = raw > mostTail ? [] : follows ? [...there.small, chunk] : [chunk];
    },

    /** Merges small chunks and keeps to the bounds. A failure is tried again with later chunks. */
    async tidy(sessionId: string, projectId: string): Promise<void> {
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
    },

    /** The session is over. */
    forget: (sessionId: string) => void known.delete(sessionId),

    close: () => counted.clear(),
  };
}
