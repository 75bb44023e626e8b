import type { Proxy as Endpoint } from '../chromium/egress/proxy.ts';
import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { urlOf } from '../lib/urls.ts';
import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import { seeExit, seeSite, type Reach } from './checker.ts';
import { customConfig, type RefuseHost } from './custom.ts';
import { bypassHosts } from './hosts.ts';
import { fieldsOf, types, type CreateProxy, type Proxy, type ProxyList } from './schema.ts';
import { checkSchedule } from './schedule.ts';
import { proxyStore, type ProxyRow, type ProxyStore } from './store.ts';
import type { Managed, Upstreams } from './upstreams.ts';

/** The kind under which a proxy's password is kept in the secrets. */
const passwordOf = 'proxy password';
const mostOfProject = 1000;

export type ProxyService = ReturnType<typeof proxyService>;

export function proxyService({
  db,
  secrets,
  upstreams,
  refuseHost,
  reach,
  checkUrl,
  checkMinutes,
  userOf,
  log,
}: {
  db: Db;
  secrets: Secrets;
  upstreams: Upstreams;
  refuseHost: RefuseHost;
  reach: Reach;
  /** A URL that answers with the address of its client; empty for no checks of that kind. */
  checkUrl: string;
  /** Between scheduled checks; 0 for none. */
  checkMinutes: number;
  /** Names the resources of rooms above that need a proxy; undefined for none. */
  userOf: (id: string) => Promise<string | undefined>;
  log: Log;
}) {
  const store = proxyStore(db);

  async function find(projectId: string, id: string): Promise<ProxyRow> {
    const row = await store.find(projectId, id);
    if (!row) throw errors.proxy_not_found({ id });
    return row;
  }

  /** The proxy that a session or a pool names. */
  async function named(projectId: string, id: string): Promise<ProxyRow> {
    const row = await store.find(projectId, id);
    if (row) return row;
    throw errors.invalid_input({
      detail: `proxy_id: no proxy of this project has the id '${id}'. GET /proxies lists them.`,
    });
  }

  const endpointOf = (row: ProxyRow, session: string) => endpoint(row, session, upstreams, secrets);

  /** The check that keeps status and address current. Throws when it failed, after recording that. */
  async function checkExit(row: ProxyRow): Promise<ProxyRow> {
    try {
      const endpoint = await endpointOf(row, newId());
      const { ip, latencyMs } = await seeExit(reach, endpoint, checkUrl);
      return (await store.record(row.id, { status: 'available', ip, latencyMs })) ?? row;
    } catch (error) {
      await store.record(row.id, { status: 'unavailable', ip: null, latencyMs: null });
      throw error;
    }
  }

  const schedule = checkSchedule({ store, check: checkExit, minutes: checkUrl === '' ? 0 : checkMinutes, log });

  return {
    async create(projectId: string, request: CreateProxy): Promise<Proxy> {
      const { type, protocol = 'https', config: asked = {} } = request;
      refuseFieldsOfOthers(type, asked);
      if (type !== 'custom') refuseOtherProtocol(type, protocol, upstreams);
      const hosts = bypassHosts(request.bypass_hosts ?? []);
      const { config, password } =
        type === 'custom'
          ? await customConfig(asked, protocol, refuseHost)
          : { config: upstreams.check(type, asked), password: undefined };
      const row = await db.transaction(async (tx) => {
        const id = newId();
        await refuseTooMany(proxyStore(tx), projectId);
        if (password !== undefined) await secrets.put(passwordOf, id, password, tx);
        return proxyStore(tx).insert({
          id,
          project_id: projectId,
          name: trimmed(request.name),
          type,
          protocol: type === 'custom' ? protocol : upstreams.protocolOf(type),
          bypass_hosts: hosts,
          config,
          has_password: password !== undefined,
        });
      });
      schedule.look(); // it was never checked, so it is due
      return toProxy(row);
    },

    async list(projectId: string, filter: ProxyList): Promise<Proxy[]> {
      return (await store.list(projectId, filter)).map(toProxy);
    },

    get: async (projectId: string, id: string): Promise<Proxy> => toProxy(await find(projectId, id)),

    async rename(projectId: string, id: string, name: string): Promise<Proxy> {
      const wanted = trimmed(name);
      if (wanted === null)
        throw errors.invalid_input({ detail: 'name must have at least one character that is not blank.' });
      const row = await store.rename(projectId, id, wanted);
      if (!row) throw errors.proxy_not_found({ id });
      return toProxy(row);
    },

    /** Sessions that use the proxy continue: they have all they need of it. */
    async remove(projectId: string, id: string): Promise<void> {
      await find(projectId, id);
      const users = await userOf(id);
      if (users !== undefined) throw errors.resource_in_use({ thing: `Proxy '${id}'`, users });
      await db.transaction(async (tx) => {
        if (!(await proxyStore(tx).remove(projectId, id))) throw errors.proxy_not_found({ id });
        await secrets.remove(passwordOf, id, tx);
      });
    },

    async check(projectId: string, id: string, url: string | undefined): Promise<Proxy> {
      const row = await find(projectId, id);
      if (url === undefined) {
        if (checkUrl === '')
          throw errors.invalid_input({
            detail: 'This service has no address to check proxies with (CORRAL_PROXY_CHECK_URL is off). Send a url.',
          });
        return toProxy(await checkExit(row));
      }
      const site = siteOf(url);
      const why = await refuseHost(site.hostname, Number(site.port) || (site.protocol === 'https:' ? 443 : 80));
      if (why)
        throw errors.invalid_input({ detail: `url must lead to a public address. ${why.remedy ?? why.message}` });
      const { latencyMs } = await seeSite(reach, await endpointOf(row, newId()), site);
      return { ...toProxy(row), latency_ms: latencyMs };
    },

    /** For rooms that use a proxy, or will. */
    refuseUnknown: async (projectId: string, id: string): Promise<void> => void (await named(projectId, id)),
    endpoint: async (projectId: string, id: string, session: string): Promise<Endpoint> =>
      endpointOf(await named(projectId, id), session),

    /** The proxy of a stealthy session that names none: an ISP's address, where the operator has a source of those. */
    defaultEndpoint(session: string): Endpoint | undefined {
      if (!upstreams.has('isp')) return undefined;
      return { ...upstreams.resolve('isp', { country: 'US' }, session), bypassHosts: [] };
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = await store.count(projectId);
      return count === 0 ? undefined : `${count} ${count === 1 ? 'proxy' : 'proxies'}`;
    },

    /** Begins the scheduled checks. */
    start: schedule.look,
    close: schedule.close,
  };
}

/** Called in the transaction that adds a proxy. */
async function refuseTooMany(within: ProxyStore, projectId: string) {
  await within.lock(projectId);
  if ((await within.count(projectId)) >= mostOfProject) throw errors.proxy_limit_reached({ most: mostOfProject });
}

/** The proxy to connect to. A rotating proxy keeps its exit while `session` is the same. */
async function endpoint(row: ProxyRow, session: string, upstreams: Upstreams, secrets: Secrets): Promise<Endpoint> {
  const { type, config, bypass_hosts: hosts } = row;
  if (type !== 'custom') return { ...upstreams.resolve(type, config, session), bypassHosts: hosts };
  const { host = '', port = 0, username, ca_bundle: ca } = config;
  const password = row.has_password ? await secrets.get(passwordOf, row.id) : undefined;
  return {
    protocol: row.protocol,
    host,
    port,
    login: username === undefined ? undefined : { username, password: password ?? '' },
    ca,
    bypassHosts: hosts,
  };
}

function refuseFieldsOfOthers(type: CreateProxy['type'], asked: object) {
  for (const field of Object.keys(asked)) {
    const others = types.filter((other) => fieldsOf(other).includes(field));
    if (others.length > 0 && !others.includes(type))
      throw errors.invalid_input({ detail: `config.${field} is not a field of ${type} proxies. Leave it out.` });
  }
}

/** The upstream decides. https is the default that clients send, so it is accepted for every upstream. */
function refuseOtherProtocol(type: Managed, protocol: ProxyRow['protocol'], upstreams: Upstreams) {
  const spoken = upstreams.protocolOf(type);
  if (protocol !== 'https' && protocol !== spoken)
    throw errors.invalid_input({
      detail: `protocol is ${spoken} for ${type} proxies of this service; leave it out.`,
    });
}

function siteOf(text: string): URL {
  const wrong = errors.invalid_input({
    detail: 'url must be an http or https address without a user name, such as https://example.com/.',
  });
  const url = urlOf(text);
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.username || url.password) throw wrong;
  url.hash = '';
  return url;
}

function trimmed(name: string | undefined): string | null {
  return name?.trim() || null;
}

function toProxy(row: ProxyRow): Proxy {
  const { ca_bundle, ...config } = row.config;
  const custom = row.type === 'custom';
  return {
    id: row.id,
    ...(row.name === null ? {} : { name: row.name }),
    type: row.type,
    protocol: row.protocol,
    bypass_hosts: row.bypass_hosts,
    ...(row.status === null ? {} : { status: row.status }),
    ...(row.last_checked === null ? {} : { last_checked: row.last_checked.toISOString() }),
    ...(row.ip_address === null ? {} : { ip_address: row.ip_address }),
    ...(row.latency_ms === null ? {} : { latency_ms: row.latency_ms }),
    config: custom
      ? { ...config, has_password: row.has_password, ...(ca_bundle ? { has_ca_bundle: true } : {}) }
      : config,
  };
}
