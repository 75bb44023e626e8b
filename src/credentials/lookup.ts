import { errors } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { ProviderService } from './providers/service.ts';
import type { CredentialService, OpenCredential, SavedLogin } from './service.ts';
import { parseTotp, totpCode, type Totp, type TotpCode } from './totp.ts';

/** How requests name a credential. `provider` is a provider's name or id; without one, `auto` asks all in their order. */
export interface CredentialReference {
  name?: string | undefined;
  provider?: string | undefined;
  path?: string | undefined;
  auto?: boolean | undefined;
}

/** How other rooms store it: by ids, so that a new name unlinks nothing. */
export type CredentialLink =
  { credentialId: string } | { providerId: string; path: string } | { providerId: string | null; auto: true };

export interface Wanted {
  projectId: string;
  credential: CredentialLink | CredentialReference;
  /** The site, for credentials that are found by it. */
  domain?: string | undefined;
}

export type CredentialLookup = ReturnType<typeof credentialLookup>;

/** Credentials for the rooms that log in, wherever they are kept. */
export function credentialLookup({
  credentials,
  providers,
  log,
  now = Date.now,
}: {
  credentials: CredentialService;
  providers: ProviderService;
  log: Log;
  now?: () => number;
}) {
  /** Checks a reference, and turns its names into ids. */
  async function link(projectId: string, reference: CredentialReference): Promise<CredentialLink> {
    const { name, provider, path, auto } = reference;
    const ways = [name !== undefined, path !== undefined, auto === true].filter(Boolean).length;
    if (ways !== 1 || (name !== undefined && provider !== undefined))
      throw errors.invalid_input({
        detail: 'credential must be one of {name}, {provider, path} and {provider, auto: true}.',
      });
    if (name !== undefined) return { credentialId: await credentials.idOf(projectId, name) };
    if (path === undefined)
      return { providerId: provider === undefined ? null : await providers.idOf(provider), auto: true };
    if (provider === undefined) throw errors.invalid_input({ detail: 'credential.path needs credential.provider.' });
    return { providerId: await providers.idOf(provider), path };
  }

  async function resolve({ projectId, credential, domain }: Wanted): Promise<OpenCredential> {
    const found = isLink(credential) ? credential : await link(projectId, credential);
    if ('credentialId' in found) return credentials.open(projectId, found.credentialId);
    if ('path' in found) return opened(await providers.open(found.providerId, found.path));
    if (domain === undefined) throw new Error('A credential that is found by its site needs the site.');
    return opened(await providers.openFor(domain, found.providerId ?? undefined));
  }

  function opened({ values, totp }: { values: Record<string, string>; totp?: string | undefined }): OpenCredential {
    return { values, totp: totp === undefined ? undefined : readable(totp) };
  }

  /** A login without codes is better than none: what the store has for codes may be for another program. */
  function readable(text: string): Totp | undefined {
    try {
      return parseTotp(text);
    } catch {
      log.warn({}, 'credential_provider.totp_not_readable');
      return undefined;
    }
  }

  return {
    link,
    resolve,

    /** What a stored link is called now. Undefined when the credential or provider is deleted. */
    async describe(projectId: string, stored: CredentialLink): Promise<CredentialReference | undefined> {
      if ('credentialId' in stored) {
        const name = await credentials.nameOf(projectId, stored.credentialId);
        return name === undefined ? undefined : { name };
      }
      const rest = 'path' in stored ? { path: stored.path } : { auto: true };
      if (stored.providerId === null) return rest;
      const provider = await providers.nameOf(stored.providerId);
      return provider === undefined ? undefined : { provider, ...rest };
    },

    /** The one-time code of this moment; its `counter` tells whether it was used already. */
    async totpCode(wanted: Wanted): Promise<TotpCode | undefined> {
      const { totp } = await resolve(wanted);
      return totp && totpCode(totp, now());
    },

    save: (login: SavedLogin) => credentials.save(login),
  };
}

const isLink = (credential: CredentialLink | CredentialReference): credential is CredentialLink =>
  'credentialId' in credential || 'providerId' in credential;
