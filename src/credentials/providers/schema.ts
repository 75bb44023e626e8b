import { Type, type Static } from 'typebox';
import { FreeName, named, nullable, oneOf, Paging, Timestamp } from '../../api/schema.ts';

const providerTypes = ['passwordmanager', 'onepassword', 'vault', 'http'] as const;

const ProviderType = oneOf(providerTypes, {
  description:
    'passwordmanager (or onepassword): a Connect server when server_url is sent, a service account otherwise. vault: the KV engine, version 2, of HashiCorp Vault or OpenBao. http: a store with three HTTP calls (docs/credentials.md). The last two are Corral extensions.',
});
const Token = Type.String({
  minLength: 1,
  maxLength: 16_384,
  pattern: '^[\\x21-\\x7e]+$',
  description: 'The token for the store. Encrypted, and never returned.',
});
const CacheTtl = {
  minimum: 0,
  maximum: 86_400,
  description: 'The time for which lists of items are cached; 0 for no cache.',
};
const Priority = Type.Integer({
  minimum: -1_000_000,
  maximum: 1_000_000,
  description: 'Providers with a lower number are asked first; among equals the older one.',
});
const ServerUrl = Type.String({
  maxLength: 2048,
  description: 'The address of the store, http or https. Corral extension.',
});
const CaBundle = Type.String({
  maxLength: 64 * 1024,
  description: 'PEM certificates to verify the store, instead of those of the system. Corral extension.',
});
const Namespace = Type.String({
  maxLength: 255,
  pattern: '^[\\x21-\\x7e]*$',
  description: 'Of type vault: the namespace. Corral extension.',
});
const Mounts = Type.Array(Type.String({ minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' }), {
  maxItems: 100,
  description:
    'Of type vault: the mounts to use; when left out, every mount that the token can list. Corral extension.',
});

const Projects = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
  maxItems: 1000,
  description: 'The projects that may use it, by id or name; ["*"] for all. Corral extension.',
});
const Fields = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
  maxItems: 100,
  description:
    'Labels of fields that logins may type besides user name, mail address, password and one-time code. Corral extension.',
});

export const CreateProvider = named(
  'CreateCredentialProviderRequest',
  Type.Object({
    provider_type: ProviderType,
    name: { ...FreeName, description: 'Unique in the organisation; case and accents do not count.' } as typeof FreeName,
    token: Token,
    cache_ttl_seconds: Type.Optional(Type.Integer({ ...CacheTtl, default: 300 })),
    priority: Type.Optional({ ...Priority, default: 0 } as typeof Priority),
    enabled: Type.Optional(Type.Boolean({ default: true })),
    server_url: Type.Optional(ServerUrl),
    ca_bundle: Type.Optional(CaBundle),
    namespace: Type.Optional(Namespace),
    mounts: Type.Optional(Mounts),
    projects: Type.Optional({
      ...Projects,
      description:
        'The projects that may use it, by id or name; ["*"] for all. Left out: the project of the request. Corral extension.',
    } as typeof Projects),
    fields: Type.Optional(Fields),
  }),
);

export const UpdateProvider = named(
  'UpdateCredentialProviderRequest',
  Type.Object({
    name: Type.Optional(FreeName),
    enabled: Type.Optional(Type.Boolean()),
    priority: Type.Optional(Priority),
    token: Type.Optional(Token),
    cache_ttl_seconds: Type.Optional(Type.Integer(CacheTtl)),
    server_url: Type.Optional({
      ...ServerUrl,
      description:
        'Only together with token, because the stored token must not be sent to another store. Corral extension.',
    } as typeof ServerUrl),
    ca_bundle: Type.Optional({
      ...CaBundle,
      description: 'Only together with token. Empty: removes it. Corral extension.',
    } as typeof CaBundle),
    namespace: Type.Optional(Namespace),
    mounts: Type.Optional(Mounts),
    projects: Type.Optional(Projects),
    fields: Type.Optional(Fields),
  }),
);

export const Provider = named(
  'CredentialProvider',
  Type.Object({
    id: Type.String(),
    provider_type: ProviderType,
    name: Type.String(),
    enabled: Type.Boolean({ description: 'Only enabled providers are asked for credentials.' }),
    priority: Type.Integer(),
    created_at: Timestamp,
    updated_at: Timestamp,
    cache_ttl_seconds: Type.Optional(Type.Integer()),
    server_url: Type.Optional(nullable(Type.String())),
    has_ca_bundle: Type.Optional(Type.Boolean()),
    namespace: Type.Optional(Type.String()),
    mounts: Type.Optional(Type.Array(Type.String())),
    projects: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'The ids of the projects that may use it; ["*"] for all. A key of one project sees its own id only.',
      }),
    ),
    fields: Type.Optional(Type.Array(Type.String())),
  }),
);

export const ProviderList = Type.Object({
  ...Paging,
  query: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Case-insensitive part of the name, or a whole id.' }),
  ),
});

const Vault = Type.Object({ id: Type.String(), name: Type.String() });

export const ProviderTest = named(
  'CredentialProviderTestResult',
  Type.Object({
    success: Type.Boolean(),
    vaults: Type.Array(Vault, { description: 'The vaults that the token can read.' }),
    error: Type.Optional(Type.String({ description: 'The reason of the failure.' })),
  }),
);

export const ProviderItems = Type.Object({
  items: Type.Array(
    named(
      'CredentialProviderItem',
      Type.Object({
        id: Type.String(),
        title: Type.String(),
        vault_id: Type.String(),
        vault_name: Type.String(),
        path: Type.String({ description: 'The name of the item in a credential reference.' }),
        urls: Type.Optional(Type.Array(Type.String())),
      }),
    ),
  ),
});

export type ProviderType = (typeof providerTypes)[number];
export type CreateProvider = Static<typeof CreateProvider>;
export type UpdateProvider = Static<typeof UpdateProvider>;
export type Provider = Static<typeof Provider>;
export type ProviderList = Static<typeof ProviderList>;
export type ProviderTest = Static<typeof ProviderTest>;
