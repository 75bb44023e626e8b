import { setTimeout as sleep } from 'node:timers/promises';
import type { Capture, EventCategory, TelemetrySink } from '../lib/telemetry.ts';
import type { Log } from '../lib/log.ts';
import type { MemoryShare } from '../lib/memory-share.ts';
import type { Db } from '../store/db.ts';
import type { EventSource } from './export/source.ts';
import { ringSize, type Line } from './live-events.ts';
import { journal, type Journal } from './journal.ts';
import { telemetryReading, type Page } from './event-pages.ts';
import type { EventsQuery } from './schema.ts';
import type { Secret } from './secret-filter.ts';
import { telemetryStore } from './store.ts';
import { telemetryWriter } from './writer.ts';

/** The rows that one statement removes. */
const atOnce = 1000;

/** What a session does with its telemetry. */
export interface SessionJournal extends TelemetrySink {
  capture: Capture;
  /** From now on no event has these, nor any of those before. */
  hide(secrets: Iterable<Secret>): void;
  /** A text without the secrets that are hidden in events. */
  clean(text: string): string;
  /** Ends the streams of the present holder. */
  endReaders(): void;
  /** The session is over: what there is gets written. */
  end(): void;
}

export type TelemetryService = ReturnType<typeof telemetryService>;

/** The events of sessions: kept by the node that runs the session, archived in the database, read by every node. */
export function telemetryService({
  db,
  days,
  sessionBytes,
  projectBytes,
  countMs,
  short = () => false,
  onLine,
  log,
}: {
  db: Db;
  /** How long events are kept. */
  days: number;
  sessionBytes: number;
  projectBytes: number;
  /** How often the bytes of a project are counted. */
  countMs?: number;
  /** Whether the database's disk has no room for this. */
  short?: () => boolean;
  /** Called for each event of the sessions of this node: its type, and the line that readers get. */
  onLine?: (sessionId: string, type: string, line: string) => void;
  log: Log;
}) {
  const store = telemetryStore(db);
  const reading = telemetryReading(store);
  const writer = telemetryWriter({
    store,
    sessionBytes,
    projectBytes,
    ...(countMs !== undefined && { countMs }),
    short,
    log,
  });
  const journals = new Map<string, Journal>();
  let stopped = false;
  let lost = 0;

  /** Everything that the session did until now can be read when this resolves. */
  const caughtUp = async (sessionId: string) => {
    const here = journals.get(sessionId);
    if (here && !here.clean) await writer.flush();
  };

  /** Waits a moment for incomplete events: after a page has loaded, the bodies of its responses are read. */
  const completed = async (sessionId: string) => {
    for (let looks = 0; looks < 20 && journals.get(sessionId)?.hasDrafts; looks++) await sleep(50);
  };

  return {
    /** The journal of a session that starts on this node. */
    open(sessionId: string, projectId: string): SessionJournal {
      const kept = journal({
        sessionId,
        projectId,
        onLines: writer.onLines,
        ...(onLine && { onLine: (type: string, line: string) => onLine(sessionId, type, line) }),
        archived: (id, after) => reading.following(id, after),
        onLost(events) {
          lost += events;
          log.warn({ session: sessionId, events }, 'telemetry.lost');
        },
      });
      journals.set(sessionId, kept);
      return {
        get capture() {
          return kept.capture;
        },
        set capture(next) {
          kept.capture = next;
        },
        add: kept.add,
        draft: kept.draft,
        hide: kept.secrets.add,
        clean: kept.secrets.clean,
        endReaders: kept.endReaders,
        end() {
          void kept
            .end()
            .then(() => writer.finish(kept, () => stopped))
            .then(() => journals.delete(sessionId));
        },
      };
    },

    /** The journal of a session that runs on this node, if it belongs to the project and captures anything. */
    capturing(sessionId: string, projectId: string): Pick<SessionJournal, 'add'> | undefined {
      const here = journals.get(sessionId);
      return here && !here.ended && here.projectId === projectId && here.capture.size > 0 ? here : undefined;
    },

    /** Whether any session of this node captures the category. */
    anyCaptures: (category: EventCategory): boolean =>
      [...journals.values()].some(({ capture }) => (capture as ReadonlySet<EventCategory>).has(category)),

    /**
     * The events of a session of this node, as they happen: from now on, after an event, or from the oldest that can
     * still be read. Undefined when the session is not on this node.
     */
    follow(
      sessionId: string,
      from: { after: number } | 'oldest' | 'now',
      signal: AbortSignal,
    ): AsyncIterable<Line> | undefined {
      const here = journals.get(sessionId);
      if (!here || here.ended) return undefined;
      const after = from === 'now' ? here.lastSeq : from === 'oldest' ? 0 : from.after;
      return here.follow(Math.max(after, here.lastSeq - ringSize), signal);
    },

    /** A page of a session's events; of an ended session, too. */
    async page(sessionId: string, query: EventsQuery, room?: Pick<MemoryShare, 'add'>): Promise<Page> {
      await caughtUp(sessionId);
      return reading.page(sessionId, query, room);
    },

    /** For exports: every event of a session, oldest first. */
    async *read(sessionId: string, options: { categories?: readonly EventCategory[] } = {}) {
      await completed(sessionId);
      await caughtUp(sessionId);
      yield* reading.all(sessionId, options);
    },

    counts: () => ({ journals: journals.size, lost }),

    /** Removes events beyond their retention time. */
    async expire(): Promise<void> {
      while ((await store.removeOlderThan(days, atOnce)) === atOnce);
    },

    /** After the sessions have ended: writes their remaining events. */
    async close(): Promise<void> {
      stopped = true;
      await Promise.all(Array.from(journals.values(), (journal) => journal.end()));
      await writer.close();
    },
  } satisfies EventSource & Record<string, unknown>;
}
