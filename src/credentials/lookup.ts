import { errors, ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { Asker, ItemWanted } from './providers/items.ts';
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

interface Wanted {
  projectId: string;
  credential: CredentialLink | CredentialReference;
  /** The site. Items of providers are found by it, and have to name it. */
  domain?: string | undefined;
  /** The page of the login; items of providers have to name its host too. */
  loginUrl?: string | undefined;
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
  async function link(asker: Asker, reference: CredentialReference): Promise<CredentialLink> {
    const { name, provider, path, auto } = reference;
    const ways = [name !== undefined, path !== undefined, auto === true].filter(Boolean).length;
    if (ways !== 1 || (name !== undefined && provider !== undefined))
      throw errors.invalid_input({
        detail: 'credential must be one of {name}, {provider, path} and {provider, auto: true}.',
      });
    if (name !== undefined) return { credentialId: await credentials.idOf(asker.projectId, name) };
    if (path === undefined)
      return { providerId: provider === undefined ? null : await providers.idOf(asker, provider), auto: true };
    if (provider === undefined) throw errors.invalid_input({ detail: 'credential.path needs credential.provider.' });
    return { providerId: await providers.idOf(asker, provider), path };
  }

  async function resolve(wanted: Wanted): Promise<OpenCredential> {
    const { projectId, credential } = wanted;
    const found = isLink(credential) ? credential : await link({ projectId }, credential);
    if ('credentialId' in found) return credentials.open(projectId, found.credentialId);
    const { values, totp, hosts } = await providers.open(itemOf(wanted, found));
    return { values, totp: totp === undefined ? undefined : readable(totp), hosts };
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

    /**
     * Why a stored link cannot be used for a connection, as far as that is certain; nothing secret is read. A store that does not
     * answer now, or has no such item yet, may answer when a login asks it.
     */
    async refusal({
      credential,
      ...wanted
    }: Wanted & { credential: CredentialLink }): Promise<ServiceError | undefined> {
      if ('credentialId' in credential) return undefined;
      try {
        await providers.check(itemOf(wanted, credential));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        if (error.code === 'item_not_for_site' || error.code === 'provider_not_found') return error;
      }
      return undefined;
    },

    /** What a stored link is called now. Undefined when the credential or provider is deleted. */
    async describe(projectId: string, stored: CredentialLink): Promise<CredentialReference | undefined> {
      if ('credentialId' in stored) {
        const name = await credentials.nameOf(projectId, stored.credentialId);
        return name === undefined ? undefined : { name };
      }
      const rest = 'path' in stored ? { path: stored.path } : { auto: true };
      if (stored.providerId === null) return rest;
      const provider = await providers.nameOf(projectId, stored.providerId);
      return provider === undefined ? undefined : { provider, ...rest };
    },

    /** The one-time code of this moment; its `counter` shows whether it was used already. */
    async totpCode(wanted: Wanted): Promise<TotpCode | undefined> {
      const { totp } = await resolve(wanted);
      return totp && totpCode(totp, now());
    },

    save: (login: SavedLogin) => credentials.save(login),
  };
}

type ItemLink = Exclude<CredentialLink, { credentialId: string }>;

function itemOf({ projectId, domain, loginUrl }: Omit<Wanted, 'credential'>, link: ItemLink): ItemWanted {
  if (domain === undefined) throw new Error('An item of a credential provider needs the site that it is for.');
  const providerId = link.providerId ?? undefined;
  return { projectId, providerId, path: 'path' in link ? link.path : undefined, domain, loginUrl };
}

const isLink = (credential: CredentialLink | CredentialReference): credential is CredentialLink =>
  'credentialId' in credential || 'providerId' in credential;
