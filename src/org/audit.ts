import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Caller } from '../lib/caller.ts';
import { errors } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { turns } from '../lib/turns.ts';
import type { Db } from '../store/db.ts';
import { auditBound } from './audit-bound.ts';
import { auditStore, type AuditRow } from './audit-store.ts';
import type { AuditFilters, AuditLogEntry } from './schema.ts';

const compress = promisify(gzip);
const day = 24 * 60 * 60 * 1000;

export type AuditService = ReturnType<typeof auditService>;

interface AuditedRequest extends Pick<AuditRow, 'service' | 'status' | 'method' | 'path' | 'route' | 'domain'> {
  caller: Caller;
  projectId: string | null;
  durationMs: number;
  clientIp: string;
  userAgent: string;
}

/** `quick` commits without waiting for the disk, so a request does not wait twice. Only a crash of the database server can lose the entry. */
export function auditService({ db, quick, most, log }: { db: Db; quick: Db; most: number; log: Log }) {
  const store = auditStore(db);
  const bound = auditBound({ store, most, log });
  const writer = auditStore(quick);

  async function page(caller: Caller, filters: AuditFilters, token: string | undefined, limit: number) {
    checkRange(filters);
    const before = token === undefined ? null : readToken(token);
    const { rows, cut } = await store.list(filters, caller.projectId, before, limit);
    const more = cut || rows.length > limit;
    const entries = rows.slice(0, limit);
    const last = entries.at(-1);
    return { entries, next: more && last ? writeToken(last.id) : undefined };
  }

  return {
    async record(request: AuditedRequest): Promise<void> {
      const projectId = request.projectId ?? request.caller.projectId;
      await writer.insert({
        auth_strategy: 'api_key',
        user_id: request.caller.keyId,
        email: '',
        project_id: projectId,
        service: request.service,
        status: request.status,
        method: request.method,
        path: clip(request.path, 2048),
        route: request.route,
        domain: clip(request.domain, 255),
        duration_ms: request.durationMs,
        client_ip: request.clientIp,
        user_agent: clip(request.userAgent, 512),
      });
      bound.note(projectId);
    },

    async list(caller: Caller, filters: AuditFilters & { limit: number; page_token?: string }) {
      const { entries, next } = await page(caller, filters, filters.page_token, filters.limit);
      return { entries: entries.map(toEntry), next };
    },

    /** A file of JSON lines, newest first, with a hash that shows it arrived whole. */
    async exportChunk(caller: Caller, filters: AuditFilters & { limit: number; cursor?: string; format: string }) {
      const { entries, next } = await page(caller, filters, filters.cursor, filters.limit);
      const turn = turns();
      let lines = '';
      for (const row of entries) {
        lines += `${JSON.stringify({ event_id: row.id, ...toEntry(row) })}\n`;
        await turn();
      }
      const body = filters.format === 'jsonl' ? Buffer.from(lines) : await compress(lines);
      return { body, rows: entries.length, next, sha256: createHash('sha256').update(body).digest('hex') };
    },

    /** Removes entries that are older than so many days, and those beyond the bound of their project. */
    async tidy(days: number): Promise<void> {
      await store.removeOlderThan(days);
      await bound.tidy();
    },
  };
}

function checkRange({ start, end }: AuditFilters) {
  const [from, to] = [Date.parse(start), Date.parse(end)];
  if (Number.isNaN(from) || Number.isNaN(to)) {
    throw errors.invalid_input({
      detail: `query parameter ${Number.isNaN(from) ? 'start' : 'end'} is not a time that exists.`,
    });
  }
  if (to <= from) throw errors.invalid_input({ detail: 'query parameter end must be later than start.' });
  if (to - from > 30 * day)
    throw errors.invalid_input({ detail: 'query parameters start and end may be at most 30 days apart.' });
}

const writeToken = (id: string) => Buffer.from(`before:${id}`).toString('base64url');

function readToken(token: string): string {
  const id = /^before:(\d{1,18})$/.exec(Buffer.from(token, 'base64url').toString())?.[1];
  if (!id) throw errors.invalid_input({ detail: 'The page token is not valid. Start again without it.' });
  return id;
}

const clip = (text: string, length: number) => text.replaceAll('\0', '').slice(0, length);

function toEntry(row: AuditRow): AuditLogEntry {
  return {
    timestamp: row.timestamp.toISOString(),
    auth_strategy: row.auth_strategy,
    user_id: row.user_id,
    email: row.email,
    status: row.status,
    method: row.method,
    path: row.path,
    route: row.route,
    domain: row.domain,
    duration_ms: row.duration_ms,
    client_ip: row.client_ip,
    user_agent: row.user_agent,
  };
}
