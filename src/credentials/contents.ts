import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import { isWellFormed } from '../lib/text.ts';
import type { Db } from '../store/db.ts';
import { unlessTaken } from '../store/names.ts';
import type { Secrets } from '../store/secrets.ts';
import { codeSourceContents } from './codes/contents.ts';
import type { NewSource } from './codes/settings.ts';
import { domainOf } from './domains.ts';
import type { RefuseHost } from './providers/settings.ts';
import type { CreateCredential, UpdateCredential } from './schema.ts';
import { credentialStore, type CredentialRow } from './store.ts';
import { parseTotp, type Totp } from './totp.ts';

/** The kinds under which a credential's parts are kept in the secrets. */
const valuesOf = 'credential values';
const totpOf = 'credential totp';
const mostValues = 100;
/** Characters of all values of a credential, and credentials of a project: they are in the database of all projects. */
const mostCharacters = 100_000;
const mostCredentials = 10_000;

/** A credential that was written, with the sources of one-time codes that the request had. */
export interface Written {
  row: CredentialRow;
  sources?: readonly NewSource[] | undefined;
}

/** Writes a credential's row together with its sealed values, and opens the seals. */
export function credentialContents(deps: { db: Db; secrets: Secrets; refuseHost: RefuseHost }) {
  const { db, secrets } = deps;
  const codeSources = codeSourceContents(deps);

  /** `providerKeys`: the names of those of the request's values that are for an identity provider and not for the site. */
  async function insert(
    projectId: string,
    request: CreateCredential,
    providerKeys: readonly string[] = [],
  ): Promise<Written> {
    const totp = request.totp_secret ? parseTotp(request.totp_secret) : undefined;
    const { name, values, one_time_code_sources: wanted } = request;
    refuseUnfit(values);
    const id = newId('cred_');
    const row = { id, project_id: projectId, name, domain: siteDomain(request.domain) };
    const sources = wanted?.length ? await codeSources.check(id, wanted, db) : undefined;
    return unlessTaken(named(name), () =>
      db.transaction(async (tx) => {
        if ((await credentialStore(tx).count(projectId)) >= mostCredentials)
          throw errors.invalid_input({
            detail: `The project has ${mostCredentials} credentials, which are the most. Delete some first.`,
          });
        await secrets.put(valuesOf, id, JSON.stringify(values), tx);
        if (totp) await secrets.put(totpOf, id, JSON.stringify(totp), tx);
        const inserted = await credentialStore(tx).insert({
          ...row,
          sso_provider: request.sso_provider || null,
          value_keys: Object.keys(values),
          provider_keys: placedAtProvider([], values, providerKeys),
          has_totp_secret: totp !== undefined,
        });
        if (sources) await codeSources.replace(id, sources, tx);
        return { row: inserted, sources };
      }),
    );
  }

  async function change(
    id: string,
    idOrName: string,
    request: UpdateCredential,
    providerKeys: readonly string[] = [],
  ): Promise<Written> {
    const { totp_secret, sso_provider, one_time_code_sources: wanted } = request;
    const totp = totp_secret ? parseTotp(totp_secret) : undefined;
    refuseUnfit(request.values ?? {});
    const sources = wanted === undefined ? undefined : await codeSources.check(id, wanted ?? [], db);
    return unlessTaken(named(request.name ?? null), () =>
      db.transaction(async (tx) => {
        const row = await credentialStore(tx).lock(id);
        if (!row) throw errors.credential_not_found({ credential: idOrName });
        let keys = row.value_keys;
        if (request.values || request.remove_value_keys?.length) {
          const values = merged(await openValues(id, tx), request);
          keys = Object.keys(values);
          if (keys.length > mostValues)
            throw errors.invalid_input({
              detail: `The credential would have ${keys.length} values, and ${mostValues} are the most. Send remove_value_keys too.`,
            });
          refuseLarge(values);
          await secrets.put(valuesOf, id, JSON.stringify(values), tx);
        }
        if (totp) await secrets.put(totpOf, id, JSON.stringify(totp), tx);
        else if (totp_secret !== undefined) await secrets.remove(totpOf, id, tx);
        if (sources) await codeSources.replace(id, sources, tx);
        const changed = await credentialStore(tx).change({
          id,
          name: request.name ?? row.name,
          sso_provider: sso_provider === undefined ? row.sso_provider : sso_provider || null,
          value_keys: keys,
          provider_keys: placedAtProvider(row.provider_keys, request.values ?? {}, providerKeys).filter((key) =>
            keys.includes(key),
          ),
          has_totp_secret: totp_secret === undefined ? row.has_totp_secret : totp !== undefined,
        });
        return { row: changed!, sources };
      }),
    );
  }

  async function openValues(id: string, within?: Db): Promise<Record<string, string>> {
    const text = await secrets.get(valuesOf, id, within);
    return text === undefined ? {} : (JSON.parse(text) as Record<string, string>);
  }

  async function openTotp(row: CredentialRow): Promise<Totp | undefined> {
    const text = row.has_totp_secret ? await secrets.get(totpOf, row.id) : undefined;
    return text === undefined ? undefined : (JSON.parse(text) as Totp);
  }

  /** False when it was already removed. */
  async function remove(id: string): Promise<boolean> {
    return db.transaction(async (tx) => {
      // The row first, as a change locks it first: in another order the two would wait for each other.
      if (!(await credentialStore(tx).lock(id))) return false;
      await codeSources.remove(id, tx);
      await credentialStore(tx).remove(id);
      await secrets.remove(valuesOf, id, tx);
      await secrets.remove(totpOf, id, tx);
      return true;
    });
  }

  return { insert, change, remove, openValues, openTotp };
}

/** The length first: a login may have typed 24 MB, and a look at each character of it takes 0.15 s. */
function refuseUnfit(values: Record<string, string>): void {
  refuseLarge(values);
  if (!Object.entries(values).flat().every(isWellFormed))
    throw errors.invalid_input({ detail: 'values has half of a surrogate pair. Send whole characters.' });
}

function refuseLarge(values: Record<string, string>): void {
  const characters = Object.values(values).reduce((sum, { length }) => sum + length, 0);
  if (characters > mostCharacters)
    throw errors.invalid_input({
      detail: `The values of a credential have ${mostCharacters} characters at most, and these have ${characters}.`,
    });
}

function siteDomain(given: string): string {
  const domain = domainOf(given);
  if (domain !== undefined) return domain;
  throw errors.invalid_input({ detail: 'domain is not a host name. Send the host of the site, such as shop.example.' });
}

function merged(values: Record<string, string>, { values: added = {}, remove_value_keys = [] }: UpdateCredential) {
  const kept = Object.entries(values).filter(([key]) => !remove_value_keys.includes(key));
  return { ...Object.fromEntries(kept), ...added };
}

/** The names of the values for identity providers, after others have taken the place of some. */
const placedAtProvider = (before: readonly string[], values: Record<string, string>, now: readonly string[]) => [
  ...before.filter((key) => !Object.hasOwn(values, key)),
  ...now.filter((key) => Object.hasOwn(values, key)),
];

const named = (name: string | null) => ({ index: 'credentials_name', thing: 'credential', name });
