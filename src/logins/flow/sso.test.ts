import { expect, test } from 'vitest';
import { good, login, origin, run, shop, type Case } from '../../../test/support/logins/scripted-flow.ts';
import { choice, type SiteState } from '../../../test/support/logins/scripted-site.ts';
import type { WasTyped } from './types.ts';

const host = 'acme.okta.com';
const theirs = { username: 'alice-planted', password: 'planted-new' };
const connection = { id: 'con_1', domain: 'shop.example', allowedDomains: [] };

/** A site with two ways in, one of them by a host of an identity provider that the connection does not name. */
const withProvider = (url = `https://${host}/login`) => {
  const enters = (site: SiteState) => (site.cookies.set('session', '1'), (site.loggedIn = true), 'home');
  return shop({
    login: {
      url: `${origin}/login`,
      reading: {
        kind: 'choice',
        choices: [
          choice('sso_provider', 'sso', { provider: 'okta', label: 'Okta' }),
          choice('sign_in_method', 'mail', { label: 'E-mail' }),
        ],
      },
      click: { sso: () => 'provider' },
    },
    provider: { url, reading: { kind: 'login', ...login }, click: { submit: enters } },
  });
};
/** A person typed the values of `good` by these names. */
const typedBefore = (hosts: Record<string, string[]>) =>
  Object.fromEntries(
    Object.entries(hosts).map(([at, names]): [string, WasTyped] => [
      at,
      (name, value) => names.includes(name) && Object.values(good).includes(value),
    ]),
  );
const start = (more: Partial<Case> = {}) => run({ script: withProvider(), values: good, ...more });
const reauth = (ssoHosts: Record<string, string[]>, more: Partial<Case['input']> = {}) =>
  start({
    input: {
      flowType: 'REAUTH',
      connection: { ...connection, ssoProvider: 'okta', ssoHosts: typedBefore(ssoHosts) },
      ...more,
    },
  });

test('a person confirms the host that the chosen identity provider is at, and types the values for it there', async () => {
  const { outcome, reports, site, typed } = await start({
    submits: [{ choiceId: 'sso' }, { choiceId: `continue_at_${host}` }, { fieldValues: theirs }],
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS', ssoHosts: { [host]: ['username', 'password'] } });
  expect(reports.flatMap(({ choices }) => choices.map(({ label }) => label))).toContain(`Continue at ${host}`);
  expect(site.submits).toEqual([theirs]);
  expect(typed).toEqual(theirs);
});

test('values that a person typed at the site are not typed at the identity provider', async () => {
  const script = withProvider();
  const ways = script.pages['login']!;
  script.pages['login'] = {
    ...ways,
    reading: { kind: 'login', ...login },
    click: { submit: () => 'ways' },
  };
  script.pages['ways'] = { ...ways, url: `${origin}/ways` };
  const { outcome, site } = await start({
    script,
    values: {},
    submits: [{ fieldValues: good }, { choiceId: 'sso' }, { choiceId: `continue_at_${host}` }],
  });
  expect(outcome.errorCode).toBe('awaiting_input_timeout');
  expect(site.submits).toEqual([good]);
});

test('nothing is typed at a host that the person does not confirm', async () => {
  const { outcome, site } = await start({ submits: [{ choiceId: 'sso' }] });
  expect(outcome).toMatchObject({ status: 'EXPIRED', errorCode: 'awaiting_input_timeout' });
  expect([site.submits, [...site.values]]).toEqual([[], []]);
});

test('a host without https cannot be confirmed', async () => {
  const { outcome } = await start({ script: withProvider(`http://${host}/login`), submits: [{ choiceId: 'sso' }] });
  expect(outcome).toMatchObject({ errorCode: 'domain_not_allowed' });
});

test('without a person, values are typed at a confirmed host that a person typed there', async () => {
  const known = await reauth({ [host]: ['username', 'password'] });
  expect(known.outcome.status).toBe('SUCCESS');
  expect(known.site.submits).toEqual([good]);

  const other = await reauth({ [host]: ['username'] });
  expect(other.outcome.status).toBe('EXPIRED');
  expect([...other.site.values.values()]).not.toContain(good.password);

  const named = await reauth({}, { connection: { ...connection, ssoProvider: 'okta', allowedDomains: [host] } });
  expect(named.outcome.status).toBe('SUCCESS');
});

test('a value is not typed at a confirmed host if a person typed another value there under the same name', async () => {
  const { outcome, site } = await start({
    values: { ...good, password: 'planted-new' },
    input: {
      flowType: 'REAUTH',
      connection: { ...connection, ssoProvider: 'okta', ssoHosts: typedBefore({ [host]: ['username', 'password'] }) },
    },
  });
  expect(outcome.status).toBe('EXPIRED');
  expect([...site.values.values()]).not.toContain('planted-new');
});

test.each([
  ['at a host of the provider', 'https://github.com/login', 'github'],
  ['at a host that only has its name', `https://${host}/login`, undefined],
])('a login names the provider of what a person typed %s: %s', async (_, url, typedProvider) => {
  const script = withProvider(url);
  script.pages['login']!.reading.choices![0]!.provider = 'github';
  const { outcome } = await start({
    script,
    values: {},
    submits: [
      { choiceId: 'sso' },
      ...(typedProvider ? [] : [{ choiceId: `continue_at_${host}` }]),
      { fieldValues: theirs },
    ],
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS', ssoProvider: 'github', typed: theirs });
  expect(outcome.typedProvider).toBe(typedProvider);
});

test('an item of a provider is typed at the hosts that it names, of those that the connection allows', async () => {
  const item = (hosts: string[]) => async () => ({ values: good, ssoProvider: 'okta', hosts });
  const allowed = { connection: { ...connection, allowedDomains: [host] } };
  const both = await reauth({}, { ...allowed, credential: item([`https://${host}`]) });
  expect(both.site.submits).toEqual([good]);
  for (const input of [
    { ...allowed, credential: item(['shop.example']) },
    { connection, credential: item([`https://${host}`]) },
  ]) {
    const { outcome, site } = await reauth({}, input);
    expect(outcome.errorCode).toBe('domain_not_allowed');
    expect(site.submits).toEqual([]);
  }
});

test('the way that the last login took does not say that the credential is for the provider', async () => {
  const script = withProvider('https://github.com/login');
  script.pages['login']!.reading.choices![0]!.provider = 'github';
  const { outcome, site } = await run({
    script,
    values: good,
    input: { flowType: 'REAUTH', connection: { ...connection, ssoProvider: 'github' } },
  });
  expect(outcome.status).toBe('EXPIRED');
  expect([site.submits, [...site.values]]).toEqual([[], []]);
});

test('a password that is typed at the site after the provider is not the one of the provider', async () => {
  const script = withProvider();
  script.pages['provider']!.click = { submit: () => 'own' };
  script.pages['own'] = {
    url: `${origin}/own`,
    reading: { kind: 'login', ...login },
    click: { submit: (site) => (site.cookies.set('session', '1'), (site.loggedIn = true), 'home') },
  };
  const { outcome, typed } = await start({
    script,
    values: {},
    submits: [
      { choiceId: 'sso' },
      { choiceId: `continue_at_${host}` },
      { fieldValues: theirs },
      // The provider asked under the same ids before.
      { fieldValues: { 'username@shop.example': theirs.username, 'password@shop.example': 'of-the-site' } },
    ],
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS', ssoHosts: { [host]: [] } });
  expect(typed).toMatchObject({ password: 'of-the-site' });
});
