import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { EgressError } from './refusals.ts';
import { systemResolver, type Resolve } from './resolver.ts';

/** The client's target in canonical form: a lower-case name, or an address without brackets. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** A target the browser may reach, with the addresses that were checked. The name is not resolved again. */
export interface Destination extends Target {
  readonly addresses: readonly [string, ...string[]];
}

export interface Destinations {
  /** Resolves with the destination to connect to, or throws an `EgressError` with the reason. */
  check(host: string, port: number): Promise<Destination>;
  /**
   * The same for a proxy that resolves names itself: checks the address or name as written, without
   * a lookup. The name may mean something else at the proxy, and a lookup would reveal it to this machine's resolver.
   */
  checkUnresolved(host: string, port: number): Target;
}

/** Where the service itself can be reached: the addresses it listens on, and the host and port of its public URL. */
export interface ServiceAddress {
  readonly host: string;
  readonly port: number;
}

/** One entry of `CORRAL_ALLOW_PRIVATE_HOSTS`. */
interface AllowEntry {
  readonly host: { name: string } | { suffix: string } | { cidr: [Address, number] };
  readonly port: number | undefined;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** How long the addresses of this machine are remembered. Reading them takes 0.4 ms, and a session can ask for any number of checks. */
const ADDRESSES_MS = 1000;

/** So many addresses of a name are checked and connected to, of IPv4 and of IPv6. */
const MOST_OF_FAMILY = 32;

const OWN_SERVICE = 'the service that runs this browser';

/**
 * Decides which destinations a browser may reach: the public internet, and entries of the operator.
 *
 * A name is resolved once, its answers are checked, and only checked addresses are connected to: changing a name's
 * answer between the check and the connection (DNS rebinding) has no effect. One bad answer among good ones
 * refuses the name, since such an attack looks like that. Addresses not known to be public are refused.
 */
export function destinations({
  allow = [],
  service = [],
  resolve = systemResolver(),
  ownAddresses = interfaceAddresses,
}: {
  allow?: readonly AllowEntry[];
  /** Read at every check, so the set may change. */
  service?: Iterable<ServiceAddress>;
  resolve?: Resolve;
  /** Read at most once a second. */
  ownAddresses?: () => Iterable<string>;
}): Destinations {
  let local = new Set<string | undefined>();
  let readAt = -Infinity;
  function localAddresses() {
    const now = performance.now();
    if (now - readAt < ADDRESSES_MS) return local;
    readAt = now;
    return (local = new Set([...ownAddresses()].map((address) => canonicalAddress(address)?.toNormalizedString())));
  }

  /** All checks that need no lookup. */
  function look(host: string, port: number) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new EgressError('bad_request', `${quoted(String(port))} is not a port; ports go from 1 to 65535.`);
    }
    const target = canonicalHost(host);
    const entries = allow.filter((entry) => entry.port === undefined || entry.port === port);
    const byName = target.address ? [] : entries.filter((entry) => namesHost(entry, target.name));
    const local = localAddresses();

    const judge = (address: Address): string | undefined => {
      const real = embedded(address);
      const listed = [...byName, ...entries.filter((entry) => coversAddress(entry, address, real))];
      const isLocal = isThisHost(real, local);
      // 127.0.0.0/8 allows other programs, not the service itself: that requires an entry with its port.
      if (isService(service, real, port, isLocal)) {
        return listed.some((entry) => entry.port === port) ? undefined : OWN_SERVICE;
      }
      if (listed.length > 0) return undefined;
      return kindOfRefused(real) ?? (isLocal ? 'an address of the machine that runs this browser' : undefined);
    };
    const refuse = (kind: string, facts: object) => {
      const shown = target.address ? `[${target.name}]`.replace(/^\[([\d.]+)\]$/, '$1') : target.name;
      return new EgressError(
        'destination_refused',
        `The browser asked for ${shown}:${port}, which is ${kind}. Browsers of this service may not go there.`,
        {
          remedy: `If they should, the operator of the service can start it with \`CORRAL_ALLOW_PRIVATE_HOSTS=${shown}:${port}\`.`,
          facts,
          ownService: kind === OWN_SERVICE,
        },
      );
    };
    /** Loopback names are resolved here and never by DNS, so a mixed answer is not an attack. */
    const loopback = () => {
      const both = ['127.0.0.1', '::1'].map((text) => ipaddr.parse(text));
      const [first, ...rest] = both.filter((address) => judge(address) === undefined).map(String);
      if (!first) throw refuse(judge(both[0]!)!, {});
      return [first, ...rest] as const;
    };

    if (target.address) {
      const kind = judge(target.address);
      if (kind) throw refuse(kind, {});
    }
    // Browsing does not need port 25. A browser that connects to a mail server is most likely used to send spam.
    const listed = (entry: AllowEntry) =>
      namesHost(entry, target.name) || (target.address && coversAddress(entry, target.address));
    if (port === 25 && !entries.some((entry) => entry.port === port && listed(entry)))
      throw refuse('the port of mail servers', {});
    for (const own of service) {
      if (target.address || own.port !== port || own.host.toLowerCase() !== target.name) continue;
      if (!byName.some((entry) => entry.port === port)) throw refuse(OWN_SERVICE, {});
    }
    return { target, byName, judge, refuse, loopback };
  }

  return {
    checkUnresolved(host, port) {
      const { target, loopback } = look(host, port);
      if (isLocalhost(target.name)) loopback();
      return { host: target.name, port };
    },

    async check(host, port) {
      const { target, byName, judge, refuse, loopback } = look(host, port);
      if (target.address) return { host: target.name, port, addresses: [target.address.toString()] };
      if (isLocalhost(target.name)) return { host: target.name, port, addresses: [...loopback()] };

      const found = await resolve(target.name, { trusted: byName.length > 0 });
      const answers = firstOfEachFamily(found).map((text) => {
        const address = canonicalAddress(text);
        if (!address) throw new EgressError('dns_failed', `The answer for ${target.name} is not an address.`);
        return address;
      });
      for (const address of answers) {
        const kind = judge(address);
        if (kind) throw refuse(kind, { address: address.toString() });
      }
      const [first, ...rest] = answers.map(String);
      if (!first) throw new EgressError('dns_failed', `The name ${target.name} has no address.`);
      return { host: target.name, port, addresses: [first, ...rest] };
    },
  };
}

/** A name server can answer with thousands of addresses. Only those that are checked are connected to. */
function firstOfEachFamily(addresses: readonly string[]): string[] {
  let [v4, v6] = [0, 0];
  return addresses.filter((address) => (address.includes(':') ? v6++ : v4++) < MOST_OF_FAMILY);
}

/**
 * Reads `CORRAL_ALLOW_PRIVATE_HOSTS`: names, `*.suffix`, addresses and CIDRs, each with `:port` or without, separated by
 * commas or blanks. An IPv6 entry needs brackets only where a port follows: `[fd00::1]:8080`, `[fd00::/8]:8080`.
 */
export function parseAllowList(text: string): AllowEntry[] {
  return text
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(parseAllowEntry);
}

function parseAllowEntry(entry: string): AllowEntry {
  const wrong = (what: string, remedy: string) =>
    new Error(`CORRAL_ALLOW_PRIVATE_HOSTS: the entry ${quoted(entry)} ${what}. ${remedy}`);
  if (entry.includes('://'))
    throw wrong('is a URL', 'Write the host alone, with :port if you like: intranet.example:8080.');
  if (entry === '*' || entry.startsWith('*:')) {
    throw wrong('would allow everything', 'List the hosts, or write 0.0.0.0/0,::/0 if everything is what you mean.');
  }

  const bare = parseCidr(entry.replace(/^\[([^\]]*)\]$/, '$1'));
  if (bare) return { host: { cidr: bare }, port: undefined };

  const [, host = '', portText] = /^(\[[^\]]*\]|[^:]*)(?::([^:]*))?$/.exec(entry) ?? [];
  if (host === '')
    throw wrong('cannot be read', 'Write a name, *.suffix, an address or a CIDR; IPv6 with a port as [fd00::1]:8080.');
  const port = portText === undefined ? undefined : Number(portText);
  if (port !== undefined && !(/^\d{1,5}$/.test(portText!) && port >= 1 && port <= 65_535)) {
    throw wrong(`has the port ${quoted(portText!)}`, 'Ports go from 1 to 65535; leave it out to allow every port.');
  }

  const cidr = parseCidr(host.replace(/^\[(.*)\]$/, '$1'));
  if (cidr) return { host: { cidr }, port };
  if (host.includes('/'))
    throw wrong('is not a CIDR', 'Write an address and a prefix length, like 10.0.0.0/8 or fd00::/8.');
  if (/^[\d.]+$/.test(host) || host.startsWith('[')) {
    throw wrong(
      'is not an address',
      'Write all four parts of an IPv4 address, like 192.168.0.7, or a whole IPv6 address.',
    );
  }
  const name = host.replace(/^\*\./, '').replace(/\.$/, '').toLowerCase();
  if (!isName(name)) {
    throw wrong(
      'is not a host name',
      'Names have letters, digits, - and dots (write ä as xn--…); * is only allowed at the front, as in *.example.',
    );
  }
  return { host: host.startsWith('*.') ? { suffix: `.${name}` } : { name }, port };
}

function parseCidr(text: string): [Address, number] | undefined {
  const [base = '', bits, ...more] = text.split('/');
  // Only complete addresses: ipaddr.js also accepts 127.1, but 10.1 may be meant as something else.
  const address = base.includes(':') || /^\d+\.\d+\.\d+\.\d+$/.test(base) ? canonicalAddress(base) : undefined;
  if (!address || more.length > 0) return undefined;
  const width = address.kind() === 'ipv4' ? 32 : 128;
  if (bits === undefined) return [address, width];
  // ::ffff:10.0.0.0/104 was turned into 10.0.0.0 above, so 96 bits are subtracted from its prefix.
  const prefix = Number(bits) - (width === 32 && base.includes(':') ? 96 : 0);
  return /^\d{1,3}$/.test(bits) && prefix >= 0 && prefix <= width ? [address, prefix] : undefined;
}

function namesHost({ host }: AllowEntry, name: string): boolean {
  if ('name' in host) return host.name === name;
  return 'suffix' in host && name.endsWith(host.suffix);
}

function coversAddress({ host }: AllowEntry, ...addresses: Address[]): boolean {
  if (!('cidr' in host)) return false;
  const [base, bits] = host.cidr;
  return addresses.some((address) => address.kind() === base.kind() && address.match(base, bits));
}

/**
 * The host in Chromium's canonical spelling. The URL parser converts every unusual spelling of an IPv4 address
 * (2130706433, 0x7f.1, 0177.0.0.1, 127.1). Many resolvers accept these too, so none may reach a resolver.
 */
function canonicalHost(host: string): { name: string; address?: Address } {
  const wrong = () =>
    new EgressError('bad_request', `${quoted(host)} is not a host name or an address.`, {
      remedy:
        'Names have letters, digits, - and dots; international names are written as xn--…, IPv6 addresses in brackets.',
    });
  // Other characters could mean one thing to this check and another to the resolver.
  if (host.length > 255 || !/^(?:[\w.-]+|\[[\da-f:.]+\])$/i.test(host)) throw wrong();
  let canonical: string;
  try {
    canonical = new URL(`http://${host}/`).hostname.replace(/^\[(.*)\]$/, '$1');
  } catch {
    throw wrong();
  }
  const address = canonicalAddress(canonical);
  if (address) return { name: address.toString(), address };
  const name = canonical.replace(/\.$/, '');
  if (!isName(name)) throw wrong();
  return { name };
}

function isName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z\d_-]{1,63}$/.test(label));
}

function isLocalhost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** Undefined when it is not an address. An IPv4-mapped address (::ffff:1.2.3.4) becomes the IPv4 address. */
function canonicalAddress(text: string): Address | undefined {
  return ipaddr.isValid(text) ? ipaddr.process(text) : undefined;
}

/** The address that is finally reached: NAT64 (RFC 6052) carries an IPv4 address in its last 32 bits. */
function embedded(address: Address): Address {
  if (!isV6(address) || !address.match(nat64)) return address;
  return ipaddr.fromByteArray(address.toByteArray().slice(12));
}

const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');
/** Azure's platform endpoint: formally a public address, but it is served by the virtual machine's own host. */
const wireServer = ipaddr.IPv4.parseCIDR('168.63.129.16/32');

const kinds: Record<string, string> = {
  loopback: 'a loopback address',
  private: 'a private address',
  uniqueLocal: 'a private address',
  deprecatedSiteLocal: 'a private address',
  carrierGradeNat: 'a carrier-grade NAT address',
  linkLocal: 'a link-local address',
  multicast: 'a multicast address',
  broadcast: 'a broadcast address',
  unspecified: 'an unspecified address',
  // Obsolete tunnels that contain an IPv4 address. No public server is reachable only there, so all are refused.
  '6to4': 'an address that tunnels to another',
  teredo: 'an address that tunnels to another',
  rfc6145: 'an address that tunnels to another',
  rfc6052: 'an address that tunnels to another',
};

/** The description of a refused address; undefined for the public internet. Unknown ranges count as refused. */
function kindOfRefused(address: Address): string | undefined {
  const range = address.range();
  if (range !== 'unicast') return kinds[range] ?? 'a reserved address';
  // Nothing outside 2000::/3 is assigned. This covers ::1.2.3.4 (IPv4-compatible) too.
  if (isV6(address)) return address.zoneId || !address.match(globalUnicast) ? 'a reserved address' : undefined;
  return address.match(wireServer) ? 'a cloud metadata address' : undefined;
}

function isV6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === 'ipv6';
}

function isThisHost(address: Address, local: ReadonlySet<string | undefined>): boolean {
  const range = address.range();
  return range === 'loopback' || range === 'unspecified' || local.has(address.toNormalizedString());
}

/** A port of the service on any address of this machine, or the address of a public URL of the service. */
function isService(service: Iterable<ServiceAddress>, address: Address, port: number, thisHost: boolean): boolean {
  for (const own of service) {
    if (own.port !== port) continue;
    const ownAddress = canonicalAddress(own.host.replace(/^\[(.*)\]$/, '$1'));
    if (thisHost || ownAddress?.toNormalizedString() === address.toNormalizedString()) return true;
  }
  return false;
}

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

function quoted(text: string): string {
  return `'${text.length > 80 ? `${text.slice(0, 80)}…` : text}'`;
}
