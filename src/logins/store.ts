import type { CredentialLink } from '../credentials/lookup.ts';
import { storable, storableJson } from '../lib/text.ts';
import type { Db } from '../store/db.ts';
import { sql } from '../store/sql.ts';
import type { ConfirmedNames } from './confirmed-values.ts';
import type { RecipeFill } from './flow/recipe.ts';
import type { FlowErrorCode, Recipe, Requirements } from './flow/types.ts';
import type { ConnectionList, CreateConnection } from './schema.ts';
import { connectionLife, type ConnectionEvent, type ConnectionStatus } from './state.ts';

export interface ConnectionRow {
  id: string;
  project_id: string;
  profile_id: string;
  profile_name: string | null;
  domain: string;
  plain_http: boolean;
  login_url: string | null;
  allowed_domains: string[];
  sso_hosts: Record<string, ConfirmedNames>;
  credential_kind: 'stored' | 'item' | 'auto_of' | 'auto' | null;
  credential_id: string | null;
  provider_id: string | null;
  provider_path: string | null;
  /** What the credential is called now, and what it holds. Null when it is deleted or in a provider. */
  credential_name: string | null;
  value_keys: string[] | null;
  has_totp_secret: boolean | null;
  /** The types of its sources of one-time codes. */
  code_sources: string[] | null;
  /** Null when the provider is deleted, or not shared with the project any more. */
  provider_name: string | null;
  proxy_id: string | null;
  health_check_interval: number;
  health_checks: boolean;
  auto_reauth: boolean;
  save_credentials: boolean;
  record_session: boolean;
  browser_telemetry: CreateConnection['browser_telemetry'] | null;
  status: ConnectionStatus;
  post_login_url: string | null;
  sso_provider: string | null;
  requirements: Requirements | null;
  /** What the recipe types. The recipe itself is large, and read by `recipe`. */
  fills: Pick<RecipeFill, 'key' | 'label'>[] | null;
  /** Why the newest check could not tell whether the profile is logged in; null before the first check. */
  last_check: { code: FlowErrorCode | null; message: string | null } | null;
  /** A bigint, which arrives as text. */
  totp_counter: string | null;
  takes_codes: boolean;
  has_passkeys: boolean;
  last_login_at: Date | null;
  last_auth_check_at: Date | null;
  next_check_at: Date;
  failures: number;
  claim_id: string | null;
  created_at: Date;
}

export type ConnectionSettings = Pick<
  ConnectionRow,
  | 'login_url'
  | 'allowed_domains'
  | 'sso_hosts'
  | 'sso_provider'
  | 'credential_kind'
  | 'credential_id'
  | 'provider_id'
  | 'provider_path'
  | 'proxy_id'
  | 'health_check_interval'
  | 'health_checks'
  | 'auto_reauth'
  | 'save_credentials'
  | 'record_session'
  | 'browser_telemetry'
>;

interface NewConnection extends ConnectionSettings {
  id: string;
  project_id: string;
  profile_id: string;
  domain: string;
  plain_http: boolean;
  next_check_at: Date;
}

/** What a login has found out about its connection. Fields that are left out stay. */
export interface Learned {
  event?: ConnectionEvent;
  postLoginUrl?: string | undefined;
  ssoProvider?: string | undefined;
  /** Added to those that are known. */
  ssoHosts?: Record<string, ConfirmedNames> | undefined;
  requirements?: Requirements | undefined;
  recipe?: Recipe | undefined;
  totpCounter?: number | undefined;
  takesCodes?: boolean;
  hasPasskeys?: boolean;
  credentialId?: string;
  loggedIn?: boolean;
  checked?: boolean;
  failures?: number;
  nextCheckAt?: Date;
}

/** Every query on `auth_connections`. A connection with a deleted profile is not found; it is removed soon. */
export function connectionStore(db: Db) {
  return {
    async insert(row: NewConnection): Promise<void> {
      await db.rows(sql`insert into auth_connections (id, project_id, profile_id, domain, plain_http, login_url, allowed_domains, credential_kind,
          credential_id, provider_id, provider_path, proxy_id, health_check_interval, health_checks, auto_reauth, save_credentials,
          record_session, browser_telemetry, next_check_at)
        values (${row.id}, ${row.project_id}, ${row.profile_id}, ${row.domain}, ${row.plain_http}, ${row.login_url},
          ${row.allowed_domains}, ${row.credential_kind}, ${row.credential_id}, ${row.provider_id}, ${row.provider_path}, ${row.proxy_id},
          ${row.health_check_interval}, ${row.health_checks}, ${row.auto_reauth}, ${row.save_credentials}, ${row.record_session},
          ${row.browser_telemetry ?? null}, ${row.next_check_at})`);
    },

    find(projectId: string, id: string): Promise<ConnectionRow | undefined> {
      return db.row(sql`select c.id, c.project_id, c.profile_id, c.domain, c.plain_http, c.login_url, c.allowed_domains, c.sso_hosts, c.credential_kind,
          c.credential_id, c.provider_id, c.provider_path, c.proxy_id, c.health_check_interval, c.health_checks, c.auto_reauth,
          c.save_credentials, c.record_session, c.browser_telemetry, c.status, c.post_login_url, c.sso_provider, c.requirements,
          c.totp_counter, c.takes_codes, c.has_passkeys, c.last_login_at, c.last_auth_check_at, c.next_check_at, c.failures, c.claim_id,
          c.created_at, p.name as profile_name, k.name as credential_name, k.value_keys, k.has_totp_secret, v.name as provider_name,
          (select array_agg(distinct s.type) from one_time_code_sources s where s.credential_id = k.id) as code_sources,
          (select json_agg(json_build_object('key', f -> 'key', 'label', f -> 'label'))
            from jsonb_path_query(c.recipe, '$.steps[*].fills[*]') f) as fills,
          (select json_build_object('code', r.error_code, 'message', r.error_message) from auth_runs r
            where r.connection_id = c.id and r.kind = 'health_check' order by r.started_at desc, r.id desc limit 1) as last_check
        from auth_connections c join profiles p on p.id = c.profile_id and p.deleted_at is null
          left join credentials k on k.id = c.credential_id
          left join credential_providers v on v.id = c.provider_id and v.projects && array['*', c.project_id]
        where c.id = ${id} and c.project_id = ${projectId}`);
    },

    async recipe(id: string): Promise<Recipe | undefined> {
      const row = await db.row<{ recipe: Recipe | null }>(sql`select recipe from auth_connections where id = ${id}`);
      return row?.recipe ?? undefined;
    },

    async idFor(profileId: string, domain: string): Promise<string | undefined> {
      const row = await db.row<{ id: string }>(
        sql`select id from auth_connections where profile_id = ${profileId} and domain = ${domain}`,
      );
      return row?.id;
    },

    list(
      projectId: string,
      { limit, offset, ...filter }: Omit<ConnectionList, 'domain'> & { domain: string | null },
    ): Promise<ConnectionRow[]> {
      const [profile, query] = [filter.profile_name ?? null, filter.query ?? null];
      return db.rows(sql`select c.id, c.project_id, c.profile_id, c.domain, c.plain_http, c.login_url, c.allowed_domains, c.sso_hosts, c.credential_kind,
          c.credential_id, c.provider_id, c.provider_path, c.proxy_id, c.health_check_interval, c.health_checks, c.auto_reauth,
          c.save_credentials, c.record_session, c.browser_telemetry, c.status, c.post_login_url, c.sso_provider, c.requirements,
          c.totp_counter, c.takes_codes, c.has_passkeys, c.last_login_at, c.last_auth_check_at, c.next_check_at, c.failures, c.claim_id,
          c.created_at, p.name as profile_name, k.name as credential_name, k.value_keys, k.has_totp_secret, v.name as provider_name,
          (select array_agg(distinct s.type) from one_time_code_sources s where s.credential_id = k.id) as code_sources,
          (select json_agg(json_build_object('key', f -> 'key', 'label', f -> 'label'))
            from jsonb_path_query(c.recipe, '$.steps[*].fills[*]') f) as fills,
          (select json_build_object('code', r.error_code, 'message', r.error_message) from auth_runs r
            where r.connection_id = c.id and r.kind = 'health_check' order by r.started_at desc, r.id desc limit 1) as last_check
        from auth_connections c join profiles p on p.id = c.profile_id and p.deleted_at is null
          left join credentials k on k.id = c.credential_id
          left join credential_providers v on v.id = c.provider_id and v.projects && array['*', c.project_id]
        where c.project_id = ${projectId}
          and (${filter.domain}::text is null or c.domain = ${filter.domain})
          and (${profile}::text is null or p.name = ${profile})
          and (${query}::text is null or c.id = ${query} or strpos(c.domain, lower(${query})) > 0
            or strpos(lower(p.name collate "und-x-icu"), lower(${query} collate "und-x-icu")) > 0)
        order by c.created_at, c.id limit ${limit + 1} offset ${offset}`);
    },

    /** `nextCheckAt` only when the schedule changed. */
    async change(id: string, row: ConnectionSettings, nextCheckAt: Date | null): Promise<void> {
      await db.rows(sql`update auth_connections set login_url = ${row.login_url},
          allowed_domains = ${row.allowed_domains}, sso_hosts = ${row.sso_hosts}::jsonb, sso_provider = ${row.sso_provider}, credential_kind = ${row.credential_kind}, credential_id = ${row.credential_id},
          provider_id = ${row.provider_id}, provider_path = ${row.provider_path}, proxy_id = ${row.proxy_id},
          health_check_interval = ${row.health_check_interval}, health_checks = ${row.health_checks},
          auto_reauth = ${row.auto_reauth}, save_credentials = ${row.save_credentials}, record_session = ${row.record_session},
          browser_telemetry = ${row.browser_telemetry ?? null}, next_check_at = coalesce(${nextCheckAt}::timestamptz, next_check_at),
          updated_at = now()
        where id = ${id}`);
    },

    /** Until the transaction ends nothing else changes or deletes the connection. False: it was deleted. Lock its logins first. */
    async lock(id: string): Promise<boolean> {
      return (await db.row(sql`select id from auth_connections where id = ${id} for update`)) !== undefined;
    },

    async learn(id: string, found: Learned): Promise<void> {
      const { from, to } = found.event ? connectionLife.move(found.event) : { from: [], to: null };
      await db.rows(sql`update auth_connections set
          status = case when status = any (${from}) then ${to} else status end,
          post_login_url = coalesce(${found.postLoginUrl === undefined ? null : storable(found.postLoginUrl)}, post_login_url),
          sso_provider = coalesce(${found.ssoProvider ?? null}, sso_provider),
          sso_hosts = sso_hosts || ${storableJson(found.ssoHosts ?? {})}::jsonb,
          requirements = coalesce(${found.requirements ? storableJson(found.requirements) : null}::jsonb, requirements),
          recipe = coalesce(${found.recipe ? storableJson(found.recipe) : null}::jsonb, recipe),
          totp_counter = greatest(${found.totpCounter ?? null}::bigint, totp_counter),
          takes_codes = coalesce(${found.takesCodes ?? null}::boolean, takes_codes),
          has_passkeys = coalesce(${found.hasPasskeys ?? null}::boolean, has_passkeys),
          credential_kind = case when ${found.credentialId ?? null}::text is null then credential_kind else 'stored' end,
          credential_id = coalesce(${found.credentialId ?? null}, credential_id),
          last_login_at = case when ${found.loggedIn ?? false} then now() else last_login_at end,
          last_auth_check_at = case when ${found.loggedIn ?? false} or ${found.checked ?? false} then now() else last_auth_check_at end,
          failures = coalesce(${found.failures ?? null}::integer, failures),
          next_check_at = coalesce(${found.nextCheckAt ?? null}::timestamptz, next_check_at),
          updated_at = now()
        where id = ${id}`);
    },

    async remove(id: string): Promise<boolean> {
      return (await db.row(sql`delete from auth_connections where id = ${id} returning id`)) !== undefined;
    },

    /** Connections with deleted profiles. */
    orphans(): Promise<{ id: string }[]> {
      return db.rows(sql`select c.id from auth_connections c join profiles p on p.id = c.profile_id
        where p.deleted_at is not null limit 1000`);
    },

    async count(projectId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from auth_connections c join profiles p on p.id = c.profile_id and p.deleted_at is null
          where c.project_id = ${projectId}`,
      );
      return row?.count ?? 0;
    },

    async usersOfProxy(proxyId: string): Promise<number> {
      const row = await db.row<{ count: number }>(
        sql`select count(*)::integer as count from auth_connections where proxy_id = ${proxyId}`,
      );
      return row?.count ?? 0;
    },
  };
}

/** How the credential of a row is named; undefined when there is none, or not any more. */
export function linkOf(row: ConnectionRow): CredentialLink | undefined {
  const { credential_kind: kind, credential_id: credentialId, provider_id: providerId, provider_path: path } = row;
  if (kind === 'stored' && credentialId !== null) return { credentialId };
  if (kind === 'item' && providerId !== null && path !== null) return { providerId, path };
  if (kind === 'auto_of' && providerId !== null) return { providerId, auto: true };
  return kind === 'auto' ? { providerId: null, auto: true } : undefined;
}

/** The columns for a credential that is named like this. */
export function linkColumns(
  link: CredentialLink | undefined,
): Pick<ConnectionRow, 'credential_kind' | 'credential_id' | 'provider_id' | 'provider_path'> {
  const none = { credential_kind: null, credential_id: null, provider_id: null, provider_path: null };
  if (!link) return none;
  if ('credentialId' in link) return { ...none, credential_kind: 'stored', credential_id: link.credentialId };
  if ('path' in link)
    return { ...none, credential_kind: 'item', provider_id: link.providerId, provider_path: link.path };
  return { ...none, credential_kind: link.providerId === null ? 'auto' : 'auto_of', provider_id: link.providerId };
}
