import { domainOf } from '../credentials/domains.ts';
import type { CredentialLink, CredentialLookup } from '../credentials/lookup.ts';
import { errors, ServiceError } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { turns } from '../lib/turns.ts';
import { urlOf } from '../lib/urls.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { ProxyService } from '../proxies/service.ts';
import { refuseTelemetry } from '../sessions/request.ts';
import { uniqueViolation, type Db } from '../store/db.ts';
import { toConnection } from './answer.ts';
import { jittered } from './checks.ts';
import type { Asking, Finding } from './connection-lookup.ts';
import { inputStore } from './input-store.ts';
import { runStore } from './run-store.ts';
import type { NodeLogins } from './node-logins.ts';
import type { Connection, ConnectionList, CreateConnection, UpdateConnection } from './schema.ts';
import { connectionStore, linkColumns, linkOf, type ConnectionRow, type ConnectionSettings } from './store.ts';

const defaultInterval = 3600;
/** Of a project. Each has a recipe and the records of its newest login in the database of all projects. */
const mostConnections = 10_000;

export interface ConfiguringOptions {
  db: Db;
  profiles: Pick<ProfileService, 'choose' | 'create'>;
  proxies: Pick<ProxyService, 'list' | 'refuseUnknown'>;
  lookup: Pick<CredentialLookup, 'link' | 'refusal'>;
  runner: Pick<NodeLogins, 'forget' | 'cancel'>;
  log: Log;
}

/** Connections and their settings: made, listed, changed and removed. */
export function connectionConfiguring(options: ConfiguringOptions & { finding: Finding }) {
  const { db, lookup, runner, log, finding } = options;
  const { find, shown, newestFlow, addressesOf } = finding;
  const store = connectionStore(db);
  const runs = runStore(db);
  const { profileOf, proxyId } = selecting(options);

  async function removeAll(id: string): Promise<boolean> {
    const flow = await newestFlow(id);
    const removed = await db.transaction(async (tx) => {
      // Before anything is removed: what a submit or the end of a login seals at this moment would be left behind.
      await inputStore(tx).lockAllOf(id);
      await connectionStore(tx).lock(id);
      await runner.forget(id, tx);
      return connectionStore(tx).remove(id);
    });
    if (flow?.status === 'IN_PROGRESS') {
      runner.cancel(flow.id);
      await runs.tell(id, flow.id, 'cancel');
    } else await runs.tell(id, '', 'state');
    return removed;
  }

  /** An item of a provider is typed only at sites that it names: said when a connection is made, rather than at its login. */
  async function refuseForeign(
    { project_id: projectId, domain, login_url: loginUrl }: Pick<ConnectionRow, 'project_id' | 'domain' | 'login_url'>,
    credential: CredentialLink,
  ): Promise<void> {
    const why = await lookup.refusal({ projectId, credential, domain, loginUrl: loginUrl ?? undefined });
    if (why?.code === 'item_not_for_site') throw why;
  }

  return {
    proxyId,

    async create(asking: Asking, request: CreateConnection): Promise<Connection> {
      const { projectId } = asking;
      const domain = siteOf('domain', request.domain);
      refuseTelemetry(request.browser_telemetry);
      if ((await store.count(projectId)) >= mostConnections)
        throw errors.invalid_input({
          detail: `The project has ${mostConnections} auth connections, which are the most. Delete some first.`,
        });
      const link = request.credential && (await lookup.link(asking, request.credential));
      const login_url = request.login_url ? pageOf(request.login_url) : null;
      if (link) await refuseForeign({ project_id: projectId, domain, login_url }, link);
      const proxy_id = (request.proxy && (await proxyId(projectId, request.proxy))) ?? null;
      const health_check_interval = request.health_check_interval ?? defaultInterval;
      const settings: ConnectionSettings = {
        login_url,
        allowed_domains: sitesOf(request.allowed_domains ?? []),
        sso_hosts: {},
        sso_provider: null,
        ...linkColumns(link),
        proxy_id,
        health_check_interval,
        health_checks: request.health_checks ?? true,
        auto_reauth: request.auto_reauth ?? true,
        save_credentials: request.save_credentials ?? true,
        record_session: request.record_session ?? false,
        browser_telemetry: request.browser_telemetry ?? null,
      };
      const profile = await profileOf(projectId, request.profile_name);
      const id = newId('ma_');
      const plain_http = isPlain(request.domain);
      const row = { id, project_id: projectId, profile_id: profile.id, domain, plain_http };
      try {
        await store.insert({ ...row, ...settings, next_check_at: jittered(health_check_interval) });
      } catch (error) {
        if (uniqueViolation(error) !== 'auth_connections_site') throw error;
        throw new ServiceError(
          'already_exists',
          `Profile '${request.profile_name}' has an auth connection for ${domain} already. Use the one in existing_id, or delete it first.`,
          { body: { existing_id: (await store.idFor(profile.id, domain)) ?? '' } },
        );
      }
      return shown(await find(projectId, id), asking);
    },

    async list(asking: Asking, filter: ConnectionList): Promise<Connection[]> {
      const domain = filter.domain ? (domainOf(filter.domain) ?? filter.domain) : null;
      const rows = await store.list(asking.projectId, { ...filter, domain });
      const flows = await runs.latest(rows.map(({ id }) => id));
      const addresses = await Promise.all(rows.map(({ id }) => addressesOf(flows.get(id), asking)));
      const turn = turns();
      const page: Connection[] = [];
      for (const [at, row] of rows.entries()) {
        page.push(toConnection(row, flows.get(row.id), addresses[at]!));
        await turn();
      }
      return page;
    },

    async update(asking: Asking, id: string, request: UpdateConnection): Promise<Connection> {
      const { projectId } = asking;
      const before = await find(projectId, id);
      refuseTelemetry(request.browser_telemetry);
      const link =
        request.credential === undefined
          ? undefined
          : linkColumns(request.credential ? await lookup.link(asking, request.credential) : undefined);
      const after = changed(before, request, { link, proxy: undefined });
      const used = request.credential || request.login_url ? linkOf({ ...before, ...after }) : undefined;
      if (used) await refuseForeign({ ...before, ...after }, used);
      const proxy = request.proxy && (await proxyId(projectId, request.proxy));
      // Two changes at once, or a change while a login ends, must not undo each other.
      await db.transaction(async (tx) => {
        const within = connectionStore(tx);
        await within.lock(id);
        const row = await within.find(projectId, id);
        if (!row) throw errors.connection_not_found({ connection: id });
        const settings = changed(row, request, { link, proxy });
        const rescheduled =
          settings.health_check_interval !== row.health_check_interval || settings.health_checks !== row.health_checks;
        await within.change(id, settings, rescheduled ? jittered(settings.health_check_interval) : null);
      });
      return shown(await find(projectId, id), asking);
    },

    async remove({ projectId }: Asking, id: string): Promise<void> {
      await find(projectId, id);
      if (!(await removeAll(id))) throw errors.connection_not_found({ connection: id });
    },

    occupancy: async (projectId: string) => counted(await store.count(projectId)),

    /** Why a proxy cannot be deleted. */
    usesProxy: async (id: string) => counted(await store.usersOfProxy(id)),

    /** Removes connections with deleted profiles. */
    async removeOrphans(): Promise<void> {
      for (const { id } of await store.orphans()) {
        await removeAll(id);
        log.info({ connection: id }, 'login.connection_removed_with_profile');
      }
    },
  };
}

const counted = (count: number) =>
  count === 0 ? undefined : `${count} auth ${count === 1 ? 'connection' : 'connections'}`;

/** The settings after a request: what it leaves out stays. */
function changed(
  row: ConnectionRow,
  request: UpdateConnection,
  named: { link: ReturnType<typeof linkColumns> | undefined; proxy: string | null | undefined },
): ConnectionSettings {
  const { login_url, allowed_domains, browser_telemetry } = request;
  return {
    ...row,
    ...named.link,
    login_url: login_url === undefined ? row.login_url : login_url === '' ? null : pageOf(login_url),
    allowed_domains: allowed_domains ? sitesOf(allowed_domains) : row.allowed_domains,
    // They were confirmed for the values typed there, which another credential does not have.
    sso_hosts: named.link ? {} : row.sso_hosts,
    sso_provider: named.link ? null : row.sso_provider,
    proxy_id: named.proxy === undefined ? row.proxy_id : named.proxy,
    health_check_interval: request.health_check_interval ?? row.health_check_interval,
    health_checks: request.health_checks ?? row.health_checks,
    auto_reauth: request.auto_reauth ?? row.auto_reauth,
    save_credentials: request.save_credentials ?? row.save_credentials,
    record_session: request.record_session ?? row.record_session,
    browser_telemetry: browser_telemetry === undefined ? row.browser_telemetry : browser_telemetry,
  };
}

/** What a request names: the profile, which is made when it is missing, and the proxy. */
function selecting({ profiles, proxies }: Pick<ConfiguringOptions, 'profiles' | 'proxies'>) {
  async function profileOf(projectId: string, name: string): Promise<{ id: string }> {
    try {
      return await profiles.create(projectId, name);
    } catch (error) {
      if ((error as { code?: string }).code !== 'already_exists') throw error;
      return profiles.choose(projectId, { name });
    }
  }

  async function proxyId(projectId: string, { id, name }: { id?: string; name?: string }): Promise<string> {
    if ((id === undefined) === (name === undefined))
      throw errors.invalid_input({ detail: 'proxy must have either id or name.' });
    if (id !== undefined) {
      await proxies.refuseUnknown(projectId, id);
      return id;
    }
    const found = await proxies.list(projectId, { name: name!, limit: 1, offset: 0 });
    if (found.length > 1)
      throw errors.invalid_input({ detail: `proxy.name: several proxies are named '${name}'. Send proxy.id instead.` });
    const [only] = found;
    if (!only) throw errors.invalid_input({ detail: `proxy.name: no proxy of this project is named '${name}'.` });
    return only.id!;
  }

  return { profileOf, proxyId };
}

function siteOf(field: string, text: string): string {
  const domain = domainOf(text);
  if (domain !== undefined) return domain;
  throw errors.invalid_input({
    detail: `${field} is not a host name. Send the host of the site, such as shop.example.`,
  });
}

/** Without a scheme a site is reached by https. */
const isPlain = (text: string) => /^http:/i.test(text.trim());

const sitesOf = (domains: readonly string[]) => [
  ...new Set(
    domains.map((text) => {
      const site = siteOf('allowed_domains', text.replace(/^(https?:\/\/)?\*\./i, '$1'));
      return isPlain(text) ? `http://${site}` : site;
    }),
  ),
];

function pageOf(text: string): string {
  const url = urlOf(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw errors.invalid_input({
      detail: 'login_url must be an http or https address without a user name, such as https://shop.example/login.',
    });
  return text;
}
