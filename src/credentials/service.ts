import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import { toCodeSource } from './codes/settings.ts';
import { codeSourceStore, type SourceRow } from './codes/store.ts';
import { credentialContents, type Written } from './contents.ts';
import { domainOf } from './domains.ts';
import type { RefuseHost } from './providers/settings.ts';
import type { CreateCredential, Credential, CredentialList, TotpCodeNow, UpdateCredential } from './schema.ts';
import { credentialStore, type CredentialRow } from './store.ts';
import { totpCode, type Totp, type TotpCode } from './totp.ts';

/** What a login needs of a credential, opened. It is never logged, stored or answered. */
export interface OpenCredential {
  values: Record<string, string>;
  totp?: Totp | undefined;
  ssoProvider?: string | undefined;
  /** The names of values that a person typed at an identity provider, and not at the site: the site does not get them. */
  providerKeys?: readonly string[] | undefined;
  /** Where codes come from without a person, by what they can deliver. A webhook takes those of mails and of text messages. */
  codeSources?: readonly SourceRow['type'][] | undefined;
  /**
   * The sites that an item of a provider names, as it has them; `namesSite` holds an address against them, and the values and
   * codes are typed nowhere else. Undefined for a credential of the project itself: its owner says where it is typed.
   */
  hosts?: readonly string[] | undefined;
}

/** What a login leaves behind: the values that a person typed. */
export interface SavedLogin {
  projectId: string;
  /** The credential to merge the values into; a new one is made when there is none, or not any more. */
  credentialId?: string | undefined;
  domain: string;
  /** For a new credential. A number is added when it is taken. */
  name: string;
  values: Record<string, string>;
  totpSecret?: string | undefined;
  /** The identity provider that all of `values` are for. A credential that has other values too stays as it is. */
  ssoProvider?: string | undefined;
  /** The names of those of `values` that were typed at an identity provider, and are not for the site too. */
  providerKeys?: readonly string[] | undefined;
}

export type CredentialService = ReturnType<typeof credentialService>;

export function credentialService({
  db,
  secrets,
  events,
  refuseHost,
  publicUrl,
  now = Date.now,
}: {
  db: Db;
  secrets: Secrets;
  events: EventBus;
  refuseHost: RefuseHost;
  publicUrl: () => string;
  /** The clock of one-time codes. */
  now?: () => number;
}) {
  const store = credentialStore(db);
  const { insert, change, remove, openValues, openTotp } = credentialContents({ db, secrets, refuseHost });

  async function find(projectId: string, idOrName: string): Promise<CredentialRow> {
    const row = await store.findByIdOrName(projectId, idOrName);
    if (!row) throw errors.credential_not_found({ credential: idOrName });
    return row;
  }

  async function codeOf(row: CredentialRow): Promise<TotpCode> {
    const totp = await openTotp(row);
    if (!totp) throw errors.no_totp_secret({ credential: row.name });
    return totpCode(totp, now());
  }

  async function shown(row: CredentialRow): Promise<Credential> {
    const sources = await codeSourceStore(db).of(row.id);
    return { ...toCredential(row), one_time_code_sources: sources.map((source) => toCodeSource(source)) };
  }

  /**
   * The answer to a write: with a code if the write set a secret, so that the client can compare it with the site's, and with the addresses
   * that the write created.
   */
  async function written({ row, sources }: Written, setSecret: boolean): Promise<Credential> {
    const credential = await shown(row);
    for (const { row: source, token } of sources ?? []) {
      const at = credential.one_time_code_sources?.findIndex(({ id }) => id === source.id) ?? -1;
      if (token !== undefined && at !== -1)
        credential.one_time_code_sources![at] = toCodeSource(source, `${publicUrl()}/one-time-codes/${token}`);
    }
    if (!setSecret) return credential;
    const { code, expiresAt } = await codeOf(row);
    return { ...credential, totp_code: code, totp_code_expires_at: expiresAt.toISOString() };
  }

  return {
    async create(projectId: string, request: CreateCredential): Promise<Credential> {
      return written(await insert(projectId, request), Boolean(request.totp_secret));
    },

    async list(projectId: string, filter: CredentialList): Promise<Credential[]> {
      // A domain that cannot be one has no credentials.
      const domain = filter.domain ? (domainOf(filter.domain) ?? filter.domain) : null;
      const rows = await store.list(projectId, { ...filter, domain });
      return rows.map((row) => {
        const { value_keys: _, ...listed } = toCredential(row);
        return listed;
      });
    },

    get: async (projectId: string, idOrName: string): Promise<Credential> => shown(await find(projectId, idOrName)),

    async update(projectId: string, idOrName: string, request: UpdateCredential): Promise<Credential> {
      const { id } = await find(projectId, idOrName);
      return written(await change(id, idOrName, request), Boolean(request.totp_secret));
    },

    async remove(projectId: string, idOrName: string): Promise<void> {
      const { id } = await find(projectId, idOrName);
      if (!(await remove(id))) throw errors.credential_not_found({ credential: idOrName });
      events.publish('credential.removed', { credentialId: id, projectId });
    },

    async codeNow(projectId: string, idOrName: string): Promise<TotpCodeNow> {
      const { code, expiresAt } = await codeOf(await find(projectId, idOrName));
      return { code, expires_at: expiresAt.toISOString() };
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = await store.count(projectId);
      return count === 0 ? undefined : `${count} ${count === 1 ? 'credential' : 'credentials'}`;
    },

    // For rooms that log in.

    /** The id of the credential that a request names. Rooms store the id, so that a new name unlinks nothing. */
    async idOf(projectId: string, name: string): Promise<string> {
      const row = await store.findByName(projectId, name);
      if (row) return row.id;
      throw errors.invalid_input({
        detail: `credential.name: no credential of this project is named '${name}'. GET /credentials lists them.`,
      });
    },

    /** The current name; undefined when the credential is deleted. */
    nameOf: async (projectId: string, id: string): Promise<string | undefined> =>
      (await store.find(projectId, id))?.name,

    async open(projectId: string, id: string): Promise<OpenCredential> {
      const row = await store.find(projectId, id);
      if (!row) throw errors.credential_not_found({ credential: id });
      const [values, totp] = [await openValues(id), await openTotp(row)];
      // Before and after the values are read: a change in between must not part a value from the place that it is for.
      const after = await store.find(projectId, id);
      const providerKeys = [...new Set([...row.provider_keys, ...(after?.provider_keys ?? [])])];
      const codeSources = (await codeSourceStore(db).of(id)).map(({ type }) => type);
      return { values, totp, ssoProvider: row.sso_provider ?? undefined, providerKeys, codeSources };
    },

    /** Keeps what a login found out. Answers with the credential it is in. */
    async save(login: SavedLogin): Promise<{ id: string; name: string }> {
      const { projectId, credentialId, values, totpSecret, ssoProvider, providerKeys } = login;
      const existing = credentialId === undefined ? undefined : await store.find(projectId, credentialId);
      if (existing) {
        const isWhole = existing.value_keys.every((key) => Object.hasOwn(values, key));
        const request = {
          values,
          ...(totpSecret ? { totp_secret: totpSecret } : {}),
          ...(ssoProvider && isWhole ? { sso_provider: ssoProvider } : {}),
        };
        return (await change(existing.id, existing.id, request, providerKeys)).row;
      }
      for (let number = 1; ; number++) {
        const name = number === 1 ? login.name : `${login.name} ${number}`;
        const request = {
          name,
          domain: login.domain,
          values,
          ...(totpSecret ? { totp_secret: totpSecret } : {}),
          ...(ssoProvider ? { sso_provider: ssoProvider } : {}),
        };
        try {
          return (await insert(projectId, request, providerKeys)).row;
        } catch (error) {
          if ((error as { code?: string }).code !== 'already_exists' || number === mostNumbered) throw error;
        }
      }
    },
  };
}

/** `save` tries no more names than this. */
const mostNumbered = 1000;

function toCredential(row: CredentialRow): Credential {
  return {
    id: row.id,
    name: row.name,
    domain: row.domain,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    has_values: row.value_keys.length > 0,
    has_totp_secret: row.has_totp_secret,
    value_keys: row.value_keys,
    sso_provider: row.sso_provider,
  };
}
