import { asked, jsonText, parsed, refuseSecrets, segment, text } from './answers.ts';
import type { Field, Operation } from '../lib/operation.ts';
import type { Answer, Content, Host, Tool } from './host.ts';
import { ToolFailure } from './host.ts';

/** A tool for a resource: an action is an operation of the API. Fields named in `without` are not offered. */
interface Family {
  name: string;
  about: string;
  actions: Record<string, string>;
  without?: readonly string[];
}

const families: readonly Family[] = [
  {
    name: 'browsers',
    about:
      'Sessions of real Chromium. Create one first and pass its session_id to the other tools; delete it when the work is done.',
    actions: {
      create: 'createBrowser',
      list: 'listBrowsers',
      get: 'getBrowser',
      update: 'updateBrowser',
      delete: 'deleteBrowser',
      live_view_link: 'createBrowserLiveViewLink',
    },
    without: ['invocation_id'],
  },
  {
    name: 'browser_pools',
    about: 'Pools of warm sessions. Acquire lends a session; release gives it back.',
    actions: {
      create: 'createBrowserPool',
      list: 'listBrowserPools',
      get: 'getBrowserPool',
      update: 'updateBrowserPool',
      delete: 'deleteBrowserPool',
      acquire: 'acquireBrowser',
      release: 'releaseBrowser',
      flush: 'flushBrowserPool',
    },
  },
  {
    name: 'profiles',
    about: 'Saved browser state: cookies and storage. A session with a profile starts with this state.',
    actions: {
      create: 'createProfile',
      list: 'listProfiles',
      get: 'getProfile',
      update: 'updateProfile',
      delete: 'deleteProfile',
    },
  },
  {
    name: 'proxies',
    about: 'Proxies for the traffic of sessions. The user creates proxies that have a password.',
    actions: {
      create: 'createProxy',
      list: 'listProxies',
      get: 'getProxy',
      update: 'updateProxy',
      delete: 'deleteProxy',
      check: 'checkProxy',
    },
  },
  {
    name: 'extensions',
    about: 'Extensions for sessions. The user uploads them.',
    actions: { list: 'listExtensions', get: 'getExtension', delete: 'deleteExtension' },
  },
  {
    name: 'replays',
    about: 'Videos of a session.',
    actions: { start: 'startBrowserReplayRecording', stop: 'stopBrowserReplayRecording', list: 'listBrowsersReplays' },
  },
  {
    name: 'projects',
    about: 'Projects and their limits.',
    actions: {
      create: 'createProject',
      list: 'listProjects',
      get: 'getProject',
      update: 'updateProject',
      delete: 'deleteProject',
      limits: 'getProjectLimits',
    },
  },
  {
    name: 'api_keys',
    about: 'API keys, masked. The user creates new keys, because a key is a secret.',
    actions: { list: 'listApiKeys', get: 'getApiKey', update: 'updateApiKey', revoke: 'deleteApiKey' },
  },
  {
    name: 'apps',
    about: 'Deployed apps: their versions, and runs of their actions.',
    actions: {
      list: 'listApps',
      deployments: 'listDeployments',
      invoke: 'createInvocation',
      invocations: 'listInvocations',
      invocation: 'getInvocation',
    },
  },
  {
    name: 'credentials',
    about: 'Credentials for login pages, without their values. The user creates and changes them.',
    actions: { list: 'listCredentials', get: 'getCredential', delete: 'deleteCredential' },
  },
  {
    name: 'credential_providers',
    about: 'External stores of credentials. The user connects them.',
    actions: {
      list: 'listCredentialProviders',
      get: 'getCredentialProvider',
      test: 'testCredentialProvider',
      items: 'listCredentialProviderItems',
      delete: 'deleteCredentialProvider',
    },
  },
  {
    name: 'auth_connections',
    about:
      'Profiles that stay logged in at a site. `login` starts a login with the stored credential; if the login needs input, give the user the hosted_url of the answer, where the user can enter it.',
    actions: {
      create: 'createAuthConnection',
      list: 'listAuthConnections',
      get: 'getAuthConnection',
      update: 'updateAuthConnection',
      delete: 'deleteAuthConnection',
      login: 'startAuthConnectionLogin',
      timeline: 'listAuthConnectionTimeline',
    },
  },
];

const PAGE = 20;

export function manageTools(host: Host): Tool[] {
  return families.map((family) => {
    const operations = Object.entries(family.actions).map(([action, name]) => ({ action, ...host.operation(name) }));
    return {
      name: `manage_${family.name}`,
      toolset: family.name,
      description: `${family.about} Actions: ${operations.map(({ action, about }) => `${action}: ${about}`).join(' ')}`,
      inputSchema: {
        type: 'object',
        properties: {
          action: { type: 'string', enum: Object.keys(family.actions) },
          ...parametersOf(operations),
          ...propertiesOf(operations, family.without),
        },
        required: ['action'],
        additionalProperties: false,
      },
      run: (args) => perform(host, host.operation(family.actions[args['action'] as string]!), args),
    };
  });
}

/** One operation with the arguments of a tool: path parameters by name, then the fields of the query and the body. */
async function perform(
  host: Host,
  operation: Operation,
  { action, ...args }: Record<string, unknown>,
): Promise<Content[]> {
  return answerOf(await send(host, operation, args, String(action)));
}

export async function send(
  host: Host,
  operation: Operation,
  args: Record<string, unknown>,
  action: string,
): Promise<Answer> {
  refuseSecrets(args);
  const given = new Map(Object.entries(args));
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const key = parameterName(name);
    const value = given.get(key);
    given.delete(key);
    if (typeof value !== 'string' || value === '') throw new ToolFailure(`The action '${action}' needs '${key}'.`);
    return segment(value);
  });
  const take = (fields: readonly Field[]) => {
    const taken: Record<string, unknown> = {};
    for (const { name, required } of fields.filter((field) => !field.name.includes('.'))) {
      if (given.has(name)) taken[name] = given.get(name);
      else if (required) throw new ToolFailure(`The action '${action}' needs '${name}'.`);
      given.delete(name);
    }
    return taken;
  };
  const query = take(operation.query);
  const body = take(operation.body);
  const [left] = given.keys();
  if (left !== undefined) throw new ToolFailure(`The action '${action}' does not take '${left}'. Leave it out.`);
  if (operation.query.some(({ name }) => name === 'limit')) query['limit'] ??= PAGE;
  const sends = operation.method !== 'GET' && (operation.body.length > 0 || operation.method === 'POST');
  return asked(host, { method: operation.method, path, query, ...(sends ? { body } : {}) });
}

function answerOf({ status, headers, bytes }: Answer): Content[] {
  if (status === 204 || bytes.length === 0) return [text('Done.')];
  const more =
    headers['x-has-more'] === 'true'
      ? [text(`There are more: ask again with offset ${String(headers['x-next-offset'])}.`)]
      : [];
  return [jsonText(parsed(bytes)), ...more];
}

function parameterName(name: string): string {
  return name === 'id_or_name' ? 'id' : name;
}

export function parametersOf(operations: readonly Operation[]): Record<string, object> {
  const names = operations.flatMap(({ path }) =>
    [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => parameterName(name!)),
  );
  return Object.fromEntries(
    [...new Set(names)].map((name) => [
      name,
      { type: 'string', description: name === 'id' ? 'The id, or the name where it has one.' : 'Its id.' },
    ]),
  );
}

export function propertiesOf(
  operations: readonly (Operation & { action: string })[],
  without: readonly string[] = [],
): Record<string, object> {
  const found: Record<string, { type?: unknown; description: string }> = {};
  for (const { query, body } of operations)
    for (const field of [...query, ...body]) {
      if (field.name.includes('.') || without.includes(field.name) || field.type === 'file') continue;
      // An update may accept null where a create does not.
      const seen = found[field.name];
      if (seen && (Array.isArray(seen.type) || !takesNull(field))) continue;
      const takers = operations.filter((one) => [...one.query, ...one.body].some(({ name }) => name === field.name));
      const of = takers.length === operations.length ? '' : ` (${takers.map(({ action }) => action).join(', ')})`;
      found[field.name] = { ...schemaOf(field), description: `${field.about}${of}` };
    }
  return found;
}

const takesNull = ({ kind }: Field) => Array.isArray(kind?.type);

/** Gives the model the type of the field. The service validates the value. */
function schemaOf({ type, kind, values, many }: Field): object {
  if (type === 'json' || type === 'file') return { ...kind };
  const one = { type, ...(values ? { enum: values } : {}) };
  return many ? { type: 'array', items: one } : one;
}
