import { Value } from 'typebox/value';
import { errors } from '../errors.ts';
import { isLight } from '../lib/json-weight.ts';
import { canHide } from './redact.ts';
import { GitSource } from './schema.ts';

/** The service sets these itself. */
const reserved = ['KERNEL_API_KEY', 'ENTRYPOINT_RELPATH', 'KERNEL_BASE_URL'];
const mostVariables = 200;
/** Of the JSON of a field: twice what the variables need, and many times what `source` needs. */
const mostValues = 800;
const mostEnvBytes = 256 * 1024;
const label = /^[^\u0000-\u001f\u007f/]{1,255}$/; // oxlint-disable-line no-control-regex

const refuse = (detail: string) => errors.invalid_input({ detail });

/** What the fields of a deployment's form say; the zip comes beside them. */
interface DeploymentForm {
  version: string;
  force: boolean;
  region: string | undefined;
  env: Record<string, string>;
  entrypoint: string | undefined;
  git: GitSource | undefined;
}

/** Reads and checks the fields, by their names as they were sent. */
export function readForm(fields: ReadonlyMap<string, string>, hasFile: boolean): DeploymentForm {
  const env: Record<string, string> = {};
  for (const [name, value] of fields) {
    const variable = /^env_vars(?:\[(.*)\]|\.(.*))$/s.exec(name);
    if (variable) env[checkVariable(variable[1] ?? variable[2] ?? '', value)] = value;
    else if (!['entrypoint_rel_path', 'source', 'version', 'region', 'force', 'env_vars'].includes(name))
      throw refuse(`${name} is not a field of a deployment.`);
  }
  const whole = fields.get('env_vars');
  if (whole !== undefined) for (const [name, value] of entriesOf(whole)) env[checkVariable(name, value)] = value;
  if (Object.keys(env).length > mostVariables) throw refuse(`env_vars has more than ${mostVariables} variables.`);
  if (Buffer.byteLength(JSON.stringify(env)) > mostEnvBytes)
    throw refuse(`env_vars has more than ${mostEnvBytes / 1024} KiB in all.`);
  if (!canHide(Object.values(env)))
    throw refuse(
      'env_vars has more lines than can be hidden in logs. Put long values into one line, such as in base64.',
    );

  const source = fields.get('source');
  const entrypoint = fields.get('entrypoint_rel_path');
  if (hasFile === (source !== undefined))
    throw refuse('Send either file, a zip of the source, or source, a git repository.');
  if (hasFile && !entrypoint)
    throw refuse('entrypoint_rel_path is missing: the file of the zip that registers the apps.');
  const version = fields.get('version') || 'latest';
  if (!label.test(version)) throw refuse('version must have 1 to 255 characters, without / and control characters.');
  const force = fields.get('force') ?? 'false';
  if (force !== 'true' && force !== 'false') throw refuse(`force is '${force.slice(0, 20)}'; it takes true or false.`);
  const region = fields.get('region') || undefined;
  return {
    version,
    force: force === 'true',
    region,
    env,
    entrypoint,
    git: source === undefined ? undefined : readGit(source),
  };
}

function checkVariable(name: string, value: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(name))
    throw refuse(`env_vars has '${name.slice(0, 80)}', which is no name of a variable: letters, digits and _.`);
  if (reserved.includes(name)) throw refuse(`env_vars.${name} is set by the service. Choose another name.`);
  if (value.includes('\0')) throw refuse(`env_vars.${name} has a NUL character.`);
  return name;
}

function entriesOf(json: string): [string, string][] {
  const value = parse('env_vars', json);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refuse('env_vars must be an object of strings, or be sent as env_vars[NAME].');
  return Object.entries(value).map(([name, text]) => {
    if (typeof text !== 'string') throw refuse(`env_vars.${name.slice(0, 80)} is not a string.`);
    return [name, text];
  });
}

function readGit(json: string): GitSource {
  const value = parse('source', json);
  if (Value.Check(GitSource, value)) return value;
  const [first] = Value.Errors(GitSource, value);
  const where = first?.instancePath.replaceAll('/', '.') ?? '';
  throw refuse(`source${where} ${first?.message ?? 'is not as it should be'}.`);
}

function parse(field: string, json: string): unknown {
  if (!isLight(json, mostValues)) throw refuse(`${field} has more than ${mostValues} names and values.`);
  try {
    return JSON.parse(json);
  } catch {
    throw refuse(`${field} is not JSON.`);
  }
}
