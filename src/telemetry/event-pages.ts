import { errors } from '../errors.ts';
import type { MemoryShare } from '../lib/memory-share.ts';
import type { EventCategory, TelemetryEvent } from '../lib/telemetry.ts';
import { unpack } from './chunks.ts';
import { cursorOf, seqOf } from './cursor.ts';
import type { Line } from './live-events.ts';
import { everyCategory, headOf, maskOf } from './record.ts';
import type { EventsQuery } from './schema.ts';
import type { ChunkFilter, ChunkRow, TelemetryStore } from './store.ts';
import { sinceUs, untilUs } from './times.ts';

/** A page: lines of JSON, and the cursor of the next page. */
export interface Page {
  lines: string[];
  next: number | undefined;
}

/** The bounds of the work for one page. A page that reaches one ends there, and the next page continues. */
const mostChunks = 64;
const mostBytes = 4 * 2 ** 20;
/** Of the chunks: their lines are not all wanted. */
const mostRead = 16 * 2 ** 20;
const atOnce = 4;
const endOfTime = Number.MAX_SAFE_INTEGER;

/** Reads the archive. */
export function telemetryReading(store: Pick<TelemetryStore, 'after' | 'before'>) {
  /** Chunks one after the other, from a place on. */
  async function* chunks(filter: ChunkFilter, from: number, back: boolean): AsyncGenerator<ChunkRow> {
    for (let at = from; ;) {
      const rows = await (back ? store.before(filter, at, atOnce) : store.after(filter, at, atOnce));
      yield* rows;
      const last = rows.at(-1);
      if (!last || rows.length < atOnce) return;
      at = Number(back ? last.first_seq : last.last_seq);
    }
  }

  /** `room` counts what is kept: the wanted lines, and the text of one chunk at a time. */
  async function page(sessionId: string, query: EventsQuery, room?: Pick<MemoryShare, 'add'>): Promise<Page> {
    const { limit } = query;
    const nowMs = Date.now();
    const back = query.order === 'desc';
    if (back && query.since !== undefined)
      throw errors.invalid_input({
        detail:
          'query parameter since does not go with order=desc, which begins with the newest event. Leave out since, or read in the order asc.',
      });
    const since = query.since === undefined ? undefined : sinceUs(query.since, nowMs);
    const filter: ChunkFilter = {
      sessionId,
      fromUs: back || query.offset ? 0 : (since ?? sinceUs('5m', nowMs)),
      untilUs: query.until === undefined ? endOfTime : untilUs(query.until),
      mask: query.category?.length ? maskOf(query.category as EventCategory[]) : everyCategory,
    };
    const from = query.offset ? seqOf(sessionId, query.offset) : back ? endOfTime : 0;
    const wanted = (line: Line) => {
      const { ts, mask } = headOf(line.line);
      const ahead = back ? line.seq < from : line.seq > from;
      return ahead && ts >= filter.fromUs && ts < filter.untilUs && (mask & filter.mask) !== 0;
    };

    const lines: string[] = [];
    let [read, readBytes, longest, bytes, at] = [0, 0, 0, 0, from];
    for await (const chunk of chunks(filter, from, back)) {
      if (read++ >= mostChunks || readBytes > mostRead) return { lines, next: cursorOf(sessionId, at) };
      const all = await linesOf(chunk);
      const length = all.reduce((sum, { line }) => sum + line.length, 0);
      readBytes += length;
      if (length > longest) {
        await room?.add(length - longest);
        longest = length;
      }
      const before = bytes;
      for (const line of back ? all.toReversed() : all) {
        if (!wanted(line)) continue;
        bytes += line.line.length;
        // One more than asked for shows that there is another page, which begins with it.
        if (lines.length === limit || (bytes > mostBytes && lines.length > 0))
          return { lines, next: cursorOf(sessionId, at) };
        lines.push(Buffer.from(line.line).toString()); // a copy: a part of a string keeps the whole string in memory
        at = line.seq;
      }
      await room?.add(bytes - before);
      at = Number(back ? chunk.first_seq : chunk.last_seq);
    }
    return { lines, next: undefined };
  }

  return {
    page,

    /** The first lines after this number, as many as were written together. */
    async following(sessionId: string, seq: number): Promise<Line[]> {
      const [chunk] = await store.after({ sessionId, fromUs: 0, untilUs: endOfTime, mask: everyCategory }, seq, 1);
      return chunk ? (await linesOf(chunk)).filter((line) => line.seq > seq) : [];
    },

    /** Every event of a session that is archived, oldest first. */
    async *all(
      sessionId: string,
      { categories }: { categories?: readonly EventCategory[] } = {},
    ): AsyncGenerator<{ seq: number; event: TelemetryEvent }> {
      const mask = categories ? maskOf(categories) : everyCategory;
      for await (const chunk of chunks({ sessionId, fromUs: 0, untilUs: endOfTime, mask }, 0, false))
        for (const { line } of await linesOf(chunk))
          if ((headOf(line).mask & mask) !== 0) yield JSON.parse(line) as { seq: number; event: TelemetryEvent };
    },
  };
}

async function linesOf({ first_seq, packed }: ChunkRow): Promise<Line[]> {
  const first = Number(first_seq);
  return (await unpack(packed)).map((line, index) => ({ seq: first + index, line }));
}
