import { expect, test } from 'vitest';
import { good, login, origin, run, shop, type Case } from '../../../test/support/logins/scripted-flow.ts';
import { choice, field, submit, type Script, type SiteState } from '../../../test/support/logins/scripted-site.ts';
import { theSite } from './hosts.ts';
import type { Recipe, WasTyped } from './types.ts';

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
const withGoogle = (url: string) => {
  const script = withProvider(url);
  script.pages['login']!.reading.choices![0]!.provider = 'google';
  return script;
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
const reauth = (ssoHosts: Record<string, string[]>, more: Partial<Case['input']> = {}, script = withProvider()) =>
  start({
    script,
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
  // The user name is the same at both.
  expect(outcome).toMatchObject({ status: 'SUCCESS', ssoHosts: { [host]: ['username'], [theSite]: ['username'] } });
  expect(typed).toMatchObject({ password: 'of-the-site' });
});

test('a password that a person typed at an identity provider is not typed at the site', async () => {
  const google = 'accounts.google.com';
  const script = withGoogle(`https://${google}/signin`);
  const { outcome } = await start({ script, values: {}, submits: [{ choiceId: 'sso' }, { fieldValues: good }] });
  expect(outcome.ssoHosts).toEqual({ [google]: ['username', 'password'] });

  for (const at of [google, host]) {
    const { reports, site } = await reauth({ [at]: ['username', 'password'] }, {}, shop());
    expect(reports.flatMap(({ fields }) => fields.map(({ key }) => key))).toEqual(['password']);
    expect([...site.values.values()]).not.toContain(good.password);
    expect(site.submits).toEqual([]);
  }
  // It was typed at the site as well.
  const both = await reauth({ [host]: ['username', 'password'], [theSite]: ['password'] }, {}, shop());
  expect(both.site.submits).toEqual([good]);
});

test('a password for a well-known identity provider is not typed at the site if the last login asked for it at the provider alone', async () => {
  const recipe = (...pages: string[]): Recipe => ({
    version: 1,
    entryUrl: `${origin}/before`,
    steps: pages.map((page) => ({
      page,
      kind: 'login',
      fills: [{ key: 'password', type: 'password', label: 'Password', selectors: [] }],
    })),
    success: { url: `${origin}/home`, cookies: [], storage: [], signedInSigns: true },
    requirements: { keys: [], totp: false, codes: [], external: false, passkey: false, basic: false },
    learnedAt: '2026-01-01T00:00:00Z',
  });
  const submitted = async (...pages: string[]) => {
    const more = {
      connection: { ...connection, ssoProvider: 'google' },
      credential: async () => ({ values: good, ssoProvider: 'google' }),
      recipe: recipe(...pages),
    };
    return (await reauth({}, more, shop())).site.submits;
  };
  const atGoogle = 'https://accounts.google.com/signin';
  expect(await submitted(atGoogle)).toEqual([]);
  expect(await submitted(atGoogle, `${origin}/login`)).toEqual([good]);
  // Another host of the provider is none of the site's.
  const other = await reauth(
    { 'accounts.google.com': ['username', 'password'] },
    {
      connection: {
        ...connection,
        ssoProvider: 'google',
        ssoHosts: typedBefore({ 'accounts.google.com': ['username', 'password'] }),
      },
      credential: async () => ({ values: good, ssoProvider: 'google' }),
    },
    withGoogle('https://accounts.youtube.com/signin'),
  );
  expect(other.site.submits).toEqual([good]);
});

test('a password of an identity provider is typed into its frame in a page of the site', async () => {
  const enters = (site: SiteState) => (site.cookies.set('session', '1'), 'home');
  const framed = { url: `${origin}/login`, frame: `https://${host}`, reading: { kind: 'login' as const, ...login } };
  const script = shop({ login: { ...framed, click: { submit: enters } } });
  const { outcome, site } = await reauth({ [host]: ['username', 'password'] }, {}, script);
  expect(outcome.status).toBe('SUCCESS');
  expect(site.submits).toEqual([good]);
});

test('the site does not get the password of an identity provider by HTTP Basic, or the reverse', async () => {
  const basic = (): Script => ({
    ...shop({ login: { url: `${origin}/login`, status: 401, basic: true, reading: { kind: 'basic' } } }),
    basic: (site, answer) => (site.submits.push(answer), site.cookies.set('session', '1'), 'home'),
  });
  const { reports, site } = await reauth({ [host]: ['username', 'password'] }, {}, basic());
  expect(site.submits).toEqual([]);
  expect(reports.map(({ step }) => step)).toContain('AWAITING_INPUT');

  const script = withProvider();
  script.pages['provider']!.click = { submit: () => 'basic' };
  script.pages['basic'] = basic().pages['login']!;
  script.basic = basic().basic!;
  const { outcome } = await start({
    script,
    values: {},
    submits: [
      { choiceId: 'sso' },
      { choiceId: `continue_at_${host}` },
      { fieldValues: theirs },
      { fieldValues: { 'username@shop.example': good.username, 'password@shop.example': good.password } },
    ],
  });
  expect(outcome).toMatchObject({ typed: good, ssoHosts: { [host]: ['username'], [theSite]: ['username'] } });
});

test('codes of an authenticator app are set up by a login only where it would type them later', async () => {
  const totpSecret = 'JBSW Y3DP EHPK 3PXP';
  const code = { ...field('code', 'code'), type: 'totp_code' as const };
  const script = (url: string) => {
    const sites = withProvider();
    const enters = sites.pages['provider']!.click!;
    sites.pages['provider']!.click = { submit: () => 'setup' };
    sites.pages['setup'] = { url, reading: { kind: 'enrol_totp', totpSecret, fields: [code], submit }, click: enters };
    return sites;
  };
  const enrol = (url: string) =>
    start({
      script: script(url),
      values: {},
      submits: [{ choiceId: 'sso' }, { choiceId: `continue_at_${host}` }, { fieldValues: theirs }],
      input: { mayEnrol: true },
    });
  const atProvider = await enrol(`https://${host}/setup`);
  expect([atProvider.totpSecret, atProvider.site.submits]).toEqual([undefined, [theirs]]);
  expect(atProvider.steps).toContain('AWAITING_EXTERNAL_ACTION');
  const atSite = await enrol(`${origin}/setup`);
  expect(atSite).toMatchObject({ outcome: { status: 'SUCCESS' }, totpSecret });
});
