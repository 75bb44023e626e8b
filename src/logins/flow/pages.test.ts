import { describe, expect, test } from 'vitest';
import { good, isIn, login, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import {
  choice,
  field,
  scriptedSite,
  step,
  submit,
  type Script,
  type ScriptedPage,
  type SiteState,
} from '../../../test/support/logins/scripted-site.ts';
import type { TotpCode } from '../../credentials/totp.ts';
import { FormsError } from './browser.ts';
import { namesFor } from './values.ts';

describe('a page that changes by itself', () => {
  const stale = () => new FormsError('stale', 'The element is not in the page any more.');
  const unreachable = () => new FormsError('unreachable', 'The element is disabled.');
  /** A browser in which an act on an element fails, after the page has done what it does. */
  const acting = (site: ReturnType<typeof scriptedSite>, ref: string, during: () => Promise<Error | undefined>) => ({
    ...site.browser,
    act: async (pageId: string, action: Parameters<typeof site.browser.act>[1]) => {
      const error = 'ref' in action && action.ref === ref ? await during() : undefined;
      if (error) throw error;
      await site.browser.act(pageId, action);
    },
  });
  const codePage: ScriptedPage = {
    url: `${origin}/code`,
    reading: { kind: 'code', fields: [field('totp_code', 'code')], submit },
  };
  const totp = async (): Promise<TotpCode> => ({
    code: '424242',
    counter: 1,
    expiresAt: new Date(Date.now() + 60_000),
  });

  test('a code that is sent with its last character', async () => {
    const site = scriptedSite(shop({ code: codePage }, () => 'code'));
    const browser = acting(site, 'code', async () => {
      await site.browser.navigate('page-1', `${origin}/home`);
      return stale();
    });
    const { outcome } = await run({ script: shop(), read: site.read, values: good, totp, input: { browser } });
    expect(outcome).toMatchObject({ status: 'SUCCESS', requirements: { totp: true } });
  });

  test('a code with a form that is disabled until the answer arrives', async () => {
    const script = shop({ code: codePage }, () => 'code');
    const site = scriptedSite(script);
    let tries = 0;
    const browser = acting(site, 'submit', async () => {
      // The first click submits the password; later ones find the form disabled, and the page continues.
      if (++tries === 1) return undefined;
      if (tries > 2) await site.browser.navigate('page-1', `${origin}/home`);
      return unreachable();
    });
    const pressing = {
      ...browser,
      act: async (pageId: string, action: Parameters<typeof browser.act>[1]) => {
        if (action.kind === 'press') {
          await site.browser.navigate('page-1', `${origin}/home`);
          throw unreachable();
        }
        await browser.act(pageId, action);
      },
    };
    const { outcome } = await run({ script, read: site.read, values: good, totp, input: { browser: pressing } });
    expect(outcome.status).toBe('SUCCESS');
  });

  test('the page is read again after an element vanished, and the login does not end', async () => {
    const script = shop();
    const site = scriptedSite(script);
    let tries = 0;
    const browser = acting(site, 'username', async () => (++tries === 1 ? stale() : undefined));
    const { recipe } = (await run({ script: shop(), values: good })).outcome;
    const { outcome } = await run({
      script,
      read: site.read,
      values: good,
      input: { browser, flowType: 'REAUTH', recipe },
    });
    expect(outcome.status).toBe('SUCCESS');
    expect(site.site.submits).toHaveLength(1);
  });

  test('a page that changes while elements of the recipe are searched is read', async () => {
    const { recipe } = (await run({ script: shop(), values: good })).outcome;
    const renamed = structuredClone(login);
    for (const one of renamed.fields) one.selectors = [`[name=new-${one.key}]`];
    const page = { ...shop().pages['login']!, reading: { kind: 'login' as const, ...renamed } };
    const script = shop({ login: page });
    const site = scriptedSite(script);
    const browser = { ...site.browser, find: () => Promise.reject(stale()) };
    const { outcome } = await run({
      script,
      read: site.read,
      values: good,
      input: { browser, flowType: 'REAUTH', recipe },
    });
    expect(outcome.status).toBe('SUCCESS');
  });
});

describe('an application that offers a login', () => {
  const offering = (wordless: boolean): Script => {
    const script = shop({
      home: {
        url: `${origin}/home`,
        reading: wordless
          ? { kind: 'choice', choices: [choice('sso_provider', 'sso_google', { provider: 'google' })] }
          : { kind: 'entry', next: [step('entry', 'Log in on another device')] },
        click: { 'Log in on another device': () => 'home' },
      },
    });
    script.route = (_url, site) => (isIn(site) ? 'home' : 'login');
    return script;
  };

  test.each([
    ['by a link', false],
    ['by a service to connect', true],
  ])('%s is one all the same when the form has disappeared', async (_name, wordless) => {
    const { outcome } = await run({ script: offering(wordless), values: good });
    expect(outcome).toMatchObject({ status: 'SUCCESS', recipe: { success: { signedInSigns: false } } });
  });

  test('is none while the form is at its address', async () => {
    const script = shop({
      login: {
        url: `${origin}/login`,
        reading: { kind: 'login', ...login },
        click: { submit: (site) => (site.cookies.set('s', String(site.submits.length)), 'front') },
      },
      front: {
        url: `${origin}/`,
        reading: { kind: 'entry', next: [step('entry', 'Log in')] },
        click: { 'Log in': () => 'login' },
      },
    });
    script.route = (url) => (url.endsWith('/login') ? 'login' : 'front');
    const { outcome } = await run({ script, values: { ...good, password: 'planted-wrong' } });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'credentials_invalid' });
  });

  test('is none where a click opens the form, as it did before', async () => {
    const script = shop({
      login: {
        url: `${origin}/`,
        reading: { kind: 'login', ...login },
        click: { submit: (site) => (site.cookies.set('s', String(site.submits.length)), 'front') },
      },
      front: {
        url: `${origin}/`,
        reading: { kind: 'unknown', next: [step('menu', 'Account')] },
        click: { Account: () => 'login' },
      },
    });
    script.route = () => 'front';
    const { outcome } = await run({ script, values: { ...good, password: 'planted-wrong' } });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'credentials_invalid' });
  });

  /** One address: a button opens the form in a dialog. With a login, a closed menu replaces the button. */
  const oneAddress = (afterSubmit: (site: SiteState) => string): Script => {
    const script = shop({
      front: {
        url: `${origin}/`,
        reading: { kind: 'entry', next: [step('entry', 'Log in')] },
        click: { 'Log in': () => 'login' },
      },
      login: {
        url: `${origin}/`,
        reading: { kind: 'login', ...login },
        click: { submit: (site) => (site.cookies.set('s', String(site.submits.length)), afterSubmit(site)) },
      },
      inside: { url: `${origin}/`, reading: { kind: 'unknown', next: [step('menu', 'Account')] } },
    });
    script.route = (_url, site) => afterSubmit(site);
    return script;
  };

  test('is one when the button to the form has disappeared, though a closed menu is there', async () => {
    const { outcome } = await run({
      script: oneAddress((site) => (isIn(site) ? 'inside' : 'front')),
      values: good,
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
  });

  test('is none when the button to the form stays', async () => {
    const script = oneAddress(() => 'front');
    const { outcome } = await run({ script, values: { ...good, password: 'planted-wrong' } });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'credentials_invalid' });
  });
});

test('a login page that ends the login is opened no second time', async () => {
  const script = shop();
  let over = false;
  const submits = script.pages['login']!.click!['submit']!;
  script.pages['login']!.click = { submit: (site) => ((over = false), submits(site)) };
  script.route = (url, site) => {
    if (url.endsWith('/login')) over = true;
    return isIn(site) && !over && !url.endsWith('/login') ? 'home' : 'login';
  };
  const { outcome, site } = await run({ script, values: good });
  expect(outcome.status).toBe('SUCCESS');
  expect(site.submits).toHaveLength(2);
});

describe('values under names that fit no field', () => {
  const asking = (...fields: ReturnType<typeof field>[]): Script => {
    const names = fields.map(({ ref }) => ref);
    return shop({
      login: {
        url: `${origin}/login`,
        reading: { kind: 'login', fields, submit },
        click: {
          submit: (site) => {
            site.cookies.set('session', '1');
            site.loggedIn = names.every((name) => (site.values.get(name) ?? '') !== '');
            return site.loggedIn ? 'home' : 'refused';
          },
        },
      },
    });
  };

  test.each([
    [
      'a name and a password',
      { Teilnehmer: 'alice-1', 'Kunden-Kennwort': good.password },
      login.fields,
      { username: 'alice-1', password: good.password },
    ],
    [
      'a third field',
      { ...good, matricule: 'planted-42' },
      [...login.fields, field('text', 'text', { ref: 'third', label: 'Nummer der Filiale' })],
      { third: 'planted-42' },
    ],
    [
      'a select',
      { ...good, filiale: 'Planted Mitte', note: 'nothing of it' },
      [
        ...login.fields,
        field('text', 'text', {
          ref: 'branch',
          label: '',
          options: [
            { label: '', value: '', selected: true },
            { label: 'Nord', value: 'planted-1', selected: false },
            { label: 'Planted Mitte (2)', value: 'planted-2', selected: false },
          ],
        }),
      ],
      { branch: 'planted-2' },
    ],
    [
      'a PIN that is always the same',
      { ...good, pin: 'planted-pin' },
      [...login.fields, field('code', 'code')],
      { code: 'planted-pin' },
    ],
  ])('%s', async (_name, values, fields, typed) => {
    const { outcome, steps, site } = await run({ script: asking(...fields), values });
    expect(steps).not.toContain('AWAITING_INPUT');
    expect(site.submits[0]).toMatchObject(typed);
    expect((outcome.requirements?.keys ?? []).every(namesFor(Object.keys(values)))).toBe(true);
    expect(outcome.status).toBe('SUCCESS');
  });

  test('two fields that are not known are asked for', async () => {
    const more = [field('text', 'text', { id: 'a', ref: 'a' }), field('text', 'text', { id: 'b', ref: 'b' })];
    const { steps } = await run({
      script: asking(...login.fields, ...more),
      values: { ...good, x: 'planted', y: 'planted' },
    });
    expect(steps).toContain('AWAITING_INPUT');
  });
});
