import { describe, expect, test } from 'vitest';
import { good, isIn, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import { step, type Script, type ScriptedPage, type SiteState } from '../../../test/support/logins/scripted-site.ts';
import type { Recipe } from './types.ts';

const shell: ScriptedPage = { url: `${origin}/`, reading: { kind: 'signed_in', wayOut: 'Logout' } };
const form = shop().pages['login']!;
const menu = step('menu', 'Account');

describe('a way out that the page has before its form', () => {
  /** The page of an application, which is the shell for its first looks. */
  const early = (shown: (site: SiteState) => string): Script => {
    const script = shop({
      shell,
      home: { url: `${origin}/`, reading: { kind: 'signed_in', wayOut: 'Logout' }, texts: [`Hello ${good.username}`] },
    });
    script.pages['login']!.url = `${origin}/`;
    script.pages['refused']!.url = `${origin}/`;
    script.route = (_url, site) => shown(site);
    return script;
  };

  test('is no account', async () => {
    let loads = 0;
    const script = early((site) => (isIn(site) ? 'home' : !site.stranger && ++loads <= 2 ? 'shell' : 'login'));
    // The shell of the first page is followed by the form.
    script.pages['shell'] = { ...shell, becomes: { name: 'login', after: 2 } };
    const { outcome, site } = await run({ script, values: good });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(site.submits).toHaveLength(1);
  });

  test('is no account after a wrong password either', async () => {
    const script = early(() => 'login');
    const refuses = (site: SiteState) => (site.cookies.set('s', String(site.submits.length)), 'shell');
    script.pages['login'] = { ...form, url: `${origin}/`, click: { submit: refuses } };
    script.pages['shell'] = { ...shell, becomes: { name: 'login', after: 2 } };
    let first = true;
    script.route = (_url, { stranger }) => (stranger || !first ? 'login' : ((first = false), 'shell'));
    const { outcome } = await run({ script, values: { ...good, password: 'planted-wrong' } });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'credentials_invalid' });
  });

  test('that everyone is shown is no account', async () => {
    const script = early(() => 'shell');
    const { outcome } = await run({ script, values: good });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'navigation_confused' });
  });
});

describe('a way out in a closed menu', () => {
  const closed = (name: string): ScriptedPage => ({
    url: `${origin}/`,
    reading: { kind: 'unknown', next: [menu] },
    click: { Account: () => name },
  });
  const site = (): Script => ({
    pages: {
      front: closed('wayIn'),
      wayIn: {
        url: `${origin}/`,
        reading: { kind: 'entry', next: [step('entry', 'Log in')] },
        click: { 'Log in': () => 'form' },
      },
      form: {
        ...form,
        url: `${origin}/`,
        click: { submit: (state) => (state.cookies.set('s', '1'), (state.loggedIn = true), 'home') },
      },
      home: closed('wayOut'),
      wayOut: { url: `${origin}/`, reading: { kind: 'signed_in', wayOut: 'Log out' } },
    },
    route: (_url, { loggedIn }) => (loggedIn ? 'home' : 'front'),
  });

  test('is found, and found again by a login of a profile that is logged in', async () => {
    const { outcome } = await run({ script: site(), values: good });
    expect(outcome).toMatchObject({ status: 'SUCCESS', recipe: { success: { inMenu: true, signedInSigns: true } } });
    const { recipe } = outcome;
    const script = site();
    script.route = (_url, { stranger }) => (stranger ? 'front' : 'home');
    const again = await run({ script, values: good, input: { recipe: recipe! } });
    expect(again.outcome).toMatchObject({ status: 'SUCCESS' });
    // The steps to the account are no login, and the recipe of the last login stays.
    expect(again.outcome.recipe).toBeUndefined();
    expect(again.site.submits).toEqual([]);
  });
});

describe('a page that shows nothing of a login', () => {
  const limbo: ScriptedPage = {
    url: `${origin}/login`,
    reading: { kind: 'unknown' },
    texts: ['Something went wrong.'],
  };
  const dead = (): Script => {
    const script = shop({ limbo });
    const { route } = script;
    let isDead = true;
    script.route = (url, state) => (isDead && !state.stranger ? 'limbo' : route(url, state));
    script.forgotten = () => void (isDead = false);
    return script;
  };

  test('is left by forgetting the site, where a login succeeded before', async () => {
    const recipe: Recipe = (await run({ script: shop(), values: good })).outcome.recipe!;
    const { outcome, site } = await run({ script: dead(), values: good, input: { flowType: 'REAUTH', recipe } });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(site.log.filter((entry) => entry === 'forget')).toHaveLength(1);
  });

  test('is not the dead login of a profile that never had one', async () => {
    const { outcome, site } = await run({ script: dead(), values: good });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'login_form_not_found' });
    expect(site.log).not.toContain('forget');
  });
});

test('a login is one by two signs, each with its name in the record', async () => {
  const { notes } = await run({ script: shop(), values: good });
  expect(notes.map(({ decision }) => decision)).toContain(
    'Since the login the page shows a signed-in account, and cookies or storage changed.',
  );
});

test('a way out without a changed cookie needs another sign', async () => {
  const quiet = (home: (url: string) => string): Script => {
    const script = shop();
    for (const name of ['login', 'refused'])
      script.pages[name]!.click = { submit: (site) => ((site.loggedIn = true), 'home') };
    script.route = (url, { loggedIn, stranger }) => (loggedIn && !stranger ? home(url) : 'login');
    return script;
  };
  // The form is gone from its address.
  expect((await run({ script: quiet(() => 'home'), values: good })).outcome.status).toBe('SUCCESS');
  // The form stays, and strangers are asked to log in at the address of the account.
  const stays = quiet((url) => (url.endsWith('/login') ? 'login' : 'home'));
  expect((await run({ script: stays, values: good })).outcome.status).toBe('SUCCESS');
  // The form stays, and everyone is shown the same.
  const open = quiet((url) => (url.endsWith('/login') ? 'login' : 'home'));
  open.route = (url) => (url.endsWith('/home') ? 'home' : 'login');
  expect((await run({ script: open, values: good })).outcome.status).toBe('FAILED');
});

test('a person may say that an account is logged in, where nothing else shows it', async () => {
  const script = shop({ home: { url: `${origin}/home`, reading: { kind: 'unknown' }, texts: ['Hallo'] } });
  for (const name of ['login', 'refused']) script.pages[name]!.click = { submit: () => 'home' };
  script.route = (url) => (url.endsWith('/home') ? 'home' : 'login');
  const unattended = await run({ script, values: good });
  expect(unattended.outcome).toMatchObject({ status: 'FAILED', errorCode: 'navigation_confused' });
  const { outcome, reports } = await run({
    script,
    values: good,
    submits: [{ choiceId: 'account_is_logged_in' }],
    input: { attended: () => true },
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS' });
  expect(reports.flatMap(({ choices }) => choices.map(({ label }) => label))).toContain('The account is logged in');
});
