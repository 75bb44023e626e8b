import type { Db } from '../store/db.ts';
import { cutPage, mostPageBytes, type Cut } from '../store/pages.ts';
import { sql } from '../store/sql.ts';
import type { AuditFilters } from './schema.ts';

/** The rows that one statement removes. Each removed row is answered, so all at once would take the memory of the service. */
const atOnce = 5000;

export interface AuditRow {
  id: string;
  timestamp: Date;
  auth_strategy: string;
  user_id: string;
  email: string;
  project_id: string | null;
  service: string;
  status: number;
  method: string;
  path: string;
  route: string;
  domain: string;
  duration_ms: number;
  client_ip: string;
  user_agent: string;
}

export type AuditStore = ReturnType<typeof auditStore>;

export function auditStore(db: Db) {
  return {
    async insert(entry: Omit<AuditRow, 'id' | 'timestamp'>): Promise<void> {
      await db.rows(sql`insert into audit_log
          (auth_strategy, user_id, email, project_id, service, status, method, path, route, domain, duration_ms, client_ip, user_agent)
        values (${entry.auth_strategy}, ${entry.user_id}, ${entry.email}, ${entry.project_id}, ${entry.service}, ${entry.status}, ${entry.method},
          ${entry.path}, ${entry.route}, ${entry.domain}, ${entry.duration_ms}, ${entry.client_ip}, ${entry.user_agent})`);
    },

    /**
     * Newest first, older than the entry `before`; `limit + 1` rows, so that the caller sees whether there are more. Cut where they have many
     * bytes: an entry has up to 3 KB, and an export asks for 50,000.
     */
    async list(
      filters: AuditFilters,
      scope: string | null,
      before: string | null,
      limit: number,
    ): Promise<Cut<AuditRow>> {
      const { start, end } = filters;
      const [strategy, service, method, search] = [
        filters.auth_strategy,
        filters.service,
        filters.method,
        filters.search,
      ].map((value) => value ?? null);
      const users = filters.search_user_id ?? [];
      const excluded = (filters.exclude_method ?? []).map((name) => name.toUpperCase());
      const rows = await db.page<AuditRow & { of_page: string }>(
        scope,
        sql`select * from (
        select page.*, count(*) over () as of_page, sum(bytes) over (order by id desc) - bytes as before from (
        select *, octet_length(path) + octet_length(user_agent) + octet_length(domain) + 300 as bytes from audit_log
        where timestamp >= ${start} and timestamp < ${end}
          and (${before}::bigint is null or id < ${before}::bigint)
          and (${scope}::text is null or project_id = ${scope})
          and (${strategy}::text is null or auth_strategy = ${strategy})
          and (${service}::text is null or service = ${service})
          and (${method}::text is null or method = upper(${method}))
          and not (method = any (${excluded}::text[]))
          and ((${search}::text is null and cardinality(${users}::text[]) = 0)
            or user_id = any (${users}::text[])
            or strpos(lower(path), lower(${search})) > 0
            or strpos(lower(user_id), lower(${search})) > 0
            or strpos(lower(email), lower(${search})) > 0
            or strpos(client_ip, ${search}) > 0
            or status::text = ${search})
        order by id desc limit ${limit + 1}) as page) as counted
        where before < ${mostPageBytes} order by id desc`,
      );
      return cutPage(rows);
    },

    /** Removes the oldest entries of a project beyond so many. */
    async trim(projectId: string, most: number): Promise<void> {
      const last = await db.row<{ id: string }>(sql`select id from audit_log where project_id = ${projectId}
        order by id desc limit 1 offset ${most}`);
      if (!last) return;
      for (let some = atOnce; some === atOnce;)
        some = (
          await db.rows(sql`delete from audit_log where id in (select id from audit_log
            where project_id = ${projectId} and id <= ${last.id} order by id limit ${atOnce}) returning 1`)
        ).length;
    },

    async removeOlderThan(days: number): Promise<number> {
      let removed = 0;
      for (let some = atOnce; some === atOnce; removed += some)
        some = (
          await db.rows(sql`delete from audit_log where id in (select id from audit_log
            where timestamp < now() - make_interval(days => ${days}::integer) limit ${atOnce}) returning 1`)
        ).length;
      return removed;
    },
  };
}
