import { expect, test } from 'vitest';
import type { Requirements } from './flow/types.ts';
import { canReauth } from './reauth.ts';

type Facts = Parameters<typeof canReauth>[0];

const needs = (changes: Partial<Requirements> = {}): Requirements => ({
  keys: ['username', 'password'],
  totp: false,
  codes: [],
  external: false,
  passkey: false,
  basic: false,
  ...changes,
});

const none: Facts = {
  credential_kind: null,
  credential_id: null,
  provider_id: null,
  provider_path: null,
  value_keys: null,
  has_totp_secret: null,
  code_sources: null,
  requirements: null,
  fills: null,
  takes_codes: false,
  has_passkeys: false,
  last_login_at: new Date(),
};
const stored: Facts = {
  ...none,
  credential_kind: 'stored',
  credential_id: 'cred',
  value_keys: ['username', 'password'],
  has_totp_secret: false,
};
const item: Facts = { ...none, credential_kind: 'item', provider_id: 'prov', provider_path: 'a/b' };

test.each<[string, Facts, boolean, string]>([
  ['has never logged in', { ...stored, last_login_at: null }, false, 'no_prior_successful_login'],
  ['has no credential', { ...none, requirements: needs() }, false, 'no_credential'],
  ['lost its credential', { ...stored, credential_id: null, requirements: needs() }, false, 'no_credential'],
  ['lost its provider', { ...item, credential_kind: 'auto_of', provider_id: null }, false, 'no_credential'],
  ['needs nothing', { ...none, requirements: needs({ keys: [] }) }, true, 'viable_plans_found'],
  ['has a credential, and was logged in from the start', stored, true, 'no_requirements_recorded'],
  ['has what the login needed', { ...stored, requirements: needs() }, true, 'requirements_satisfiable'],
  ['has no password', { ...stored, value_keys: ['email'], requirements: needs() }, false, 'no_viable_plans'],
  [
    'has one by another name',
    { ...stored, value_keys: ['user', 'Passwort'], requirements: needs() },
    true,
    'requirements_satisfiable',
  ],
  ['has no tenant', { ...stored, requirements: needs({ keys: ['password', 'tenant'] }) }, false, 'no_viable_plans'],
  [
    'has its tenant by another name',
    {
      ...stored,
      value_keys: ['E-Mail', 'pwd', 'Workspace'],
      requirements: needs({ keys: ['username', 'password', 'tenant'] }),
    },
    true,
    'requirements_satisfiable',
  ],
  [
    'has an answer by the words of the page',
    {
      ...stored,
      value_keys: ['password', 'first_pet'],
      requirements: needs({ keys: ['password', 'security_answer'] }),
      fills: [{ key: 'security_answer', label: 'First pet?' }],
    },
    true,
    'requirements_satisfiable',
  ],
  ['goes by a provider', { ...item, requirements: needs({ totp: true }) }, true, 'external_credential'],
  ['asks all providers', { ...none, credential_kind: 'auto' }, true, 'external_credential'],
  ['needs a push', { ...stored, requirements: needs({ external: true }) }, false, 'requires_external_action'],
  [
    'has no secret for codes',
    { ...stored, requirements: needs({ totp: true }) },
    false,
    'requires_totp_without_secret',
  ],
  [
    'has one',
    { ...stored, has_totp_secret: true, requirements: needs({ totp: true }) },
    true,
    'requirements_satisfiable',
  ],
  ['needs an SMS', { ...stored, requirements: needs({ codes: ['sms'] }) }, false, 'requires_sms_code'],
  ['needs a call', { ...stored, requirements: needs({ codes: ['call'] }) }, false, 'requires_sms_code'],
  ['needs a mail', { ...stored, requirements: needs({ codes: ['email'] }) }, false, 'requires_email_code'],
  [
    'needs a code of an unknown kind',
    { ...stored, requirements: needs({ codes: ['other'] }) },
    false,
    'requires_totp_without_secret',
  ],
  [
    'needs a code of an unknown kind, and has a secret for codes since',
    { ...stored, has_totp_secret: true, requirements: needs({ codes: ['other'] }) },
    true,
    'requirements_satisfiable',
  ],
  [
    'is sent its codes',
    { ...stored, takes_codes: true, requirements: needs({ codes: ['sms'] }) },
    true,
    'requirements_satisfiable',
  ],
  ...(
    [
      ['a mailbox', ['imap'], 'email', true],
      ['a mailbox', ['imap'], 'other', true],
      ['a mailbox', ['imap'], 'sms', false],
      ['an address for codes', ['webhook'], 'sms', true],
      ['an address for codes', ['webhook'], 'email', true],
      ['an address for codes', ['webhook'], 'call', false],
    ] as const
  ).map(([what, sources, way, can]): [string, Facts, boolean, string] => [
    `needs a code by ${way} and has ${what}`,
    { ...stored, code_sources: [...sources], requirements: needs({ codes: [way] }) },
    can,
    can ? 'requirements_satisfiable' : 'requires_sms_code',
  ]),
  [
    'has its passkey',
    { ...none, has_passkeys: true, requirements: needs({ passkey: true }) },
    true,
    'viable_plans_found',
  ],
  ['has no passkey', { ...stored, requirements: needs({ passkey: true }) }, false, 'requires_external_action'],
])('a connection that %s', (_, facts, can, reason) => {
  expect(canReauth(facts)).toEqual({ can, reason });
});
