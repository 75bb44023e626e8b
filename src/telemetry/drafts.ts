import type { Finish, TelemetryEvent } from '../lib/telemetry.ts';
import { gather, type LooseChunk } from './chunks.ts';
import { lineOf } from './record.ts';
import type { SecretFilter } from './secret-filter.ts';

/** A page that keeps thousands of responses waiting has the first of them in the archive. */
const mostBytes = 256 * 1024;

interface DraftsOptions {
  isCaptured: (event: TelemetryEvent) => boolean;
  add: (event: TelemetryEvent) => void;
  onChange: () => void;
}

/** The events of a session of which a part is to come. They become events of its journal when they are whole. */
export function journalDrafts({ isCaptured, add, onChange }: DraftsOptions) {
  const drafts = new Map<Finish<TelemetryEvent>, TelemetryEvent>();

  return {
    /** See TelemetrySink. */
    take(event: TelemetryEvent): Finish<TelemetryEvent> {
      const finish: Finish<TelemetryEvent> = (whole) => {
        if (!drafts.delete(finish)) return;
        if (whole) add(whole);
        onChange();
      };
      if (!isCaptured(event)) return () => {};
      drafts.set(finish, event);
      onChange();
      return finish;
    },

    get any() {
      return drafts.size > 0;
    },

    /** Lines for the archive, with the numbers after `lastSeq`; undefined when there are none. */
    seal(lastSeq: number, secrets: SecretFilter): LooseChunk | undefined {
      const lines: string[] = [];
      let bytes = 0;
      for (const event of drafts.values()) {
        const line = lineOf(lastSeq + 1 + lines.length, event, secrets);
        if (line === undefined) continue;
        bytes += line.length;
        if (bytes > mostBytes) break;
        lines.push(line);
      }
      return lines.length > 0 ? gather(lines, bytes) : undefined;
    },

    /** The session is over: they become events as they are. */
    end(): void {
      for (const [finish, event] of drafts) finish(event);
    },
  };
}
