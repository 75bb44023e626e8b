import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { AuditFilters } from './schema.ts';

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

    /** Newest first, older than the entry `before`; `limit + 1` rows, so that the caller sees whether there are more. */
    list(filters: AuditFilters, scope: string | null, before: string | null, limit: number): Promise<AuditRow[]> {
      const { start, end } = filters;
      const [strategy, service, method, search] = [
        filters.auth_strategy,
        filters.service,
        filters.method,
        filters.search,
      ].map((value) => value ?? null);
      const users = filters.search_user_id ?? [];
      const excluded = (filters.exclude_method ?? []).map((name) => name.toUpperCase());
      return db.rows(sql`select * from audit_log
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
        order by id desc limit ${limit + 1}`);
    },

    async removeOlderThan(days: number): Promise<number> {
      const gone = await db.rows(
        sql`delete from audit_log where timestamp < now() - make_interval(days => ${days}::integer) returning 1`,
      );
      return gone.length;
    },
  };
}
