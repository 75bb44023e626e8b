import { readFile } from 'node:fs/promises';
import { errors } from '../errors.ts';
import { proxyHost } from './hosts.ts';
import { protocols, types, type Config, type ProxyType } from './schema.ts';

export type Managed = Exclude<ProxyType, 'custom'>;
const mostCompared = 1000;
type Protocol = (typeof protocols)[number];

/** The source of proxies of one type: the operator's provider, with placeholders for the values of a client. */
interface Upstream {
  protocol: Protocol;
  host: string;
  port: number;
  username?: string;
  password?: string;
  /** The available choices, where the provider has a list. */
  places: Partial<Record<'country' | 'state' | 'city', readonly string[]>>;
}

export type Upstreams = ReturnType<typeof upstreams>;

const placeholders = ['country', 'state', 'city', 'zip', 'asn', 'session'] as const;
type Placeholder = (typeof placeholders)[number];
const managed = types.filter((type): type is Managed => type !== 'custom');
const states = (
  'AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA ' +
  'RI SC SD TN TX UT VT VA WA WV WI WY'
).split(' ');
const regions = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });

/** Reads the file that CORRAL_PROXY_UPSTREAMS names; docs/proxies.md has its form. Mistakes are reported at the start. */
export async function readUpstreams(path: string): Promise<Upstreams> {
  if (path === '') return upstreams({});
  const wrong = (what: string) => new Error(`CORRAL_PROXY_UPSTREAMS names ${path}, which ${what}`);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw wrong(`cannot be read (${error.code}).`);
  });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw wrong('is not JSON.'); // the parser's own message would quote the file, which has passwords
  }
  if (!isObject(file)) throw wrong('has to be an object with one entry for each type.');
  const found: Partial<Record<Managed, Upstream>> = {};
  for (const [type, entry] of Object.entries(file)) {
    if (!managed.includes(type as Managed))
      throw wrong(`has an entry '${type}'; there are ${managed.join(', ')}, and nothing else.`);
    found[type as Managed] = upstreamOf(entry, (what) => wrong(`has an entry '${type}' ${what}`));
  }
  return upstreams(found);
}

function upstreamOf(entry: unknown, wrong: (what: string) => Error): Upstream {
  if (!isObject(entry)) throw wrong('that is not an object.');
  const known = ['protocol', 'host', 'port', 'username', 'password', 'countries', 'states', 'cities'];
  const unknown = Object.keys(entry).find((key) => !known.includes(key));
  if (unknown) throw wrong(`with a field '${unknown}'; there are ${known.join(', ')}.`);
  const { protocol = 'http', port } = entry;
  if (!protocols.includes(protocol as Protocol)) throw wrong(`whose protocol is not one of ${protocols.join(', ')}.`);
  if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 65_535)
    throw wrong('whose port is not a whole number from 1 to 65535.');
  const template = (field: string): string | undefined => {
    const text = entry[field];
    if (text === undefined) return undefined;
    if (typeof text !== 'string' || text === '') throw wrong(`whose ${field} is not a text.`);
    if (field === 'password') return text; // may contain brackets without a meaning
    const odd = [...text.matchAll(/\{([^{}]*)\}/g)].find(([, name]) => !isPlaceholder(name!.toLowerCase()));
    if (odd) throw wrong(`whose ${field} has ${odd[0]}; there are ${placeholders.map((p) => `{${p}}`).join(', ')}.`);
    if (/[{}[\]]/.test(withoutPlaces(text)))
      throw wrong(`whose ${field} has a bracket without its other half, or one within another.`);
    return text;
  };
  const list = (field: string): readonly string[] | undefined => {
    const names = entry[field];
    if (names === undefined) return undefined;
    if (!Array.isArray(names) || !names.every((name) => typeof name === 'string' && name !== ''))
      throw wrong(`whose ${field} is not a list of texts.`);
    return names.map((name: string) => name.toLowerCase());
  };
  const [host, username, password] = [template('host'), template('username'), template('password')];
  if (!host) throw wrong('without a host.');
  if (password && !username) throw wrong('with a password and no username.');
  const [country, state, city] = [list('countries'), list('states'), list('cities')];
  return {
    protocol: protocol as Protocol,
    host,
    port: port as number,
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    places: { ...(country ? { country } : {}), ...(state ? { state } : {}), ...(city ? { city } : {}) },
  };
}

export function upstreams(found: Partial<Record<Managed, Upstream>>) {
  function of(type: Managed): Upstream {
    const upstream = found[type];
    if (!upstream) throw errors.proxy_type_unavailable({ type });
    return upstream;
  }

  return {
    has: (type: Managed) => found[type] !== undefined,
    protocolOf: (type: Managed) => of(type).protocol,

    /** The requested configuration in its stored spelling. Refuses values that the upstream has no placeholder for, or does not offer. */
    check(type: Managed, asked: Config): Config {
      const upstream = of(type);
      const config = tidy(type, asked);
      for (const field of ['country', 'state', 'city', 'zip', 'asn'] as const) {
        const value = config[field];
        if (value === undefined) continue;
        // Every type defaults to US; an upstream with a single country needs no placeholder for it.
        const byDefault = field === 'country' && asked.country === undefined;
        if (!byDefault && !mentions(upstream, field)) {
          throw errors.invalid_input({
            detail: `config.${field} cannot be chosen: the ${type} upstream of this service has no place for it. Leave it out.`,
          });
        }
        const there = field === 'zip' || field === 'asn' ? undefined : upstream.places[field];
        if (!byDefault && there && !there.includes(value.toLowerCase())) throw unknownPlace(field, value, there);
      }
      return config;
    },

    /** The proxy to connect to. The exit stays the same while `session` does. */
    resolve(type: Managed, config: Config, session: string) {
      const upstream = of(type);
      const values = { ...config, session };
      const username = upstream.username && fill(upstream.username, values);
      return {
        protocol: upstream.protocol,
        host: proxyHost(fill(upstream.host, values)),
        port: upstream.port,
        login: username ? { username, password: fill(upstream.password ?? '', values) } : undefined,
      };
    },
  };
}

function tidy(type: Managed, asked: Config): Config {
  const refuse = (detail: string) => errors.invalid_input({ detail });
  const { city, zip, asn, os } = asked;
  const country = asked.country?.toUpperCase();
  const state = asked.state?.toUpperCase();
  if (os !== undefined) throw refuse('config.os is not available here. Leave it out.');
  if (city && !country) throw refuse('config.city needs config.country.');
  if ((zip || asn) && (city || state))
    throw refuse(`config.${zip ? 'zip' : 'asn'} cannot be combined with city or state.`);
  if (country && regions.of(country) === undefined) throw unknownPlace('country', country, allCountries());
  const outsideUs = country !== undefined && country !== 'US';
  if (state && outsideUs) throw refuse('config.state is for the US only.');
  if (zip && outsideUs) throw refuse('config.zip is for the US only.');
  if (state && !states.includes(state)) throw unknownPlace('state', state, states);
  const byDefault = type === 'datacenter' || type === 'isp' || state || zip ? 'US' : undefined;
  return {
    ...((country ?? byDefault) ? { country: country ?? byDefault! } : {}),
    ...(state ? { state } : {}),
    ...(city ? { city: city.toLowerCase() } : {}),
    ...(zip ? { zip } : {}),
    ...(asn ? { asn: asn.replace(/^as/i, '') } : {}),
  };
}

/** The message lists up to ten similar names. */
function unknownPlace(field: string, value: string, there: readonly string[]) {
  const asked = value.toLowerCase().slice(0, 20);
  const nearest = comparable(asked, there)
    .map((name) => ({ name, distance: distance(asked, name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance || a.name.localeCompare(b.name))
    .slice(0, 10)
    .map(({ name }) => name);
  return errors.invalid_input({
    detail: `config.${field}: '${value}' is not known here. Near: ${nearest.join(', ')}.`,
  });
}

/** A provider has tens of thousands of cities, and to compare a name with 10,000 of them takes 0.5 s. */
function comparable(asked: string, there: readonly string[]): readonly string[] {
  if (there.length <= mostCompared) return there;
  const alike = there.filter((name) => name[0] === asked[0]);
  return (alike.length > 0 ? alike : there).slice(0, mostCompared);
}

function allCountries(): string[] {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'.split('');
  return letters.flatMap((a) => letters.map((b) => a + b)).filter((code) => regions.of(code) !== undefined);
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of a.split('').entries()) {
    let diagonal = i;
    row = row.reduce<number[]>((next, above, j) => {
      next.push(j === 0 ? i + 1 : Math.min(above + 1, next[j - 1]! + 1, diagonal + (letter === b[j - 1] ? 0 : 1)));
      diagonal = above;
      return next;
    }, []);
  }
  return row[b.length]!;
}

/**
 * `{country}` is the chosen value in lower case, `{COUNTRY}` in upper case, empty when none was chosen. A part in square
 * brackets is left out when one of its placeholders is empty: `user-cc-{country}[-city-{city}]`.
 */
function fill(template: string, values: Partial<Record<Placeholder, string>>): string {
  const valueOf = (name: string) => {
    const value = values[name.toLowerCase() as Placeholder] ?? '';
    return name === name.toUpperCase() ? value.toUpperCase() : value.toLowerCase();
  };
  const put = (text: string) => text.replaceAll(places, (_, name: string) => valueOf(name));
  return put(
    template.replaceAll(/\[([^[\]]*)\]/g, (whole, part: string) => {
      const names = [...part.matchAll(places)].map(([, name]) => name!);
      if (names.length === 0) return whole;
      return names.every((name) => valueOf(name) !== '') ? put(part) : '';
    }),
  );
}

// not linear: the placeholders are above, and none has a repetition
const places = new RegExp(`\\{(${placeholders.join('|')})\\}`, 'gi');

const withoutPlaces = (text: string) => text.replaceAll(/\{\w+\}/g, '').replaceAll(/\[[^[\]{}]*\]/g, '');
const mentions = ({ host, username = '', password = '' }: Upstream, name: Placeholder) =>
  `${host} ${username} ${password}`.toLowerCase().includes(`{${name}}`);
const isPlaceholder = (name: string): name is Placeholder => (placeholders as readonly string[]).includes(name);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
