import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';

export interface NodeRow {
  id: string;
  life: string;
  internal_url: string;
  public_url: string;
  version: string;
  keys: string[];
  capacity: number;
  running: number;
  started_at: Date;
  heartbeat_at: Date;
  /** How long ago its last heartbeat was, by the database's clock. */
  silent_ms: number;
  /** The database's clock when it answered, in milliseconds. */
  now_ms: number;
}

type NewNode = Pick<
  NodeRow,
  'id' | 'life' | 'internal_url' | 'public_url' | 'version' | 'keys' | 'capacity' | 'running'
>;

/** A node that was silent for this long is lost. */
export const lostAfterMs = 10_000;

/** Every query on `nodes`. All times are on the database's clock. */
export function nodeStore(db: Db) {
  return {
    list(): Promise<NodeRow[]> {
      return db.rows(sql`select *,
          (extract(epoch from clock_timestamp() - heartbeat_at) * 1000)::float8 as silent_ms,
          (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms
        from nodes order by started_at, id`);
    },

    /** Before the first migration the table does not exist. */
    async listIfThere(): Promise<NodeRow[]> {
      const there = await db.row<{ there: boolean }>(sql`select to_regclass('nodes') is not null as there`);
      return there?.there ? this.list() : [];
    },

    /** Held until the transaction ends: serialises joining and the search for absent nodes. */
    async lock(): Promise<void> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral nodes', 0))`);
    },

    async put(node: NewNode): Promise<void> {
      await db.rows(sql`insert into nodes (id, life, internal_url, public_url, version, keys, capacity, running)
        values (${node.id}, ${node.life}, ${node.internal_url}, ${node.public_url}, ${node.version}, ${node.keys},
          ${node.capacity}, ${node.running})
        on conflict (id) do update set life = excluded.life, internal_url = excluded.internal_url,
          public_url = excluded.public_url, version = excluded.version, keys = excluded.keys,
          capacity = excluded.capacity, running = excluded.running, started_at = now(), heartbeat_at = now()`);
    },

    /**
     * Sends a heartbeat and reads all nodes. `standing` is false when the row was removed: this node was declared dead, and its
     * sessions were settled. The row's lock decides between this and `takeSilent`: the first one wins.
     */
    async beat(
      node: Pick<NodeRow, 'id' | 'life' | 'keys' | 'capacity' | 'running'>,
    ): Promise<{ standing: boolean; nodes: NodeRow[] }> {
      const nodes = await db.rows<NodeRow & { standing: boolean }>(sql`with beat as (
          update nodes set heartbeat_at = now(), keys = ${node.keys}, capacity = ${node.capacity}, running = ${node.running}
          where id = ${node.id} and life = ${node.life} returning id)
        select *, (extract(epoch from clock_timestamp() - heartbeat_at) * 1000)::float8 as silent_ms,
          (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms, exists (select from beat) as standing
        from nodes order by started_at, id`);
      return { standing: nodes[0]?.standing ?? false, nodes };
    },

    /**
     * Removes a silent node. Of all nodes that try, one gets true. A locked row is skipped: another node is removing it,
     * or its owner is back.
     */
    async takeSilent({ id, life }: Pick<NodeRow, 'id' | 'life'>): Promise<boolean> {
      const taken = await db.row(sql`delete from nodes where id = (
          select id from nodes where id = ${id} and life = ${life}
            and heartbeat_at < now() - make_interval(secs => ${lostAfterMs / 1000}) for update skip locked)
        returning id`);
      return taken !== undefined;
    },

    async absentAmong(ids: string[]): Promise<string[]> {
      const rows = await db.rows<{ id: string }>(sql`select asked.id from unnest(${ids}::text[]) as asked (id)
        where not exists (select from nodes where nodes.id = asked.id)`);
      return rows.map(({ id }) => id);
    },

    async remove({ id, life }: Pick<NodeRow, 'id' | 'life'>): Promise<void> {
      await db.rows(sql`delete from nodes where id = ${id} and life = ${life}`);
    },

    async tell(channel: string, payload: string): Promise<void> {
      await db.rows(sql`select pg_notify(${channel}, ${payload})`);
    },
  };
}
