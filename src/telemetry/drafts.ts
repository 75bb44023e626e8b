import type { Finish, TelemetryEvent } from '../lib/telemetry.ts';
import { loopPace, nextTurn, type Turn } from '../lib/turns.ts';
import { gather, type LooseChunk } from './chunks.ts';
import { lineOf, renumbered } from './record.ts';
import type { SecretFilter } from './secret-filter.ts';

/** A page that keeps thousands of responses waiting has the first of them in the archive. */
const mostBytes = 256 * 1024;

/** An event of which a part is to come, and its line once it was written: to remove secrets takes long, and each round writes it again. */
interface Incomplete {
  readonly event: TelemetryEvent;
  line?: string | undefined;
  /** The version of the secrets that the line does not have. */
  version?: number;
}

interface DraftsOptions {
  add: (event: TelemetryEvent) => void;
  onChange: () => void;
}

/** The events of a session of which a part is to come. They become events of its journal when they are whole. */
export function journalDrafts({ add, onChange }: DraftsOptions) {
  const drafts = new Map<Finish<TelemetryEvent>, Incomplete>();

  function lineFor(draft: Incomplete, secrets: SecretFilter): string | undefined {
    if (draft.version !== secrets.version) {
      draft.line = lineOf(0, draft.event, secrets);
      draft.version = secrets.version;
    }
    return draft.line;
  }

  return {
    /** See TelemetrySink. */
    take(event: TelemetryEvent): Finish<TelemetryEvent> {
      const finish: Finish<TelemetryEvent> = (whole) => {
        if (!drafts.delete(finish)) return;
        if (whole) add(whole);
        onChange();
      };
      drafts.set(finish, { event });
      onChange();
      return finish;
    },

    get any() {
      return drafts.size > 0;
    },

    /**
     * Lines for the archive, with the numbers after `lastSeq`; undefined when there are none. Events that are added since may have the
     * same numbers: the round that writes them removes these lines.
     */
    async seal(lastSeq: number, secrets: SecretFilter, turn: Turn): Promise<LooseChunk | undefined> {
      const lines: string[] = [];
      let bytes = 0;
      const present = [...drafts.values()]; // a page that adds more all the time does not prolong the round
      for (const draft of present) {
        const line = lineFor(draft, secrets);
        const later = turn();
        if (later) await later;
        if (line === undefined) continue;
        bytes += line.length;
        if (bytes > mostBytes) break;
        lines.push(renumbered(line, lastSeq + 1 + lines.length));
      }
      return lines.length > 0 ? gather(lines, bytes) : undefined;
    },

    /** Drops the drafts of categories that are no longer captured. */
    keepOnly(isCaptured: (event: TelemetryEvent) => boolean): void {
      for (const [finish, { event }] of drafts) if (!isCaptured(event)) finish();
    },

    /** The session is over: they become events as they are. There may be a thousand, so other work has its turn in between. */
    async end(): Promise<void> {
      for (const [finish, { event }] of drafts) {
        if (loopPace.isOver()) await nextTurn();
        finish(event);
      }
    },
  };
}
