import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sql } from '../src/store/sql.ts';
import { openTestStore } from './support/store.ts';

/** The table of each interface of a row. `computed` are fields that queries add; `present` are columns that queries never return as null. */
const rows: Record<string, { table: string; computed?: string[]; present?: string[] }> = {
  'cluster/store.ts NodeRow': { table: 'nodes', computed: ['silent_ms', 'now_ms'] },
  'credentials/providers/store.ts ProviderRow': { table: 'credential_providers', computed: ['revision'] },
  'credentials/store.ts CredentialRow': { table: 'credentials' },
  'deployments/app-store.ts AppRow': { table: 'apps', computed: ['region', 'env_names'] },
  'deployments/invocation-store.ts InvocationRow': { table: 'invocations' },
  'deployments/log-store.ts LogRow': { table: 'run_logs' },
  'deployments/store.ts DeploymentRow': { table: 'deployments' },
  'extensions/store.ts ExtensionRow': { table: 'extensions' },
  'logins/run-store.ts RunRow': { table: 'auth_runs' },
  'logins/store.ts ConnectionRow': {
    table: 'auth_connections',
    computed: [
      'profile_name',
      'credential_name',
      'value_keys',
      'has_totp_secret',
      'code_sources',
      'last_check',
      'provider_name',
      'fills',
    ],
  },
  'org/audit-store.ts AuditRow': { table: 'audit_log' },
  'org/store.ts ApiKeyRow': { table: 'api_keys', computed: ['project_name', 'project_active'] },
  'org/store.ts ProjectRow': { table: 'projects' },
  'pools/store.ts PoolRow': { table: 'pools' },
  'profiles/store.ts ProfileRow': { table: 'profiles' },
  'profiles/store.ts VersionRow': { table: 'profile_versions', computed: ['current'] },
  'project-events/store.ts EventRow': { table: 'project_events', present: ['position'] },
  'proxies/store.ts ProxyRow': { table: 'proxies' },
  'sessions/replays/store.ts ReplayRow': { table: 'replays' },
  'sessions/store.ts SessionRow': { table: 'sessions', computed: ['pool_name', 'profile', 'uptime'] },
  'telemetry/store.ts ChunkRow': { table: 'telemetry_chunks' },
};

/** What the driver returns for a type of PostgreSQL; a string may be narrowed to a union, and JSON to any type. */
const driverTypes: Record<string, RegExp> = {
  text: /^(string|'.*|[A-Z]\w+.*)$/,
  integer: /^number$/,
  bigint: /^string$/,
  boolean: /^boolean$/,
  bytea: /^Buffer$/,
  ARRAY: /^string\[\]$/,
  jsonb: /./,
  'timestamp with time zone': /^Date$/,
};

interface Field {
  name: string;
  type: string;
  optional: boolean;
}

const root = join(import.meta.dirname, '../src');
const interfaces = new Map<string, Field[]>(
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      const found = text.matchAll(/^(?:export )?interface (\w+Row)\b[^{]*\{\n([\s\S]*?)^\}/gm);
      return [...found].map(([, name, body]) => [`${file} ${name}`, fieldsOf(body!)] as const);
    }),
);

function fieldsOf(body: string): Field[] {
  const code = body.replace(/\/\*\*[\s\S]*?\*\//g, '').replace(/\{[^}]*\}/g, 'Fields');
  return [...code.matchAll(/^ {2}(\w+)(\??): ([^;]*);/gm)].map(([, name, optional, type]) => ({
    name: name!,
    type: type!,
    optional: optional === '?',
  }));
}

test('every interface of a row has a table here', () => {
  expect([...interfaces.keys()].sort()).toEqual(Object.keys(rows).sort());
});

test('the fields of each row are columns of its table, with their type', async () => {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const columns = await store.db.rows<{ id: string; type: string; nullable: boolean }>(
    sql`select table_name || '.' || column_name as id, data_type as type, is_nullable = 'YES' as nullable
      from information_schema.columns where table_schema = current_schema()`,
  );
  const byId = new Map(columns.map((column) => [column.id, column]));
  const faults = Object.entries(rows).flatMap(([row, { table, computed = [], present = [] }]) =>
    interfaces.get(row)!.flatMap(({ name, type, optional }): string[] => {
      const column = byId.get(`${table}.${name}`);
      if (!column) return computed.includes(name) ? [] : [`${row}: ${table} has no column ${name}`];
      const parts = type.split(' | ');
      const isNullable = parts.includes('null');
      if (optional) return [`${row}: ${name} is optional, and the driver returns null`];
      if (isNullable !== (column.nullable && !present.includes(name)))
        return [`${row}: ${name} is ${column.nullable ? '' : 'not '}nullable in ${table}`];
      const rest = parts.filter((part) => part !== 'null').join(' | ');
      const expected = driverTypes[column.type];
      return expected?.test(rest) ? [] : [`${row}: ${name} is ${rest}, and ${column.type} in ${table}`];
    }),
  );
  expect(faults).toEqual([]);
});
