import { describe, expect, test } from 'vitest';
import { error, fast, good, isIn, login, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
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
import type { Recipe } from './types.ts';

describe('a login', () => {
  test('types the credential and leaves a recipe without its values', async () => {
    const { outcome, steps } = await run({ script: shop(), values: { login: good.username, Passwort: good.password } });
    expect(outcome).toMatchObject({
      status: 'SUCCESS',
      postLoginUrl: `${origin}/home`,
      typed: {},
      requirements: { keys: ['username', 'password'], totp: false },
    });
    expect(outcome.recipe).toMatchObject({
      steps: [
        { page: `${origin}/login`, fills: [{ key: 'username' }, { key: 'password' }], click: { stoodFor: 'submit' } },
      ],
      success: { cookies: ['session'], signedInSigns: true },
    });
    expect(JSON.stringify(outcome.recipe)).not.toContain('planted');
    expect(steps.at(-1)).toBe('COMPLETED');
  });

  test('asks for values that the credential does not have, and returns a person’s values under the names of the credential', async () => {
    const { outcome, reports } = await run({
      script: shop(),
      values: { login: good.username },
      submits: [{ fieldValues: { password: good.password } }],
    });
    expect(reports.find(({ step }) => step === 'AWAITING_INPUT')?.fields.map(({ id }) => id)).toEqual(['password']);
    expect(outcome).toMatchObject({ status: 'SUCCESS', typed: { password: good.password } });
  });

  test('needs no more names than a credential can have', async () => {
    const labels = (page: number) => Array.from({ length: 60 }, (_, at) => `field ${page} ${at}`);
    const form = (page: number, next: string): ScriptedPage => ({
      url: `${origin}/login-${page}`,
      reading: {
        kind: 'login',
        fields: labels(page).map((label) => field('text', 'text', { id: label, ref: label, label })),
        submit,
      },
      click: { submit: () => next },
    });
    const { outcome } = await run({
      script: shop({ login: form(1, 'second'), second: form(2, 'third'), third: shop().pages['login']! }),
      submits: [
        ...[1, 2].map((page) => ({ fieldValues: Object.fromEntries(labels(page).map((label) => [label, 'xyz'])) })),
        { fieldValues: good },
      ],
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(outcome.requirements!.keys).toHaveLength(100);
  });

  test('asks the person when the credential cannot be looked up', async () => {
    const { outcome } = await run({
      script: shop(),
      submits: [{ fieldValues: good }],
      input: { credential: () => Promise.reject(new Error('The store is down.')) },
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS', typed: good });
  });

  test('shows the site’s error and asks again after the site refuses a person’s values', async () => {
    const { outcome, reports } = await run({
      script: shop(),
      submits: [{ fieldValues: { ...good, password: 'planted-wrong' } }, { fieldValues: good }],
    });
    expect(reports.findLast(({ step }) => step === 'AWAITING_INPUT')).toMatchObject({
      websiteError: 'That did not work',
      fields: [{ id: 'username' }, { id: 'password' }],
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS', typed: good });
  });

  test('leaves a recipe of at most 64,000 characters of steps for any pages', async () => {
    const many = Array.from({ length: 58 }, (_, at) =>
      field('text', 'text', {
        id: `text_${at}`,
        ref: `text_${at}`,
        required: false,
        label: `Field ${at}`,
        selectors: Array.from({ length: 8 }, (_value, place) => `${place}${'x'.repeat(490)}`),
      }),
    );
    const values = { ...good, ...Object.fromEntries(many.map(({ label }) => [label, `value of ${label}`])) };
    const script = shop(
      {
        next: {
          url: `${origin}/next`,
          reading: { kind: 'login', submit, fields: many },
          click: { submit: () => 'home' },
        },
      },
      () => 'next',
    );
    const { outcome } = await run({ script, values });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(outcome.recipe?.steps).toHaveLength(1);
    expect(JSON.stringify(outcome.recipe).length).toBeLessThan(70_000);
  });

  test('goes through an entry link, a banner, an interstitial and two pages', async () => {
    const script = shop();
    Object.assign(script.pages, {
      front: {
        url: `${origin}/`,
        reading: { kind: 'entry', next: [step('dismiss', 'Reject all'), step('entry', 'Log in')] },
        click: { 'Reject all': () => 'bare', 'Log in': () => 'front' },
      },
      bare: {
        url: `${origin}/`,
        reading: { kind: 'entry', next: [step('entry', 'Log in')] },
        click: { 'Log in': () => 'name' },
      },
      name: {
        url: `${origin}/login`,
        reading: { kind: 'login', fields: [field('identifier', 'email')], submit },
        click: { submit: () => 'word' },
      },
      word: {
        url: `${origin}/login`,
        reading: { kind: 'login', fields: [field('password', 'password')], submit },
        click: { submit: (site: SiteState) => (site.cookies.set('session', '1'), 'stay') },
      },
      stay: {
        url: `${origin}/stay`,
        reading: { kind: 'interstitial', next: [step('stay_signed_in', 'Yes')] },
        click: { Yes: () => 'home' },
      },
    } satisfies Record<string, ScriptedPage>);
    script.route = (_url, site) => (isIn(site) ? 'home' : 'front');
    const { outcome } = await run({ script, values: good });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(outcome.recipe?.steps.map(({ click }) => click?.stoodFor)).toEqual([
      'entry',
      'submit',
      'submit',
      'stay_signed_in',
    ]);
  });

  test('ends at once where the profile is logged in already', async () => {
    const script = shop();
    script.route = (_url, { stranger }) => (stranger ? 'login' : 'home');
    const { outcome, site } = await run({ script, values: good });
    expect(outcome).toMatchObject({ status: 'SUCCESS', postLoginUrl: `${origin}/home` });
    expect(outcome.recipe).toBeUndefined();
    expect(site.submits).toEqual([]);
  });

  test('takes the identity provider that the credential names', async () => {
    const script = shop({
      login: {
        url: `${origin}/login`,
        reading: {
          kind: 'login',
          ...login,
          choices: [choice('sso_provider', 'sso', { provider: 'github', label: 'GitHub' })],
        },
        click: { sso: () => 'github' },
      },
      github: {
        url: 'https://github.com/login',
        reading: { kind: 'login', ...login },
        click: { submit: (site) => (site.cookies.set('s', '1'), 'home') },
      },
    });
    const { outcome } = await run({
      script,
      values: good,
      input: { credential: async () => ({ values: good, ssoProvider: 'github' }) },
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS', ssoProvider: 'github' });
  });

  test('waits for an action outside of the page, and continues when the page changes', async () => {
    const script = shop(
      { push: { url: `${origin}/push`, reading: { kind: 'external', externalMessage: 'Look at your phone' } } },
      () => 'push',
    );
    let looks = 0;
    const site = scriptedSite(script);
    const { outcome, reports } = await run({
      script,
      values: good,
      input: {
        deadlines: { ...fast, external: 30_000 },
        browser: {
          ...site.browser,
          snapshot: async (pageId) => {
            const seen = await site.browser.snapshot(pageId);
            if (seen.title === 'push' && ++looks > 2) await site.browser.navigate(pageId, `${origin}/home`);
            return site.browser.snapshot(pageId);
          },
        },
      },
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS', requirements: { external: true } });
    expect(reports.find(({ step }) => step === 'AWAITING_EXTERNAL_ACTION')?.externalActionMessage).toBe(
      'Look at your phone',
    );
  });
});

describe('a one-time code', () => {
  const codePage = (next: (site: SiteState, code: string) => string): ScriptedPage => ({
    url: `${origin}/code`,
    reading: { kind: 'code', fields: [field('totp_code', 'code')], submit },
    click: { submit: (site) => next(site, site.values.get('code') ?? '') },
  });
  const wrong = (next: ScriptedPage): ScriptedPage => ({
    ...next,
    reading: { ...next.reading, error: error('Wrong code', 'code') },
  });
  /** Windows that end as soon as they are asked for the second time. */
  const windows = (...codes: string[]) => {
    let counter = 0;
    let asked = 0;
    return async (): Promise<TotpCode> => {
      if (asked++ > 0 && counter < codes.length - 1) counter++;
      return { code: codes[counter]!, counter, expiresAt: new Date(Date.now() + (asked % 2 === 0 ? 60_000 : 30_000)) };
    };
  };

  test('is generated, and the next window’s is tried once after a refusal', async () => {
    const page = codePage((_site, code) => (code === '434343' ? 'home' : 'wrong'));
    const script = shop({ code: page, wrong: wrong(page) }, () => 'code');
    const { outcome, site } = await run({ script, values: good, totp: windows('424242', '434343') });
    expect(outcome).toMatchObject({ status: 'SUCCESS', totpCounter: 1, requirements: { totp: true, codes: [] } });
    expect(site.submits.flatMap((one) => one['code'] ?? [])).toEqual(['424242', '434343']);
  });

  test('of a window that an earlier flow used is not typed', async () => {
    const page = codePage((_site, code) => (code === '434343' ? 'home' : 'wrong'));
    const script = shop({ code: page, wrong: wrong(page) }, () => 'code');
    let now = 0;
    const { outcome, site } = await run({
      script,
      values: good,
      totp: async () => ({
        code: now++ === 0 ? '424242' : '434343',
        counter: now,
        expiresAt: new Date(Date.now() + (now === 1 ? 50 : 60_000)),
      }),
      input: { lastTotpCounter: 1 },
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS', totpCounter: 2 });
    expect(site.submits.flatMap((one) => one['code'] ?? [])).toEqual(['434343']);
  });

  test('that is refused twice ends the login', async () => {
    const page = codePage(() => 'wrong');
    const script = shop({ code: page, wrong: wrong(page) }, () => 'code');
    script.route = () => 'login';
    const { outcome, site } = await run({ script, values: good, totp: windows('424242', '434343', '454545') });
    expect(outcome).toMatchObject({ status: 'FAILED', errorCode: 'credentials_invalid', websiteError: 'Wrong code' });
    expect(site.submits.flatMap((one) => one['code'] ?? [])).toEqual(['424242', '434343']);
  });

  test('that is pushed is typed, and never kept', async () => {
    const page = codePage(() => 'home');
    page.reading.fields = [field('code', 'code', { label: 'Code from the text message (SMS)' })];
    const { outcome } = await run({
      script: shop({ code: page }, () => 'code'),
      values: good,
      submits: [{ code: '424242' }],
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS', typed: {}, requirements: { codes: ['sms'], totp: false } });
  });

  test('is preferred to a code that only a person gets', async () => {
    const sms = codePage(() => 'wrong');
    sms.reading = {
      ...sms.reading,
      fields: [field('code', 'code', { label: 'Code from the SMS' })],
      choices: [choice('mfa_method', 'app', { mfaType: 'totp' })],
    };
    const script = shop(
      { sms: { ...sms, click: { ...sms.click, app: () => 'code' } }, code: codePage(() => 'home') },
      () => 'sms',
    );
    const { outcome } = await run({ script, values: good, totp: windows('424242') });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
  });
});

describe('a re-authentication', () => {
  async function recipeOf(script: Script): Promise<Recipe> {
    return (await run({ script, values: good })).outcome.recipe!;
  }
  /** The reading does not know the page; only the recipe does. */
  const unread: ScriptedPage = {
    ...shop().pages['login']!,
    reading: { kind: 'login', fields: [field('password', 'pin', { selectors: ['#other'] }), ...login.fields], submit },
  };

  test('replays the recipe first', async () => {
    const recipe = await recipeOf(shop());
    const { outcome, notes } = await run({
      script: shop({ login: unread }),
      values: good,
      input: { flowType: 'REAUTH', recipe },
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(notes.some(({ decision }) => decision.includes('recipe'))).toBe(true);
  });

  test('reads the page where it has changed', async () => {
    const recipe = await recipeOf(shop());
    const changed = structuredClone({ ...login });
    for (const one of changed.fields) one.selectors = [`[name=new-${one.key}]`];
    const login2 = { ...shop().pages['login']!, reading: { kind: 'login' as const, ...changed } };
    const { outcome, notes } = await run({
      script: shop({ login: login2 }),
      values: good,
      input: { flowType: 'REAUTH', recipe },
    });
    expect(outcome).toMatchObject({ status: 'SUCCESS' });
    expect(notes.some(({ decision }) => decision.includes('recipe'))).toBe(false);
  });
});

describe('HTTP Basic', () => {
  const script = (): Script => ({
    ...shop({ prompt: { url: `${origin}/`, status: 401, basic: true, reading: { kind: 'basic' } } }),
    route: (_url, site) => (site.loggedIn ? 'inside' : 'prompt'),
    basic: (site, { password }) => ((site.loggedIn = password === good.password), site.loggedIn ? 'inside' : 'prompt'),
  });
  const inside: ScriptedPage = { url: `${origin}/`, reading: { kind: 'unknown' } };

  test.each([
    ['takes the credential', good, { status: 'SUCCESS', requirements: { basic: true } }],
    [
      'refuses a wrong one',
      { ...good, password: 'planted-wrong' },
      { status: 'FAILED', errorCode: 'credentials_invalid' },
    ],
  ])('%s', async (_name, values, expected) => {
    const site = script();
    site.pages['inside'] = inside;
    expect((await run({ script: site, values })).outcome).toMatchObject(expected);
  });

  test('asks a person', async () => {
    const site = script();
    site.pages['inside'] = inside;
    const { outcome } = await run({ script: site, submits: [{ fieldValues: good }] });
    expect(outcome).toMatchObject({ status: 'SUCCESS', typed: good });
  });
});

test('an answer that arrives while the page changes is not lost', async () => {
  const script = shop({
    other: { url: `${origin}/login?again`, reading: { kind: 'login', ...login, choices: [choice('other', 'help')] } },
  });
  script.pages['other']!.click = script.pages['login']!.click!;
  const { route } = script;
  script.route = (url, state) => (url.endsWith('/other') ? 'other' : route(url, state));
  const { browser, read, site } = scriptedSite(script);
  let asked = 0;
  const { outcome } = await run({
    script,
    input: {
      browser,
      // The page changes under the question, and the answer comes only once the flow waits no longer.
      input: ({ signal }) =>
        new Promise((resolve) => {
          if (++asked > 1) return;
          void browser.navigate('page-1', `${origin}/other`);
          signal.addEventListener('abort', () => resolve({ fieldValues: good }));
        }),
    },
    read,
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS', typed: good });
  expect(site.submits).toHaveLength(1);
});

test('a question that the page draws again while a person answers is the same question', async () => {
  const script = shop({ again: { url: `${origin}/login/step2`, reading: { kind: 'login', ...login } } });
  script.pages['again']!.click = script.pages['login']!.click!;
  const { route } = script;
  script.route = (url, state) => (url.endsWith('/again') ? 'again' : route(url, state));
  const { browser, read } = scriptedSite(script);
  let waits = 0;
  const { outcome, steps } = await run({
    script,
    input: {
      browser,
      input: ({ signal }) =>
        new Promise((resolve, reject) => {
          if (++waits > 1) return resolve({ fieldValues: good });
          signal.addEventListener('abort', () => reject(signal.reason as Error));
          void browser.navigate('page-1', `${origin}/again`);
        }),
    },
    read,
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS', typed: good });
  expect(waits).toBe(2);
  expect(steps.filter((step) => step === 'AWAITING_INPUT')).toHaveLength(1);
});
