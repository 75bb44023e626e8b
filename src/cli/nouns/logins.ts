import type { Verb } from '../table.ts';

/** `corral credentials …`. Values may come from a file or from stdin, so that no shell keeps them in its history. */
export const credentials: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createCredential',
    examples: [
      ['--name shop --domain shop.example.com --values @values.json', 'values from a file'],
      ['--body @- < credential.json', 'all of it from stdin'],
    ],
  },
  {
    name: 'list',
    operation: 'listCredentials',
    columns: ['id', 'name', 'domain', 'has_totp_secret', 'value_keys', 'updated_at'],
    examples: [
      ['', 'without their values'],
      ['--domain shop.example.com -o json', 'for one site'],
    ],
  },
  {
    name: 'get',
    operation: 'getCredential',
    examples: [
      ['shop', 'by name or id'],
      ['shop -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateCredential',
    examples: [
      ['shop --values @values.json', 'new values'],
      ['shop --remove-value-keys pin', 'remove a value'],
    ],
  },
  {
    name: 'totp',
    operation: 'getCredentialTotpCode',
    examples: [
      ['shop', 'the current code'],
      ['shop -o json', 'and its expiry time'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteCredential',
    done: 'Deleted {}.',
    examples: [
      ['shop', 'by name or id'],
      ['shop -o json', 'prints null'],
    ],
  },
];

/** `corral providers …` */
export const providers: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createCredentialProvider',
    examples: [
      ['--body @provider.json', 'as a file describes it, with its token'],
      ['--body @- -o json < provider.json', 'from stdin'],
    ],
  },
  {
    name: 'list',
    operation: 'listCredentialProviders',
    columns: ['id', 'name', 'provider_type', 'enabled', 'priority', 'projects', 'server_url'],
    examples: [
      ['', 'in order of priority'],
      ['-o json', 'for a program'],
    ],
  },
  {
    name: 'get',
    operation: 'getCredentialProvider',
    examples: [
      ['provider_1', 'one of them'],
      ['provider_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateCredentialProvider',
    examples: [
      ['provider_1 --no-enabled', 'disable it'],
      ['provider_1 --projects shop --projects support', 'these projects may use it'],
    ],
  },
  {
    name: 'test',
    operation: 'testCredentialProvider',
    examples: [
      ['provider_1', 'whether its token works'],
      ['provider_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'items',
    operation: 'listCredentialProviderItems',
    rows: 'items',
    columns: ['path', 'title', 'vault_name', 'urls'],
    examples: [
      ['provider_1', 'items that a connection can name'],
      ['provider_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteCredentialProvider',
    done: 'Deleted {}.',
    examples: [
      ['provider_1', 'one of them'],
      ['provider_1 -o json', 'prints null'],
    ],
  },
];

/** `corral auth …` */
export const auth: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createAuthConnection',
    examples: [
      ['--domain shop.example.com --profile-name shop --credential.name shop', 'a connection'],
      ['--body @connection.json', 'as a file describes it'],
    ],
  },
  {
    name: 'list',
    operation: 'listAuthConnections',
    columns: ['id', 'domain', 'profile_name', 'status', 'flow_status', 'last_auth_at', 'error_code'],
    examples: [
      ['', 'and whether they are logged in'],
      ['--domain shop.example.com -o json', 'of one site'],
    ],
  },
  {
    name: 'get',
    operation: 'getAuthConnection',
    examples: [
      ['auth_1', 'one of them'],
      ['auth_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateAuthConnection',
    examples: [
      ['auth_1 --no-auto-reauth', 'never log in automatically'],
      ['auth_1 --credential.name other', 'another credential'],
    ],
  },
  {
    name: 'login',
    operation: 'startAuthConnectionLogin',
    examples: [
      ['auth_1', 'and print the link to the hosted login page'],
      ['auth_1 --record-session -o json', 'with a video'],
    ],
  },
  {
    name: 'submit',
    operation: 'submitAuthConnectionFields',
    done: 'Submitted.',
    examples: [
      ['auth_1 --body @- < fields.json', 'the values that the page asks for'],
      ['auth_1 --mfa-option-id sms', 'a choice'],
    ],
  },
  {
    name: 'code',
    operation: 'pushAuthConnectionCode',
    takes: ['code'],
    done: 'Passed on.',
    examples: [
      ['auth_1 123456', 'a code received by mail or phone'],
      ['auth_1 123456 -o json', 'for a program'],
    ],
  },
  {
    name: 'cancel',
    operation: 'cancelAuthConnectionLogin',
    done: 'Canceled the login of {}.',
    examples: [
      ['auth_1', 'the profile stays as it was'],
      ['auth_1 -o json', 'prints null'],
    ],
  },
  {
    name: 'follow',
    operation: 'followAuthConnection',
    examples: [
      ['auth_1', 'a login, state by state'],
      ['auth_1 -o json', 'a line of JSON for each state'],
    ],
  },
  {
    name: 'timeline',
    operation: 'listAuthConnectionTimeline',
    columns: ['timestamp', 'type', 'status', 'step', 'error_code'],
    examples: [
      ['auth_1', 'its history'],
      ['auth_1 --all -o json', 'all of it'],
    ],
  },
  {
    name: 'recipe',
    operation: 'getAuthConnectionRecipe',
    examples: [
      ['auth_1', 'the steps of the login'],
      ['auth_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'explain',
    operation: 'explainAuthConnectionLogin',
    examples: [
      ['auth_1', 'the evidence of the newest login'],
      ['auth_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteAuthConnection',
    done: 'Deleted {}.',
    examples: [
      ['auth_1', 'the profile is kept'],
      ['auth_1 -o json', 'prints null'],
    ],
  },
];
