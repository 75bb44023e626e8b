import { Type, type Static } from 'typebox';
import { FreeName, named, oneOf, Paging, Timestamp } from '../api/schema.ts';

export const types = ['datacenter', 'isp', 'residential', 'mobile', 'custom'] as const;
export const protocols = ['http', 'https', 'socks5'] as const;

const TypeField = oneOf(types, {
  description: 'custom: your own, by host and port. The others come from upstreams that the operator has configured.',
});
const Protocol = oneOf(protocols, {
  default: 'https',
  description:
    'The protocol to the proxy: plain HTTP, TLS, or SOCKS5. For types other than custom it is the protocol of the upstream; leave it out.',
});

const Country = Type.String({ pattern: '^[A-Za-z]{2}$', description: 'ISO 3166 code of two letters.' });
const State = Type.String({ pattern: '^[A-Za-z]{2}$', description: 'Code of a state of the US, of two letters.' });
const City = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[A-Za-z0-9_.-]+$',
  description: 'Without spaces, such as `sanfrancisco`. Needs country.',
});

const Datacenter = named('DatacenterProxyConfig', Type.Object({ country: Type.Optional(Country) }));
const Isp = named('IspProxyConfig', Type.Object({ country: Type.Optional(Country) }));
const Residential = named(
  'ResidentialProxyConfig',
  Type.Object({
    country: Type.Optional(Country),
    state: Type.Optional(State),
    city: Type.Optional(City),
    zip: Type.Optional(
      Type.String({ pattern: '^\\d{5}$', description: 'Of the US. Not together with city or state.' }),
    ),
    asn: Type.Optional(
      Type.String({
        pattern: '^([Aa][Ss])?\\d{1,10}$',
        description: 'Autonomous system number. Not with city or state.',
      }),
    ),
    os: Type.Optional(oneOf(['windows', 'macos', 'android'], { deprecated: true })),
  }),
);
const Mobile = named(
  'MobileProxyConfig',
  Type.Object({ country: Type.Optional(Country), state: Type.Optional(State), city: Type.Optional(City) }),
);

const custom = {
  host: Type.String({ minLength: 1, maxLength: 253, description: 'Name or address.' }),
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  username: Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f:]*$' })),
};
const CustomRequest = named(
  'CreateCustomProxyConfig',
  Type.Object({
    ...custom,
    password: Type.Optional(
      Type.String({
        minLength: 5,
        maxLength: 255,
        pattern: '^[^\\u0000-\\u001f\\u007f]*$',
        description: 'Encrypted, and never returned.',
      }),
    ),
    ca_bundle: Type.Optional(
      Type.String({
        maxLength: 64 * 1024,
        description: 'PEM certificates to verify an https proxy, instead of those of the system.',
      }),
    ),
  }),
);
const Custom = named(
  'CustomProxyConfig',
  Type.Object({ ...custom, has_password: Type.Optional(Type.Boolean()), has_ca_bundle: Type.Optional(Type.Boolean()) }),
);

// The strictest first: the serialiser takes the first shape that fits.
const ConfigRequest = Type.Unsafe<ConfigRequest>({ anyOf: [CustomRequest, Residential, Mobile, Isp, Datacenter] });
const Config = Type.Unsafe<Config>({ anyOf: [Custom, Residential, Mobile, Isp, Datacenter] });

const shapes = { datacenter: Datacenter, isp: Isp, residential: Residential, mobile: Mobile, custom: CustomRequest };

/** The fields of a type's config. */
export const fieldsOf = (type: ProxyType): string[] => Object.keys(shapes[type].properties);

/** `type` decides the shape of `config`. */
const byType = types.map((type) => ({
  if: { properties: { type: { const: type } }, required: ['type'] },
  // oxlint-disable-next-line unicorn/no-thenable -- `then` is JSON Schema's keyword, and a schema is never awaited
  then: { properties: { config: shapes[type] }, ...(type === 'custom' ? { required: ['config'] } : {}) },
}));

export type ConfigRequest = Partial<Static<typeof Residential> & Static<typeof CustomRequest>>;
export type Config = Partial<Static<typeof Residential> & Static<typeof Custom>>;

const bypass = {
  description:
    'Hosts that are reached without the proxy: whole names, or `*.` and a name for all below. Case does not count.',
};

export const CreateProxy = named(
  'ProxyCreateRequest',
  Type.Object(
    {
      type: TypeField,
      name: Type.Optional(Type.String({ maxLength: 255, description: 'Chosen freely; it need not be unique.' })),
      protocol: Type.Optional(Protocol),
      bypass_hosts: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { maxItems: 100, ...bypass }),
      ),
      config: Type.Optional(ConfigRequest),
    },
    { allOf: byType },
  ),
);

export const UpdateProxy = named('ProxyUpdateRequest', Type.Object({ name: FreeName }));

export const CheckProxy = named(
  'ProxyCheckRequest',
  Type.Object({
    url: Type.Optional(
      Type.String({
        maxLength: 2048,
        description:
          'The public http or https address to request through the proxy. Such a check does not change the proxy’s status, since the site may be the cause of a failure.',
      }),
    ),
  }),
);

export const Proxy = named(
  'Proxy',
  Type.Object({
    id: Type.Optional(Type.String()),
    name: Type.Optional(Type.String()),
    type: TypeField,
    protocol: Type.Optional(Protocol),
    bypass_hosts: Type.Optional(Type.Array(Type.String(), bypass)),
    status: Type.Optional(oneOf(['available', 'unavailable'], { description: 'The result of the last check.' })),
    last_checked: Type.Optional(Timestamp),
    ip_address: Type.Optional(Type.String({ description: 'Its public address in the last check.' })),
    latency_ms: Type.Optional(
      Type.Integer({
        description: 'The duration of the check. In the answer to a check with url: of that check. Corral extension.',
      }),
    ),
    config: Type.Optional(Config),
  }),
);

export const ProxyList = Type.Object({
  ...Paging,
  query: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Case-insensitive part of name, host or IP address, or a whole id.' }),
  ),
  name: Type.Optional(Type.String({ maxLength: 1024, description: 'The whole name; case and accents do not count.' })),
});

export type ProxyType = (typeof types)[number];
export type CreateProxy = Static<typeof CreateProxy>;
export type Proxy = Static<typeof Proxy>;
export type ProxyList = Static<typeof ProxyList>;
