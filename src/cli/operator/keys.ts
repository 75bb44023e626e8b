import { errors } from '../../errors.ts';
import { apiKeyService } from '../../org/api-keys.ts';
import { orgStore } from '../../org/store.ts';
import type { Output } from '../output.ts';
import { keyColumns, keyRow } from '../key-rows.ts';
import { visit, type Visit } from './visit.ts';

// The database notifies running nodes of changed keys; this process has no cache to clear.
const service = ({ db }: Visit) => apiKeyService({ db, changed: () => {} });

interface NewKey {
  name: string;
  project: string | undefined;
  days: number | undefined;
}

/** For an operator with access to the machine and without a working key. */
export function createKey(output: Output, { name, project, days }: NewKey): Promise<void> {
  return visit(async (at) => {
    const row = project === undefined ? undefined : await orgStore(at.db).findProjectByIdOrName(project);
    if (project !== undefined && !row) throw errors.project_not_found({ project });
    const keys = service(at);
    const created = await keys.create(keys.operator, {
      name,
      project_id: row?.id ?? null,
      days_to_expire: days ?? null,
    });
    output.done(created.key, created);
  });
}

export function listKeys(output: Output, { all }: { all: boolean }): Promise<void> {
  return visit(async (at) => {
    const keys = service(at);
    const rows: object[] = [];
    for (let offset = 0; ; offset += 100) {
      const page = await keys.list(keys.operator, {
        limit: 100,
        offset,
        sort_by: 'created_at',
        sort_direction: 'asc',
        include_deleted: false,
        status: all ? 'all' : 'active',
      });
      rows.push(...page.slice(0, 100).map((key) => (output.format === 'table' ? keyRow(key) : key)));
      if (page.length <= 100) break;
    }
    output.list(rows, keyColumns);
  });
}

export function revokeKey(output: Output, id: string): Promise<void> {
  return visit(async (at) => {
    const keys = service(at);
    await keys.remove(keys.operator, id);
    output.done(`Revoked ${id}.`);
  });
}
