import { apiKeyService } from '../org/api-keys.ts';
import { orgStore } from '../org/store.ts';
import { errors } from '../errors.ts';
import { table, UsageError, type Call, type Command } from './command.ts';

/** For an operator who lost the key and has access to the machine. */
export const keysCommand: Command = {
  usage: [
    'keys create --name NAME [--project ID-OR-NAME] [--days N]   make a key and print it, once',
    'keys list [--all]                                           the keys, masked; --all with the revoked ones',
    'keys revoke ID                                              end a key at once, on every node',
  ],
  options: {
    name: { type: 'string' },
    project: { type: 'string' },
    days: { type: 'string' },
    all: { type: 'boolean' },
  },
  async run(call) {
    const [verb] = call.positionals;
    if (verb === 'create') return create(call);
    if (verb === 'list') return list(call);
    if (verb === 'revoke') return revoke(call);
    throw new UsageError(`'corral keys' takes create, list or revoke${verb ? `, not '${verb}'` : ''}.`);
  },
};

// The database notifies running nodes of changed keys; this process has no cache to clear.
const service = ({ db }: Call) => apiKeyService({ db, changed: () => {} });

async function create(call: Call) {
  const { name, project, days } = call.values as { name?: string; project?: string; days?: string };
  if (!name) throw new UsageError("'corral keys create' needs --name.");
  if (name.length > 255) throw new UsageError('--name takes at most 255 characters.');
  if (days !== undefined && (!/^\d+$/.test(days) || Number(days) < 1 || Number(days) > 3650)) {
    throw new UsageError('--days takes a whole number from 1 to 3650.');
  }
  const row = project === undefined ? undefined : await orgStore(call.db).findProjectByIdOrName(project);
  if (project !== undefined && !row) throw errors.project_not_found({ project });
  const keys = service(call);
  const created = await keys.create(keys.operator, {
    name,
    project_id: row?.id ?? null,
    days_to_expire: days === undefined ? null : Number(days),
  });
  call.print(created.key);
}

async function list(call: Call) {
  const keys = service(call);
  const rows: string[][] = [['ID', 'NAME', 'KEY', 'PROJECT', 'EXPIRES', 'STATE']];
  for (let offset = 0; ; offset += 100) {
    const page = await keys.list(keys.operator, {
      limit: 100,
      offset,
      sort_by: 'created_at',
      sort_direction: 'asc',
      include_deleted: false,
      status: call.values['all'] ? 'all' : 'active',
    });
    for (const key of page.slice(0, 100)) {
      const expired = key.expires_at !== null && Date.parse(key.expires_at) <= Date.now();
      const state = key.deleted_at ? 'revoked' : expired ? 'expired' : 'active';
      rows.push([key.id, key.name, key.masked_key, key.project_name ?? 'all', key.expires_at ?? 'never', state]);
    }
    if (page.length <= 100) break;
  }
  call.print(table(rows));
}

async function revoke(call: Call) {
  const [, id] = call.positionals;
  if (!id) throw new UsageError("'corral keys revoke' needs the id of a key; 'corral keys list' shows them.");
  const keys = service(call);
  await keys.remove(keys.operator, id);
  call.print(`Revoked ${id}.`);
}
