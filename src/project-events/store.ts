import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

/** How long events are kept, and how many at most. */
const keepMinutes = 60;
const keepMost = 100_000;
const atOnce = 5000;

/** An event with its position in the stream and the fields that decide which keys see it. */
export interface PlacedEvent {
  position: number;
  projectId: string | null;
  forOrg: boolean;
  /** As readers get it. */
  json: string;
}

interface EventRow {
  position: string;
  project_id: string | null;
  for_org: boolean;
  type: string;
  resource_id: string;
  at: Date;
  data: Record<string, unknown>;
}

export type ProjectEventStore = ReturnType<typeof projectEventStore>;

/** Every query on `project_events`. Rows come from the triggers of migration 0019. */
export function projectEventStore(db: Db) {
  return {
    /** Gives positions to everything that was committed before this call. Resolves with the newest. */
    async place(): Promise<number> {
      for (let placed = atOnce; placed === atOnce;) {
        const row = await db.row<{ placed: number }>(sql`select place_events(${atOnce}::integer) as placed`);
        placed = row!.placed;
      }
      const clock = await db.row<{ last: string }>(sql`select last from event_clock`);
      return Number(clock!.last);
    },

    async after(position: number, most: number): Promise<PlacedEvent[]> {
      const rows =
        await db.rows<EventRow>(sql`select position, project_id, for_org, type, resource_id, at, data from project_events
        where position > ${position} order by position limit ${most}`);
      return rows.map(toPlaced);
    },

    /** Asks for notifications, from all nodes, for a minute. */
    async want(): Promise<void> {
      await db.rows(sql`update event_clock set wanted_until = now() + interval '1 minute'`);
    },

    /** Removes events that are too old or too many, always the oldest positions, so the rest has no gaps. */
    async prune({ minutes = keepMinutes, most = keepMost } = {}): Promise<void> {
      await this.place();
      for (let removed = atOnce; removed === atOnce;) {
        const rows = await db.rows(sql`with oldest as (
            select position, at from project_events where position is not null order by position limit ${atOnce})
          delete from project_events where position <= (select max(position) from oldest
            where at < now() - make_interval(mins => ${minutes}::integer) or position <= (select last - ${most}::bigint from event_clock))
          returning 1`);
        removed = rows.length;
      }
    },
  };
}

function toPlaced({ position, project_id, for_org, type, resource_id, at, data }: EventRow): PlacedEvent {
  const id = Number(position);
  const json = JSON.stringify({ id, type, time: at.toISOString(), project_id, resource_id, data });
  return { position: id, projectId: project_id, forOrg: for_org, json };
}
