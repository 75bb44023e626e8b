import { basename, resolve } from 'node:path';
import { ask, eventsOf, jsonOf } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import { Fault, UsageError } from '../fault.ts';
import { parseJson } from '../fields.ts';
import { multipart, type Part } from '../multipart.ts';
import { cell } from '../output.ts';
import type { Call } from '../table.ts';

interface Deployment {
  id: string;
  status: string;
  status_reason?: string | null;
}

interface DeploymentEvent {
  event: string;
  message?: string;
  deployment?: Deployment;
  app_name?: string;
  version?: string;
  actions?: { name: string }[];
}

/** Not part of a source: these are large, and the build creates them again. */
const LEFT_OUT = ['node_modules', '.git', '.venv', '__pycache__', 'dist-packages'];

export async function deploy(call: Call): Promise<void> {
  const parts = await partsOf(call);
  const answer = await ask(call.target(), { method: 'POST', path: '/deployments', ...multipart(parts) });
  const made = await jsonOf<Deployment>(answer);
  if (call.options['follow'] === false) return call.output.one(made);
  call.output.note(`Deployment ${made.id}`);
  const path = fillPath('/deployments/{id}/events', [made.id]);
  const apps: DeploymentEvent[] = [];
  for await (const event of eventsOf<DeploymentEvent>(await ask(call.target(), { method: 'GET', path }))) {
    if (event.event === 'log') process.stderr.write(`${cell(event.message?.trimEnd())}\n`);
    if (event.event === 'app_version_summary') apps.push(event);
    const { status, status_reason: reason } = event.deployment ?? {};
    if (status === 'failed' || status === 'stopped') throw new Fault(cell(reason ?? `The deployment has ${status}.`));
    if (status === 'running') break; // the events of its apps arrive before
  }
  const rows = apps.map(({ app_name, version, actions = [] }) => ({
    deployment: made.id,
    app: app_name,
    version,
    actions: actions.map(({ name }) => name).join(', '),
  }));
  call.output.list(rows, ['deployment', 'app', 'version', 'actions']);
}

async function partsOf(call: Call): Promise<Part[]> {
  const [directory] = call.arguments as [string | undefined];
  const { source, version, region, force, 'env-vars': variables } = call.options;
  const given: Part[] = [];
  for (const [name, value] of Object.entries({ version, region, force }))
    if (value !== undefined) given.push([name, typeof value === 'string' ? value : JSON.stringify(value)]);
  for (const [name, value] of Object.entries(variablesOf(variables as string[] | undefined)))
    given.push([`env_vars[${name}]`, value]);
  const from = sourceOf(call, source as string[] | undefined);
  if (from && directory !== undefined) throw new UsageError('A deployment takes a directory or --source, not both.');
  if (from) return [...given, ['source', JSON.stringify(from)]];
  const entrypoint = call.options['entrypoint'] as string | undefined;
  if (entrypoint === undefined)
    throw new UsageError("'corral deploy' needs --entrypoint, the file that registers the apps.");
  const folder = resolve(directory ?? '.');
  const { zipOf } = await import('../archive.ts');
  const bytes = await zipOf(folder, LEFT_OUT);
  // The fields come first: a service may refuse by them before it reads the file.
  return [...given, ['entrypoint_rel_path', entrypoint], ['file', { name: `${basename(folder)}.zip`, bytes }]];
}

function sourceOf(call: Call, whole: string[] | undefined): Record<string, unknown> | undefined {
  const base = whole?.[0] === undefined ? {} : (parseJson(whole[0], '--source') as Record<string, unknown>);
  for (const name of ['type', 'url', 'ref', 'entrypoint', 'path'])
    if (call.options[`source.${name}`] !== undefined) base[name] = call.options[`source.${name}`];
  return Object.keys(base).length > 0 ? base : undefined;
}

function variablesOf(given: string[] | undefined): Record<string, string> {
  return Object.fromEntries(
    (given ?? []).flatMap((text) => {
      if (/^[{@]/.test(text)) return Object.entries(parseJson(text, '--env-vars') as Record<string, string>);
      const pair = /^([^=]+)=(.*)$/s.exec(text);
      if (!pair) throw new UsageError(`--env-vars takes NAME=value, not '${text}'.`);
      return [[pair[1]!, pair[2]!] as const];
    }),
  );
}
