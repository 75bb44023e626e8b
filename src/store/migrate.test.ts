import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newDatabase } from '../../test/support/new-database.ts';
import { silent } from '../lib/log.ts';
import { database } from './db.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './embedded.ts';
import { migrate } from './migrate.ts';

/**
 * A row for each table, written right after the migration that makes it, as a service of that version did. A migration that
 * makes a table adds one here; the migrations after it must leave the row as it was.
 */
const rowsOf: Record<string, Record<string, string>> = {
  '0001_org': {
    projects: `(id, name, is_default) values ('proj_a', 'Default', true)`,
    api_keys: `(id, name, hash, lookup, masked_key, project_id, created_by) values ('key_a', 'ci', '\\x01', 'look', 'sk_…a', 'proj_a', 'key_first')`,
    audit_log: `(auth_strategy, user_id, email, service, status, method, path, route, domain, duration_ms, client_ip, user_agent)
      values ('api_key', 'key_a', '', 'browsers', 200, 'GET', '/browsers', '/browsers', '', 3, '127.0.0.1', 'test')`,
    secrets: `(kind, owner, envelope) values ('proxy', 'proxy_a', 'v1:sealed')`,
  },
  '0002_sessions': {
    sessions: `(id, project_id, node_id, state, name, tags, headless, stealth, gpu, kiosk_mode, timeout_seconds, viewport_width, viewport_height)
      values ('ses_a', 'proj_a', 'node_a', 'live', 'Ünique', '{"a":"b"}', true, false, false, false, 60, 1280, 720)`,
  },
  '0003_pools': {
    pools: `(id, project_id, name, size, config) values ('pool_a', 'proj_a', 'shelf', 2, '{"headless":true}')`,
    pool_waiters: `(pool_id, node_id, lease_id) values ('pool_a', 'node_a', 'lease_a')`,
  },
  '0004_nodes': {
    nodes: `(id, life, internal_url, public_url, version, keys, capacity, running)
      values ('node_a', 'life', 'http://127.0.0.1:1', 'http://127.0.0.1:1', '0.1.0', '{k}', 10, 1)`,
  },
  '0005_replays': {
    replays: `(id, session_id, project_id, node_id, framerate) values ('replay_a', 'ses_a', 'proj_a', 'node_a', 5)`,
  },
  '0006_profiles': {
    profiles: `(id, project_id, name, version_id) values ('prof_a', 'proj_a', 'login', 'ver_a')`,
    profile_versions: `(id, profile_id, session_id, node_id, complete, size_bytes) values ('ver_a', 'prof_a', 'ses_a', 'node_a', true, 3)`,
    profile_chunks: `(version_id, position, sealed) values ('ver_a', 0, '\\x010203')`,
  },
  '0007_extensions': {
    extensions: `(id, project_id, name, size_bytes, checksum) values ('ext_a', 'proj_a', 'blocker', 3, 'sum')`,
    extension_chunks: `(extension_id, position, bytes) values ('ext_a', 0, '\\x010203')`,
  },
  '0008_proxies': {
    proxies: `(id, project_id, name, type, protocol, config) values ('proxy_a', 'proj_a', 'out', 'custom', 'socks5', '{"host":"h"}')`,
  },
  '0010_storage': { storage_claims: `(id, project_id, node_id, bytes) values ('claim_a', 'proj_a', 'node_a', 3)` },
  '0012_rate_buckets': { rate_buckets: `(name, tokens, filled_at) values ('org', 3, now())` },
  '0013_credentials': {
    credentials: `(id, project_id, name, domain, value_keys) values ('cred_a', 'proj_a', 'shop', 'shop.example', '{password}')`,
    credential_providers: `(id, provider_type, name, server_url, mounts) values ('credprov_a', 'vault', 'Vault', 'https://v.example', '{secret}')`,
  },
  '0016_auth_connections': {
    auth_connections: `(id, project_id, profile_id, domain, credential_kind, credential_id) values ('ma_a', 'proj_a', 'prof_a', 'shop.example', 'stored', 'cred_a')`,
    auth_runs: `(id, connection_id, profile_id, kind, status, node_id) values ('run_a', 'ma_a', 'prof_a', 'login', 'IN_PROGRESS', 'node_a')`,
    auth_inputs: `(run_id) values ('run_a')`,
  },
  '0017_deployments': {
    deployments: `(id, project_id, version, region, force, entrypoint, env_names, source_type) values ('dep_a', 'proj_a', 'latest', 'local.zone-a', false, 'index.js', '{A}', 'file')`,
    deployment_chunks: `(deployment_id, kind, position, bytes) values ('dep_a', 'build', 0, '\\x010203')`,
    apps: `(id, project_id, app_name, version, deployment_id, actions) values ('app_a', 'proj_a', 'app', 'latest', 'dep_a', '[{"name":"run"}]')`,
    deployment_apps: `(deployment_id, app_name) values ('dep_a', 'app')`,
    invocations: `(id, project_id, deployment_id, app_name, version, action_name, timeout_seconds) values ('inv_a', 'proj_a', 'dep_a', 'app', 'latest', 'run', 900)`,
    run_logs: `(owner, at, message) values ('inv_a', now(), 'line')`,
  },
  '0018_session_logs': {
    session_logs: `(session_id, project_id, bytes, packed) values ('ses_a', 'proj_a', 3, '\\x010203')`,
  },
  '0019_project_events': {
    project_events: `(project_id, for_org, type, resource_id, data) values ('proj_a', false, 'session.live', 'ses_a', '{"name":"a"}')`,
    // Its one row is made by the migration.
  },
  '0028_one_time_code_sources': {
    one_time_code_sources: `(id, credential_id, position, type, settings, token_hash) values ('otc_a', 'cred_a', 0, 'webhook', '{}', '\\x01')`,
    posted_codes: `(source_id) values ('otc_a')`,
    used_code_mails: `(mail) values ('\\x01')`,
  },
};

let dir: string;
let postgres: EmbeddedPostgres;
let names: string[];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'corral-migrate-'));
  await newDatabase(dir);
  postgres = await startEmbeddedPostgres({ dataDir: dir, log: silent });
  const files = await readdir(new URL('./migrations/', import.meta.url));
  names = files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -4))
    .sort();
});
afterAll(async () => {
  await postgres?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** The tables as the versions up to this migration left them, each with the rows that it wrote. */
async function databaseUpTo(count: number) {
  const options = '-c search_path=corral -c synchronous_commit=off'; // some hundred transactions that no crash interrupts
  const pool = new Pool({ ...postgres.connection, options, max: 2 });
  await pool.query(`drop schema corral cascade; create schema corral; create table schema_migrations (
    version integer primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())`);
  const before: Record<string, object> = {};
  for (const migration of names.slice(0, count)) {
    const text = await readFile(new URL(`./migrations/${migration}.sql`, import.meta.url), 'utf8');
    await pool.query(text);
    const checksum = createHash('sha256').update(text).digest('hex');
    await pool.query('insert into schema_migrations (version, name, checksum) values ($1, $2, $3)', [
      Number(migration.slice(0, 4)),
      migration,
      checksum,
    ]);
    for (const [table, row] of Object.entries(rowsOf[migration] ?? {})) {
      const { rows } = await pool.query(`insert into ${table} ${row} returning *`);
      before[table] = rows[0];
    }
  }
  return { pool, before };
}

/** Every column, index, constraint, trigger and function, as the catalogue of the database has them. */
async function shapeOf(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query(`
    select 'column ' || concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, collation_name) as line
      from information_schema.columns where table_schema = 'corral'
    union all select 'index ' || indexdef from pg_indexes where schemaname = 'corral'
    union all select 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint
      where connamespace = 'corral'::regnamespace and contype <> 'n'
    union all select 'trigger ' || pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select 'function ' || pg_get_functiondef(oid) from pg_proc where pronamespace = 'corral'::regnamespace
    order by 1`);
  return rows.map(({ line }) => line);
}

test('a migrated database of every earlier version equals a new one, and keeps its rows', async () => {
  let fresh: string[] | undefined;
  for (let count = 0; count <= names.length; count++) {
    const { pool, before } = await databaseUpTo(count);
    try {
      await migrate(
        database(pool, async () => {}),
        silent,
      );
      const shape = await shapeOf(pool);
      fresh ??= shape;
      expect(shape, `after ${count} migrations`).toEqual(fresh);
      for (const [table, row] of Object.entries(before)) {
        const { rows } = await pool.query(`select * from ${table}`);
        // Columns that a later migration dropped are removed; nothing else of the row changes.
        const kept = Object.entries(row).filter(([column]) =>
          fresh!.some((line) => line.startsWith(`column ${table} ${column} `)),
        );
        expect(rows, `${table} after ${count} migrations`).toEqual([expect.objectContaining(Object.fromEntries(kept))]);
      }
    } finally {
      await pool.end();
    }
  }
});

test('hosts that a person confirmed stay, without names of unknown values', async () => {
  const { pool } = await databaseUpTo(names.indexOf('0025_confirmed_values'));
  try {
    await pool.query(`insert into projects (id, name) values ('proj_c', 'c');
      insert into profiles (id, project_id, name) values ('prof_c', 'proj_c', 'p'), ('prof_d', 'proj_c', 'd');
      insert into auth_connections (id, project_id, profile_id, domain, sso_hosts) values
        ('ma_c', 'proj_c', 'prof_c', 'c.example', '{"id.example": ["username", "password"], "other.example": []}'),
        ('ma_d', 'proj_c', 'prof_d', 'c.example', '{}')`);
    await migrate(
      database(pool, async () => {}),
      silent,
    );
    const { rows } = await pool.query(
      "select id, sso_hosts from auth_connections where project_id = 'proj_c' order by id",
    );
    expect(rows.map(({ sso_hosts }) => sso_hosts)).toEqual([{ 'id.example': {}, 'other.example': {} }, {}]);
  } finally {
    await pool.end();
  }
});

test('providers of credentials stay shared with the projects that use them', async () => {
  const { pool } = await databaseUpTo(names.indexOf('0021_provider_projects'));
  try {
    await pool.query(`insert into projects (id, name) values ('proj_named', 'named'), ('proj_auto', 'auto'), ('proj_none', 'none');
      insert into credential_providers (id, provider_type, name, enabled) values ('credprov_off', 'http', 'off', false);
      insert into profiles (id, project_id, name) values ('prof_named', 'proj_named', 'p'), ('prof_auto', 'proj_auto', 'p'), ('prof_none', 'proj_none', 'p');
      insert into auth_connections (id, project_id, profile_id, domain, credential_kind, provider_id) values
        ('ma_named', 'proj_named', 'prof_named', 'a.example', 'auto_of', 'credprov_a'),
        ('ma_auto', 'proj_auto', 'prof_auto', 'a.example', 'auto', null),
        ('ma_none', 'proj_none', 'prof_none', 'a.example', null, null)`);
    await migrate(
      database(pool, async () => {}),
      silent,
    );
    const { rows } = await pool.query('select id, projects from credential_providers order by id');
    expect(rows.map(({ id, projects }) => [id, projects.toSorted()])).toEqual([
      ['credprov_a', ['proj_a', 'proj_auto', 'proj_named']],
      ['credprov_off', ['proj_a']],
    ]);
  } finally {
    await pool.end();
  }
});
