import type { Capture, TelemetryEvent } from '../lib/telemetry.ts';
import type { Turn } from '../lib/turns.ts';
import { gather, type Chunk, type LooseChunk } from './chunks.ts';
import { nothing } from './capture.ts';
import { journalDrafts } from './drafts.ts';
import { followLines, type Line } from './live-events.ts';
import { lineOf } from './record.ts';
import { secretFilter } from './secret-filter.ts';
import { unwrittenChunks } from './unwritten.ts';

/** Lines in memory before they are written without waiting for the next round. */
export const mostTail = 256 * 1024;

interface JournalOptions {
  sessionId: string;
  projectId: string;
  /** Called when there is something to write; `urgent`: there is much of it. */
  onLines: (journal: Journal, urgent: boolean) => void;
  /** The first chunk in the archive with lines after this number. */
  archived: (sessionId: string, after: number) => Promise<Line[]>;
  onLost: (events: number) => void;
  /** Called for each line that is kept, which has no secrets any more. */
  onLine?: (type: string, line: string) => void;
}

export type Journal = ReturnType<typeof journal>;

/**
 * The events of one session, in order. Memory has the newest lines only: the `tail`, which is not written yet, and the
 * chunks that are being written. A reader that is further behind reads from the archive, so that 1,024 events can be
 * replayed without being kept here. With screenshots, those would be a gigabyte.
 */
export function journal({ sessionId, projectId, onLines, archived, onLost, onLine }: JournalOptions) {
  let capture: Capture = nothing;
  const secrets = secretFilter();
  let lastSeq = 0;
  let [tail, tailBytes]: [string[], number] = [[], 0];
  const unwritten = unwrittenChunks(onLost);
  /** The last written one, for readers that are a moment late; undefined when it is large. */
  let previous: LooseChunk | undefined;
  let ended = false;
  let ending: Promise<void> | undefined;
  /** Aborts for the readers of one holder: a pool's browser goes to another one afterwards. */
  let readers = new AbortController();
  const waiting = new Set<() => void>();
  const wake = () => callAll(waiting);

  const isCaptured = ({ category }: TelemetryEvent) =>
    category === 'monitor' ? capture.size > 0 : capture.has(category);
  const drafts = journalDrafts({ add: keep, onChange: () => onLines(self, false) });

  function keep(event: TelemetryEvent): void {
    const line = lineOf(lastSeq + 1, event, secrets);
    if (line === undefined) return;
    lastSeq += 1;
    tail.push(line);
    tailBytes += line.length;
    onLine?.(event.type, line);
    const urgent = tailBytes >= mostTail;
    // A write may take long. Lines added during it would become a chunk too large to be read again.
    if (urgent) closeTail();
    onLines(self, urgent);
    wake();
  }

  function closeTail(): void {
    if (tail.length > 0) unwritten.add(gather(tail, tailBytes));
    [tail, tailBytes] = [[], 0];
  }

  /** Lines after `seq` that are in memory; undefined when the next one is not. */
  function inMemory(seq: number): Line[] | undefined {
    const firstOfTail = lastSeq - tail.length + 1;
    if (seq + 1 >= firstOfTail) return numbered(tail, firstOfTail, seq);
    for (const chunk of previous ? [previous, ...unwritten.all] : unwritten.all)
      if (seq + 1 >= chunk.firstSeq && seq < chunk.lastSeq) return numbered(chunk.lines, chunk.firstSeq, seq);
    return undefined;
  }

  /** The first number in memory that is greater than `seq`. */
  const nextInMemory = (seq: number) =>
    [...unwritten.all.map(({ firstSeq }) => firstSeq), lastSeq - tail.length + 1].find((first) => first > seq) ??
    lastSeq;

  const follow = (seq: number, signal: AbortSignal): AsyncGenerator<Line> =>
    followLines(seq, AbortSignal.any([signal, readers.signal]), {
      last: () => lastSeq,
      ended: () => ended && !drafts.any,
      inMemory,
      nextInMemory,
      archived: (after) => archived(sessionId, after),
      waiting,
    });

  const self = {
    sessionId,
    projectId,
    add(event: TelemetryEvent): void {
      if (!ended && isCaptured(event)) keep(event);
    },
    draft: (event: TelemetryEvent) => (!ended && isCaptured(event) ? drafts.take(event) : () => {}),
    follow,

    get lastSeq() {
      return lastSeq;
    },
    get capture() {
      return capture;
    },
    /** Incomplete events of disabled categories are dropped: a pool's browser gets another holder. */
    set capture(next: Capture) {
      capture = next;
      drafts.keepOnly(isCaptured);
    },
    /** The secrets that no line may have. */
    secrets,
    get ended() {
      return ended;
    },
    /** Whether every event is written. */
    get clean() {
      return tail.length === 0 && unwritten.all.length === 0;
    },

    /** The data to write: chunks that a failed write left, and the lines since. */
    seal(): readonly LooseChunk[] {
      closeTail();
      return unwritten.write();
    },

    /** The drafts as lines, after the last one of `seal`; undefined when there are none. */
    sealDrafts: (turn: Turn) => drafts.seal(lastSeq, secrets, turn),
    get hasDrafts() {
      return drafts.any;
    },

    /** The chunk is in the archive. */
    written({ lastSeq: last }: Pick<Chunk, 'lastSeq'>) {
      const chunk = unwritten.written(last);
      previous = chunk && chunk.rawBytes <= mostTail ? chunk : undefined;
    },

    /** The chunks cannot be written for now: the excess is dropped, the oldest first. */
    refused: unwritten.refused,

    /** Drops the unwritten data: there is no room for it. */
    discard: unwritten.discard,

    /** Ends the streams of the present readers. */
    endReaders() {
      readers.abort();
      readers = new AbortController();
    },

    /** Takes no more events. Readers get what there is, and then their end. Resolves when the incomplete events are added. */
    end(): Promise<void> {
      ended = true;
      return (ending ??= drafts.end().then(wake));
    },
  };
  return self;
}

const numbered = (lines: readonly string[], first: number, after: number): Line[] =>
  lines.slice(Math.max(0, after + 1 - first)).map((line, index) => ({ seq: Math.max(first, after + 1) + index, line }));

function callAll(waiting: Set<() => void>): void {
  const all = [...waiting];
  waiting.clear();
  for (const resolve of all) resolve();
}
