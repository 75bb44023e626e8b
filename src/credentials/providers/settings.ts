import type { EgressError } from '../../chromium/egress/refusals.ts';
import { errors } from '../../errors.ts';
import { hasCertificates } from '../../lib/pem.ts';
import { withoutEnd, withoutStart } from '../../lib/text.ts';
import { urlOf } from '../../lib/urls.ts';
import type { CreateProvider, ProviderType, UpdateProvider } from './schema.ts';
import type { NewProvider, ProviderRow } from './store.ts';

/** Why the service may not or cannot connect to this host. Undefined when it may. */
export type RefuseHost = (host: string, port: number) => Promise<EgressError | undefined>;

const refuse = (detail: string) => errors.invalid_input({ detail });

/** The address of a store, as it is stored: without a slash at its end. */
async function serverAddress(text: string, refuseHost: RefuseHost): Promise<string> {
  const wrong = refuse(
    'server_url must be an http or https address without a user name, query and fragment, such as https://vault.example.com:8200.',
  );
  const url = urlOf(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) throw wrong;
  // A name that does not resolve today may resolve tomorrow; its addresses are checked again for every request.
  const why = await refuseHost(url.hostname, Number(url.port) || (url.protocol === 'https:' ? 443 : 80));
  if (why?.code === 'destination_refused')
    throw errors.provider_host_refused({ host: url.host, remedy: why.remedy ?? '' });
  if (why?.code === 'bad_request') throw wrong;
  return withoutEnd(url.href, '/');
}

/** Each type has the fields that mean something for it. */
function refuseMeaningless(
  type: ProviderType,
  {
    server_url,
    ca_bundle,
    namespace,
    mounts,
  }: { [field in 'server_url' | 'ca_bundle' | 'namespace' | 'mounts']?: unknown },
) {
  if ((type === 'vault' || type === 'http') && !server_url)
    throw refuse(`server_url is missing: a provider of type ${type} needs the address of its store.`);
  if (type !== 'vault' && (namespace || mounts)) throw refuse('namespace and mounts are for providers of type vault.');
  if (ca_bundle && !(typeof server_url === 'string' && server_url.startsWith('https:')))
    throw refuse('ca_bundle is for a server_url with https.');
}

function refuseNoPem(text: string) {
  if (!hasCertificates(text)) throw refuse('ca_bundle is not a list of PEM certificates.');
}

/** Mounts without slashes at their ends, each once. */
function mountNames(mounts: string[]): string[] | null {
  const names = mounts.map((mount) => withoutStart(withoutEnd(mount, '/'), '/'));
  if (names.some((name) => name.split('/').some((part) => part === '' || part === '.' || part === '..')))
    throw refuse('mounts has a name that is not a path, such as secret or teams/kv.');
  return names.length === 0 ? null : [...new Set(names)];
}

const fieldNames = (fields: string[]) => [
  ...new Set(fields.map((field) => field.trim()).filter((field) => field !== '')),
];

/** What a new provider is made with, after all checks. */
export async function newSettings(
  request: CreateProvider,
  projects: string[],
  refuseHost: RefuseHost,
): Promise<Omit<NewProvider, 'id'>> {
  const { provider_type, name, server_url, ca_bundle } = request;
  refuseMeaningless(provider_type, request);
  if (ca_bundle) refuseNoPem(ca_bundle);
  return {
    provider_type,
    name,
    enabled: request.enabled ?? true,
    priority: request.priority ?? 0,
    cache_ttl_seconds: request.cache_ttl_seconds ?? 300,
    server_url: server_url ? await serverAddress(server_url, refuseHost) : null,
    ca_bundle: ca_bundle || null,
    namespace: request.namespace || null,
    mounts: mountNames(request.mounts ?? []),
    projects,
    fields: fieldNames(request.fields ?? []),
  };
}

/** The provider as a request would have it, after all checks. */
export async function changedSettings(
  row: ProviderRow,
  request: UpdateProvider,
  projects: string[] | undefined,
  refuseHost: RefuseHost,
): Promise<NewProvider> {
  const { server_url, ca_bundle, token } = request;
  if (token === undefined && (server_url !== undefined || ca_bundle !== undefined))
    throw errors.invalid_input({
      detail:
        'server_url and ca_bundle change only together with token: the stored one is for the store that it was sent for.',
    });
  const next = {
    ...row,
    name: request.name ?? row.name,
    enabled: request.enabled ?? row.enabled,
    priority: request.priority ?? row.priority,
    cache_ttl_seconds: request.cache_ttl_seconds ?? row.cache_ttl_seconds,
    server_url:
      server_url === undefined
        ? row.server_url
        : server_url === ''
          ? null
          : await serverAddress(server_url, refuseHost),
    ca_bundle: ca_bundle === undefined ? row.ca_bundle : ca_bundle || null,
    namespace: request.namespace === undefined ? row.namespace : request.namespace || null,
    mounts: request.mounts === undefined ? row.mounts : mountNames(request.mounts),
    projects: projects ?? row.projects,
    fields: request.fields === undefined ? row.fields : fieldNames(request.fields),
  };
  refuseMeaningless(row.provider_type, next);
  if (ca_bundle) refuseNoPem(ca_bundle);
  return next;
}
