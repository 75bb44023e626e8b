import { X509Certificate } from 'node:crypto';
import type { EgressError } from '../../chromium/egress/refusals.ts';
import { errors } from '../../errors.ts';
import type { ProviderType } from './schema.ts';

/** Why the service may not or cannot connect to this host. Undefined when it may. */
export type RefuseHost = (host: string, port: number) => Promise<EgressError | undefined>;

const refuse = (detail: string) => errors.invalid_input({ detail });

/** The address of a store, as it is stored: without a slash at its end. */
export async function serverAddress(text: string, refuseHost: RefuseHost): Promise<string> {
  const wrong = refuse(
    'server_url must be an http or https address without a user name, query and fragment, such as https://vault.example.com:8200.',
  );
  if (!URL.canParse(text)) throw wrong;
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) throw wrong;
  // A name that does not resolve today may resolve tomorrow; its addresses are checked again for every request.
  const why = await refuseHost(url.hostname, Number(url.port) || (url.protocol === 'https:' ? 443 : 80));
  if (why?.code === 'destination_refused')
    throw errors.provider_host_refused({ host: url.host, remedy: why.remedy ?? '' });
  if (why?.code === 'bad_request') throw wrong;
  return url.href.replace(/\/+$/, '');
}

/** Each type has the fields that mean something for it. */
export function refuseMeaningless(
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

export function refuseNoPem(text: string) {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g);
  try {
    if (blocks?.every((block) => new X509Certificate(block).fingerprint256 !== '')) return;
  } catch {
    // It is refused below.
  }
  throw refuse('ca_bundle is not a list of PEM certificates.');
}

/** Mounts without slashes at their ends, each once. */
export function mountNames(mounts: string[]): string[] | null {
  const names = mounts.map((mount) => mount.replaceAll(/^\/+|\/+$/g, ''));
  if (names.some((name) => name.split('/').some((part) => part === '' || part === '.' || part === '..')))
    throw refuse('mounts has a name that is not a path, such as secret or teams/kv.');
  return names.length === 0 ? null : [...new Set(names)];
}
