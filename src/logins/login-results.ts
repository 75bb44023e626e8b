import type { CredentialLookup } from '../credentials/lookup.ts';
import type { Log } from '../lib/log.ts';
import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import { confirmedValues, type ConfirmedNames, type ConfirmedValues } from './confirmed-values.ts';
import { allowedHosts, theSite } from './flow/hosts.ts';
import type { FlowErrorCode, FlowInput, FlowOutcome, Passkey, WasTyped } from './flow/types.ts';
import type { RunRow } from './run-store.ts';
import { connectionStore, linkOf, type ConnectionRow, type Learned } from './store.ts';

/** The kind under which the passkeys of a connection are kept in the secrets. */
const passkeysOf = 'auth connection passkeys';

/** A page can ask under 60 origins for each of 100 values: each value is hashed once. */
function once(wasTyped: WasTyped): WasTyped {
  const before = new Map<string, { value: string; was: boolean }>();
  return (name, value) => {
    const known = before.get(name);
    if (known?.value === value) return known.was;
    const was = wasTyped(name, value);
    before.set(name, { value, was });
    return was;
  };
}

/** What flows and checks know of a connection. Checks type nothing. */
export const flowConnection = (row: ConnectionRow, values?: ConfirmedValues): FlowInput['connection'] => ({
  id: row.id,
  domain: row.domain,
  plainHttp: row.plain_http,
  loginUrl: row.login_url ?? undefined,
  allowedDomains: row.allowed_domains,
  postLoginUrl: row.post_login_url ?? undefined,
  ssoProvider: row.sso_provider ?? undefined,
  ssoHosts: Object.fromEntries(
    Object.entries(row.sso_hosts).map(([host, marks]): [string, WasTyped] => [
      host,
      once(
        (name, value) =>
          values !== undefined &&
          Object.hasOwn(marks, name) &&
          values.isMarked(marks[name]!, { connectionId: row.id, host, name }, value),
      ),
    ]),
  ),
});

/** The lookup parameters of a connection; undefined when it has no credential. */
function wantedOf(row: ConnectionRow) {
  const { project_id: projectId, domain, login_url } = row;
  const credential = linkOf(row);
  return credential && { projectId, credential, domain, loginUrl: login_url ?? undefined };
}

/** Hosts of identity providers that a connection keeps. Others are confirmed in each login. */
const mostHosts = 100;

const notShared =
  'The credential provider of this connection is not shared with its project. Give the connection another credential, or share the provider by its projects.';

/**
 * The names and marks of each confirmed host after a login. A host has those saved values that were typed there: another value by the same
 * name is not for it any more.
 */
function placesAfter(
  known: Record<string, ConfirmedNames>,
  confirmed: Record<string, string[]> = {},
  saved: Record<string, string>,
  mark: (host: string, name: string, value: string) => string,
): Record<string, ConfirmedNames> {
  const before = new Map(Object.entries(known));
  const now = new Map(Object.entries(confirmed));
  const isSaved = (name: string) => Object.hasOwn(saved, name);
  return Object.fromEntries(
    [...new Set([...before.keys(), ...now.keys()])].slice(0, mostHosts).map((host) => {
      const kept = Object.entries(before.get(host) ?? {}).filter(([name]) => !isSaved(name));
      const added = (now.get(host) ?? []).filter(isSaved).map((name) => [name, mark(host, name, saved[name]!)]);
      return [host, Object.fromEntries([...kept, ...added]) as ConfirmedNames];
    }),
  );
}

/** The names of the values that were typed at hosts of identity providers, and are not for the site too. */
function onlyAtProviders({ [theSite]: ofSite = [], ...hosts }: Record<string, string[]> = {}): string[] {
  return [...new Set(Object.values(hosts).flat())].filter((name) => !ofSite.includes(name));
}

type AtHand =
  'connection' | 'flowType' | 'credential' | 'totp' | 'lastTotpCounter' | 'recipe' | 'passkeys' | 'mayEnrol';

/** Reads the stored values for a login, and stores the values that a login returns. */
export function loginKeeping(deps: {
  db: Db;
  secrets: Secrets;
  lookup: Pick<CredentialLookup, 'resolve' | 'refusal' | 'totpCode' | 'save'>;
  log: Log;
}) {
  const { db, secrets, lookup, log } = deps;
  const confirmed = confirmedValues(secrets.keys);

  async function passkeys(connectionId: string): Promise<Passkey[] | undefined> {
    const text = await secrets.get(passkeysOf, connectionId);
    return text === undefined ? undefined : (JSON.parse(text) as Passkey[]);
  }

  /** False: the connection was deleted and does not need them. */
  const keepPasskeys = (connectionId: string, those: Passkey[]): Promise<boolean> =>
    db.transaction(async (tx) => {
      if (!(await connectionStore(tx).lock(connectionId))) return false;
      await secrets.put(passkeysOf, connectionId, JSON.stringify(those), tx);
      return true;
    });

  /** What a person typed at a provider is for the site too if it was typed there, or if the credential had it before and for the site. */
  async function alsoForSite(
    row: ConnectionRow,
    hosts: Record<string, string[]>,
    typed: Record<string, string>,
  ): Promise<Record<string, string[]>> {
    const wanted = wantedOf(row);
    const before = wanted && (await lookup.resolve(wanted).catch(() => undefined));
    const { foreign } = allowedHosts(flowConnection(row, confirmed));
    const wasForSite = (name: string) =>
      before?.ssoProvider === undefined &&
      before?.values[name] !== undefined &&
      before.values[name] === typed[name] &&
      !before.providerKeys?.includes(name) &&
      !foreign('', name, typed[name]);
    const names = [...new Set(Object.values(hosts).flat())];
    const kept = names.filter((name) => hosts[theSite]?.includes(name) || wasForSite(name));
    return kept.length > 0 ? { [theSite]: kept } : {};
  }

  return {
    /** Why the credential of a connection cannot be used for any page. */
    async refusal(connection: ConnectionRow): Promise<{ code: FlowErrorCode; message: string } | undefined> {
      const wanted = wantedOf(connection);
      const why = wanted && (await lookup.refusal(wanted));
      if (why?.code === 'item_not_for_site') return { code: 'domain_not_allowed', message: why.message };
      return why && { code: 'credentials_invalid', message: notShared };
    },

    /** The credential is opened each time it is asked for: it may have changed. */
    async given(connection: ConnectionRow, kind: RunRow['kind']): Promise<Pick<FlowInput, AtHand>> {
      const { id, totp_counter: counter } = connection;
      const link = linkOf(connection);
      const wanted = wantedOf(connection);
      return {
        connection: flowConnection(connection, confirmed),
        flowType: kind === 'reauth' ? 'REAUTH' : 'LOGIN',
        credential: async () => wanted && lookup.resolve(wanted),
        totp: async () => wanted && lookup.totpCode(wanted),
        lastTotpCounter: counter === null ? undefined : Number(counter),
        recipe: await connectionStore(db).recipe(id),
        passkeys: connection.has_passkeys ? await passkeys(id) : undefined,
        mayEnrol: connection.save_credentials && (!link || 'credentialId' in link),
      };
    },

    /**
     * Keeps what must not be lost, however the login ended: that a code is used, a second factor that the site has set up. What a person
     * typed is kept after a success, if the connection says so and still has the same credential.
     */
    async keep(
      { began, now }: { began: ConnectionRow; now: ConnectionRow },
      outcome: FlowOutcome,
      succeeded: boolean,
    ): Promise<Learned> {
      const { id, project_id: projectId, domain, profile_name: profile } = now;
      const found: Learned = { totpCounter: outcome.totpCounter };
      const hosts = succeeded ? outcome.ssoHosts : undefined;
      const mark = (host: string, name: string, value: string) =>
        confirmed.mark({ connectionId: id, host, name }, value);
      // A login may come to the host again. Then it types the values there that a person typed there, once they are kept.
      if (hosts) found.ssoHosts = placesAfter(now.sso_hosts, hosts, {}, mark);
      try {
        if (outcome.passkeys?.length) found.hasPasskeys = await keepPasskeys(id, outcome.passkeys);
        const link = linkOf(began);
        const own = !link || 'credentialId' in link; // values of a provider stay there
        const isSame = JSON.stringify(linkOf(now)) === JSON.stringify(link);
        const typed = succeeded && isSame ? outcome.typed : {};
        if (now.save_credentials && own && (Object.keys(typed).length > 0 || outcome.totpSecret)) {
          const both = hosts && { ...hosts, ...(await alsoForSite(now, hosts, typed)) };
          const saved = await lookup.save({
            projectId,
            credentialId: link && 'credentialId' in link ? link.credentialId : undefined,
            domain,
            name: `${domain} ${profile ?? ''}`.trim(),
            values: typed,
            totpSecret: outcome.totpSecret,
            ssoProvider: outcome.typedProvider,
            providerKeys: onlyAtProviders(both),
          });
          if (isSame) {
            found.credentialId = saved.id;
            found.ssoHosts = placesAfter(now.sso_hosts, both, typed, mark);
          }
        }
      } catch (error) {
        log.error({ connection: id, error: (error as Error).message }, 'login.not_kept');
      }
      return found;
    },

    forget: (connectionId: string, within: Db): Promise<void> => secrets.remove(passkeysOf, connectionId, within),
  };
}
