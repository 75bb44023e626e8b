import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { Config, ProxyList, ProxyType } from './schema.ts';

export interface ProxyRow {
  id: string;
  project_id: string;
  name: string | null;
  type: ProxyType;
  protocol: 'http' | 'https' | 'socks5';
  bypass_hosts: string[];
  config: Omit<Config, 'has_password'> & { ca_bundle?: string };
  has_password: boolean;
  status: 'available' | 'unavailable' | null;
  ip_address: string | null;
  latency_ms: number | null;
  last_checked: Date | null;
  created_at: Date;
  deleted_at: Date | null;
}

type NewProxy = Pick<
  ProxyRow,
  'id' | 'project_id' | 'name' | 'type' | 'protocol' | 'bypass_hosts' | 'config' | 'has_password'
>;

interface Finding {
  status: 'available' | 'unavailable';
  ip: string | null;
  latencyMs: number | null;
}

export type ProxyStore = ReturnType<typeof proxyStore>;

/** Every query on `proxies`. */
export function proxyStore(db: Db) {
  return {
    async insert(row: NewProxy): Promise<ProxyRow> {
      const inserted =
        await db.row<ProxyRow>(sql`insert into proxies (id, project_id, name, type, protocol, bypass_hosts, config, has_password)
        values (${row.id}, ${row.project_id}, ${row.name}, ${row.type}, ${row.protocol}, ${row.bypass_hosts}, ${row.config}, ${row.has_password})
        returning *`);
      return inserted!;
    },

    find(projectId: string, id: string): Promise<ProxyRow | undefined> {
      return db.row(sql`select * from proxies where id = ${id} and project_id = ${projectId} and deleted_at is null`);
    },

    list(projectId: string, filter: ProxyList): Promise<ProxyRow[]> {
      const { limit, offset } = filter;
      const [query, name] = [filter.query ?? null, filter.name ?? null];
      return db.rows(sql`select * from proxies where project_id = ${projectId} and deleted_at is null
          and (${name}::text is null or name = ${name})
          and (${query}::text is null or id = ${query}
            or strpos(lower(name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0
            or strpos(lower(config->>'host'), lower(${query})) > 0
            or strpos(lower(ip_address), lower(${query})) > 0)
        order by created_at, id limit ${limit + 1} offset ${offset}`);
    },

    rename(projectId: string, id: string, name: string): Promise<ProxyRow | undefined> {
      return db.row(sql`update proxies set name = ${name}
        where id = ${id} and project_id = ${projectId} and deleted_at is null returning *`);
    },

    remove(projectId: string, id: string): Promise<ProxyRow | undefined> {
      return db.row(sql`update proxies set deleted_at = now()
        where id = ${id} and project_id = ${projectId} and deleted_at is null returning *`);
    },

    /** Serialises the creation of proxies in a project, until the transaction ends. */
    async lock(projectId: string): Promise<void> {
      await db.rows(sql`select pg_advisory_xact_lock(hashtextextended('corral proxies of ' || ${projectId}, 0))`);
    },

    async count(projectId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from proxies where project_id = ${projectId} and deleted_at is null`,
      );
      return row?.count ?? 0;
    },

    /** The last seen address is kept while the proxy cannot be reached. */
    record(id: string, { status, ip, latencyMs }: Finding): Promise<ProxyRow | undefined> {
      return db.row(sql`update proxies set status = ${status}, last_checked = now(),
          ip_address = coalesce(${ip}, ip_address), latency_ms = ${latencyMs}
        where id = ${id} and deleted_at is null returning *`);
    },

    /**
     * Takes due checks, a few at a time; each is rescheduled as it is taken, so that no other node takes it too. The oldest check of each
     * project comes before the second of any: the checks of a project with thousands of proxies do not delay those of others.
     */
    takeDue(most: number, minutes: number): Promise<ProxyRow[]> {
      return db.rows(sql`update proxies set next_check_at = now() + make_interval(mins => ${minutes})
        where id in (select p.id from proxies p
          join (select id, row_number() over (partition by project_id order by next_check_at) as place
            from proxies where next_check_at <= now() and deleted_at is null) due using (id)
          where p.next_check_at <= now() and p.deleted_at is null
          order by due.place, p.next_check_at limit ${most} for update of p skip locked)
        returning *`);
    },
  };
}
