import { LOCAL } from '../client/contexts.ts';
import { ask, askJson, jsonOf, type Target } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { exit, Fault, UsageError } from '../fault.ts';
import { keyColumns, keyRow } from '../key-rows.ts';
import { word, type Call } from '../table.ts';

/**
 * On the machine of the service, keys are created, listed and revoked in its database, so that an operator without a key can do it, also
 * while the service is stopped. On other machines, the API is used.
 */
function remote(call: Call): Target | undefined {
  if (call.options['context'] === undefined && call.env['DATABASE_URL'] && !call.env['CORRAL_URL']) return undefined;
  try {
    const target = call.target();
    return target.context === LOCAL ? undefined : target;
  } catch (error) {
    if (error instanceof UsageError && call.options['context'] === undefined) return undefined; // the error names the missing value
    throw error;
  }
}

export async function create(call: Call): Promise<void> {
  const { name, project, days } = call.options as { name?: string; project?: string; days?: string };
  if (!name) throw new UsageError("'corral keys create' needs --name.");
  if (name.length > 255) throw new UsageError('--name takes at most 255 characters.');
  if (days !== undefined && (!/^\d+$/.test(days) || Number(days) < 1 || Number(days) > 3650))
    throw new UsageError('--days takes a whole number from 1 to 3650.');
  const lasts = days === undefined ? undefined : Number(days);
  const target = remote(call);
  if (!target) return (await import('../operator/keys.ts')).createKey(call.output, { name, project, days: lasts });
  const body = {
    name,
    ...(project === undefined ? {} : { project_id: await projectId(target, project) }),
    ...(lasts === undefined ? {} : { days_to_expire: lasts }),
  };
  const plain = { ...target, project: undefined };
  const made = await askJson<{ key: string }>(plain, { method: 'POST', path: '/org/api_keys', body });
  call.output.done(made.key, made);
}

async function projectId(target: Target, wanted: string): Promise<string> {
  const plain = { ...target, project: undefined };
  const query = { query: wanted, limit: 100 };
  const found = await askJson<{ id: string; name: string }[]>(plain, { method: 'GET', path: '/org/projects', query });
  const one = found.find(({ id, name }) => id === wanted || name === wanted);
  if (one) return one.id;
  const path = fillPath('/org/projects/{id}', [wanted]);
  return (await askJson<{ id: string }>(plain, { method: 'GET', path })).id;
}

export async function list(call: Call): Promise<void> {
  const all = call.options['all'] === true;
  const target = remote(call);
  if (!target) return (await import('../operator/keys.ts')).listKeys(call.output, { all });
  const rows: object[] = [];
  let query: Record<string, unknown> = { limit: 100, status: all ? 'all' : 'active' };
  for (let more = true; more;) {
    const answer = await ask(target, { method: 'GET', path: '/org/api_keys', query });
    const page = await jsonOf<Parameters<typeof keyRow>[0][]>(answer);
    rows.push(...(call.output.format === 'table' ? page.map(keyRow) : page));
    more = answer.headers['x-has-more'] === 'true';
    query = { ...query, offset: answer.headers['x-next-offset'] };
  }
  call.output.list(rows, keyColumns);
}

export async function revoke(call: Call): Promise<void> {
  const id = word(call, 0);
  const target = remote(call);
  if (!target) return (await import('../operator/keys.ts')).revokeKey(call.output, id);
  if (id === '') throw new Fault('The id is empty.', exit.usage);
  await askJson(target, { method: 'DELETE', path: fillPath('/org/api_keys/{id}', [id]) });
  call.output.done(`Revoked ${id}.`);
}
