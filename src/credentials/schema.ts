import { Type, type Static } from 'typebox';
import { FreeName, named, nullable, Paging, Timestamp } from '../api/schema.ts';
import { CodeSource, CodeSourceInput } from './codes/schema.ts';

const printable = '^[^\\u0000-\\u001f\\u007f]+$';
const Domain = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'The site it is for, such as `shop.example`. Of a whole address, the host is kept.',
});
const Key = Type.String({ minLength: 1, maxLength: 255, pattern: printable });
const Values = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: 100,
  propertyNames: Key,
  additionalProperties: { type: 'string', maxLength: 10_000 },
  description: 'The values for login pages, by name: username, password, …. Encrypted, and never returned.',
});
const TotpSecret = (remark: string) =>
  Type.String({
    maxLength: 4096,
    description: `Base32, blanks and case do not count; or an otpauth:// URI. Encrypted, and never returned.${remark}`,
  });
const SsoProvider = Type.String({
  maxLength: 255,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description: 'The identity provider whose button is clicked first: google, github, microsoft, …',
});

const CodeSources = (remark: string) =>
  Type.Array(CodeSourceInput, {
    maxItems: 5,
    description: `Where the codes of mails and text messages come from: IMAP mailboxes, and addresses that programs post codes to.${remark}`,
  });

export const CreateCredential = named(
  'CreateCredentialRequest',
  Type.Object({
    name: { ...FreeName, description: 'Unique in the project; case and accents do not count.' } as typeof FreeName,
    domain: Domain,
    values: Values,
    totp_secret: Type.Optional(TotpSecret('')),
    sso_provider: Type.Optional(SsoProvider),
    one_time_code_sources: Type.Optional(CodeSources('')),
  }),
);

export const UpdateCredential = named(
  'UpdateCredentialRequest',
  Type.Object({
    name: Type.Optional(FreeName),
    values: Type.Optional(Values),
    remove_value_keys: Type.Optional(
      Type.Array(Type.String({ maxLength: 255 }), {
        maxItems: 100,
        description: 'Removed before `values` are merged: a key in both keeps its new value.',
      }),
    ),
    totp_secret: Type.Optional(TotpSecret(' Empty: removes it.')),
    sso_provider: Type.Optional(nullable(SsoProvider)),
    one_time_code_sources: Type.Optional(
      nullable(
        CodeSources(' Replaces the list; an entry with the `id` of a source changes it. Empty or null: removes all.'),
      ),
    ),
  }),
);

export const Credential = named(
  'Credential',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    domain: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
    has_values: Type.Optional(Type.Boolean()),
    has_totp_secret: Type.Optional(Type.Boolean()),
    value_keys: Type.Optional(
      Type.Array(Type.String(), { description: 'The names of the values. Lists do not have them.' }),
    ),
    sso_provider: Type.Optional(nullable(Type.String())),
    one_time_code_sources: Type.Optional(
      Type.Array(CodeSource, { description: 'Without passwords and addresses. Lists do not have them.' }),
    ),
    totp_code: Type.Optional(
      Type.String({
        description:
          'Only in the answer to the request that set the secret, to compare it with the code that the site expects.',
      }),
    ),
    totp_code_expires_at: Type.Optional(Timestamp),
  }),
);

export const CredentialList = Type.Object({
  ...Paging,
  domain: Type.Optional(Type.String({ maxLength: 2048, description: 'The whole domain.' })),
  query: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Case-insensitive part of name or domain, or a whole id.' }),
  ),
});

export const TotpCodeNow = named(
  'CredentialTotpCode',
  Type.Object({
    code: Type.String(),
    expires_at: { ...Timestamp, description: 'The end of the code’s window.' } as typeof Timestamp,
  }),
);

export type CreateCredential = Static<typeof CreateCredential>;
export type UpdateCredential = Static<typeof UpdateCredential>;
export type Credential = Static<typeof Credential>;
export type CredentialList = Static<typeof CredentialList>;
export type TotpCodeNow = Static<typeof TotpCodeNow>;
