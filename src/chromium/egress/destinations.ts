import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { EgressError } from './refusals.ts';
import { systemResolver, type Resolve } from './resolver.ts';

/** As the client asked for it, in canonical form: a lower-case name, or an address without brackets. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** A place the browser may reach, with the very addresses that were checked. Nobody resolves the name again. */
export interface Destination extends Target {
  readonly addresses: readonly [string, ...string[]];
}

export interface Destinations {
  /** Resolves to where to connect, or throws an `EgressError` that says why not. */
  check(host: string, port: number): Promise<Destination>;
  /**
   * The same for a way out that resolves names at its far end: judges what is written, an address or a name, and looks
   * nothing up. What a name means there is not what it means here, and asking here would tell our resolver of it.
   */
  checkUnresolved(host: string, port: number): Target;
}

/** Where the service itself can be met: what it listens on, and the host and port of its public URL. */
export interface ServiceAddress {
  readonly host: string;
  readonly port: number;
}

/** One entry of `CORRAL_ALLOW_PRIVATE_HOSTS`. */
export interface AllowEntry {
  readonly host: { name: string } | { suffix: string } | { cidr: [Address, number] };
  readonly port: number | undefined;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Decides which destinations a browser may reach: the public internet, and what the operator listed.
 *
 * A name is resolved once, every answer is checked, and the addresses that passed are the ones to connect to: a name
 * that changes its mind between the check and the connection has nothing to gain. One bad answer among good ones
 * refuses the whole, since that is what such an attack looks like. What is not known to be public is refused.
 */
export function destinations({
  allow = [],
  service = [],
  resolve = systemResolver(),
  ownAddresses = interfaceAddresses,
}: {
  allow?: readonly AllowEntry[];
  /** Read at every check, so a live set may grow and shrink. */
  service?: Iterable<ServiceAddress>;
  resolve?: Resolve;
  ownAddresses?: () => Iterable<string>;
}): Destinations {
  /** Everything that can be said without looking a name up. */
  function look(host: string, port: number) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) {
      throw new EgressError('bad_request', `${quoted(String(port))} is not a port; ports go from 1 to 65535.`);
    }
    const target = canonicalHost(host);
    const entries = allow.filter((entry) => entry.port === undefined || entry.port === port);
    const byName = target.address ? [] : entries.filter((entry) => namesHost(entry, target.name));
    const local = new Set([...ownAddresses()].map((address) => canonicalAddress(address)?.toNormalizedString()));

    const judge = (address: Address): string | undefined => {
      const real = embedded(address);
      const listed = [...byName, ...entries.filter((entry) => coversAddress(entry, address, real))];
      const ours = isThisHost(real, local);
      // Whoever allows 127.0.0.0/8 means the things beside the service, hardly the service: that takes naming its port.
      if (isService(service, real, port, ours)) {
        return listed.some((entry) => entry.port === port) ? undefined : 'the service that runs this browser';
      }
      if (listed.length > 0) return undefined;
      return kindOfRefused(real) ?? (ours ? 'an address of the machine that runs this browser' : undefined);
    };
    const refuse = (kind: string, facts: object) => {
      const shown = target.address ? `[${target.name}]`.replace(/^\[([\d.]+)\]$/, '$1') : target.name;
      return new EgressError(
        'destination_refused',
        `The browser asked for ${shown}:${port}, which is ${kind}. Browsers of this service may not go there.`,
        {
          remedy: `If they should, whoever runs the service can start it with \`CORRAL_ALLOW_PRIVATE_HOSTS=${shown}:${port}\`.`,
          facts,
        },
      );
    };
    /** The loopback names are ours to answer and never leave the machine, so here a mixed answer is no attack. */
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
    // Nobody browses a mail server; whoever connects to one from a browser wants to send mail in somebody's name.
    const listed = (entry: AllowEntry) =>
      namesHost(entry, target.name) || (target.address && coversAddress(entry, target.address));
    if (port === 25 && !entries.some((entry) => entry.port === port && listed(entry)))
      throw refuse('the port of mail servers', {});
    for (const own of service) {
      if (target.address || own.port !== port || own.host.toLowerCase() !== target.name) continue;
      if (!byName.some((entry) => entry.port === port)) throw refuse('the service that runs this browser', {});
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

      const answers = (await resolve(target.name, { trusted: byName.length > 0 })).map((text) => {
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
      'Names have letters, digits, - and dots (write ä as xn--…); * stands only at the front, as in *.example.',
    );
  }
  return { host: host.startsWith('*.') ? { suffix: `.${name}` } : { name }, port };
}

function parseCidr(text: string): [Address, number] | undefined {
  const [base = '', bits, ...more] = text.split('/');
  // Only whole spellings: ipaddr.js would read 127.1 too, and an operator who writes 10.1 may mean something else.
  const address = base.includes(':') || /^\d+\.\d+\.\d+\.\d+$/.test(base) ? canonicalAddress(base) : undefined;
  if (!address || more.length > 0) return undefined;
  const width = address.kind() === 'ipv4' ? 32 : 128;
  if (bits === undefined) return [address, width];
  // ::ffff:10.0.0.0/104 was turned into 10.0.0.0 above; its prefix counts from the same place.
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
 * The host in the spelling that Chromium would arrive at: the URL parser knows every odd way to write an IPv4 address
 * (2130706433, 0x7f.1, 0177.0.0.1, 127.1), and so do many resolvers, which is why none of them ever reaches one.
 */
function canonicalHost(host: string): { name: string; address?: Address } {
  const wrong = () =>
    new EgressError('bad_request', `${quoted(host)} is not a host name or an address.`, {
      remedy:
        'Names have letters, digits, - and dots; international names go as xn--…; IPv6 addresses stand in brackets.',
    });
  // Anything else could mean one thing to this check and another to whoever resolves it.
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

/** Undefined when it is no address. An IPv4 address in IPv6 clothes (::ffff:1.2.3.4) is that IPv4 address. */
function canonicalAddress(text: string): Address | undefined {
  return ipaddr.isValid(text) ? ipaddr.process(text) : undefined;
}

/** What is reached in the end: NAT64 (RFC 6052) carries an IPv4 address in its last 32 bits. */
function embedded(address: Address): Address {
  if (!isV6(address) || !address.match(nat64)) return address;
  return ipaddr.fromByteArray(address.toByteArray().slice(12));
}

const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');
/** Azure's platform endpoint: a public address on paper, the virtual machine's own host in fact. */
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
  // Tunnels of old that hide an IPv4 address. Nothing on the internet lives only there, so none is unpacked.
  '6to4': 'an address that tunnels to another',
  teredo: 'an address that tunnels to another',
  rfc6145: 'an address that tunnels to another',
  rfc6052: 'an address that tunnels to another',
};

/** What a refused address is, in words; undefined for the public internet. Unknown ranges count as refused. */
function kindOfRefused(address: Address): string | undefined {
  const range = address.range();
  if (range !== 'unicast') return kinds[range] ?? 'a reserved address';
  // Outside 2000::/3 nothing is assigned; ::1.2.3.4 (IPv4-compatible) is among it.
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

/** A port of the service on any address of this machine, or the address of a public URL that leads back to it. */
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
