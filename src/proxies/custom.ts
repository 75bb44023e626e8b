import type { EgressError } from '../chromium/egress/refusals.ts';
import { errors } from '../errors.ts';
import { hasCertificates } from '../lib/pem.ts';
import { proxyHost } from './hosts.ts';
import type { ConfigRequest } from './schema.ts';
import type { ProxyRow } from './store.ts';

/** Why the service may not or cannot connect to this host: a private address, for example. Undefined when it may. */
export type RefuseHost = (host: string, port: number) => Promise<EgressError | undefined>;

/** The configuration of a user's own proxy, and its password, which is stored apart. */
export async function customConfig(asked: ConfigRequest, protocol: ProxyRow['protocol'], refuseHost: RefuseHost) {
  const { port = 0, username, password, ca_bundle } = asked;
  const host = proxyHost(asked.host ?? '');
  const refuse = (detail: string) => errors.invalid_input({ detail });
  if (password !== undefined && username === undefined) throw refuse('config.password needs config.username.');
  for (const field of ['username', 'password'] as const) {
    if (Buffer.byteLength(asked[field] ?? '') > 255) throw refuse(`config.${field} is longer than 255 bytes.`);
  }
  if (ca_bundle !== undefined) {
    if (protocol !== 'https') throw refuse('config.ca_bundle is for proxies with protocol https.');
    if (!hasCertificates(ca_bundle)) throw refuse('config.ca_bundle is not a list of PEM certificates.');
  }
  // A name that does not resolve today may resolve tomorrow; its addresses are checked again for every connection.
  const why = await refuseHost(host.includes(':') ? `[${host}]` : host, port);
  if (why?.code === 'destination_refused') throw errors.proxy_host_refused({ host, remedy: why.remedy ?? '' });
  return {
    config: {
      host,
      port,
      ...(username === undefined ? {} : { username }),
      ...(ca_bundle === undefined ? {} : { ca_bundle }),
    },
    password,
  };
}
