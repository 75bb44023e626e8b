import { describe, expect, test } from 'vitest';
import { error, fast, good, login, origin, run, shop, type Case } from '../../../test/support/logins/scripted-flow.ts';
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
import { FormsError } from './browser.ts';

const connection = { id: 'con_1', domain: 'shop.example', allowedDomains: [] };

describe('a login ends with the right reason', () => {
  const at = (reading: ScriptedPage['reading'], more: Partial<ScriptedPage> = {}): Script => ({
    ...shop({ only: { url: `${origin}/login`, reading, ...more } }),
    route: () => 'only',
  });
  const cases: Record<string, Case & { code: string; status?: string; websiteError?: string }> = {
    'a wrong password of the credential': {
      script: shop(),
      values: { ...good, password: 'planted-wrong' },
      code: 'credentials_invalid',
      websiteError: 'That did not work',
    },
    'a wrong password that opens the start page without a message': {
      script: {
        ...shop({
          login: {
            url: `${origin}/login`,
            reading: { kind: 'login', ...login },
            click: { submit: (site) => (site.cookies.set('s', String(site.submits.length)), 'front') },
          },
          front: {
            url: `${origin}/`,
            reading: { kind: 'unknown', next: [step('entry', 'Log in')] },
            click: { 'Log in': () => 'login' },
          },
        }),
        route: (url) => (url.endsWith('/login') ? 'login' : 'front'),
      },
      values: { ...good, password: 'planted-wrong' },
      code: 'credentials_invalid',
    },
    'a form that comes back without a word': {
      script: shop({
        login: { url: `${origin}/login`, reading: { kind: 'login', ...login }, click: { submit: () => 'login' } },
      }),
      values: good,
      code: 'credentials_invalid',
    },
    'a page that comes back after every click': {
      script: {
        ...at({ kind: 'login', fields: [field('identifier', 'email')], submit }, { click: { submit: () => 'only' } }),
      },
      values: good,
      code: 'stuck_in_loop',
    },
    'a captcha': { script: at({ kind: 'captcha', ...login }), values: good, code: 'captcha_blocked' },
    'a check for robots': { script: at({ kind: 'captcha' }, { status: 403 }), values: good, code: 'bot_detected' },
    'a locked account': {
      script: at({ kind: 'locked', error: error('Locked', 'locked') }),
      values: good,
      code: 'website_error',
      websiteError: 'Locked',
    },
    maintenance: { script: at({ kind: 'maintenance' }, { status: 503 }), values: good, code: 'website_error' },
    'too many attempts': {
      script: shop({
        refused: { url: `${origin}/login`, reading: { kind: 'login', ...login, error: error('Later', 'rate') } },
      }),
      values: { ...good, password: 'planted-wrong' },
      code: 'max_attempts_reached',
    },
    'five refusals of a person’s passwords': {
      script: shop(),
      submits: [1, 2, 3, 4, 5].map((n) => ({ fieldValues: { ...good, password: `planted-wrong${n}` } })),
      code: 'max_attempts_reached',
    },
    'a host that is not allowed': {
      script: { ...at({ kind: 'login', ...login }, { url: 'https://evil.example/login' }) },
      values: good,
      code: 'domain_not_allowed',
    },
    'the only way in, by a host that is not allowed': {
      script: {
        ...shop({
          only: {
            url: `${origin}/login`,
            reading: { kind: 'choice', choices: [choice('sso_provider', 'sso', { provider: 'acme' })] },
            click: { sso: () => 'idp' },
          },
          idp: { url: 'https://id.elsewhere.example/', reading: { kind: 'login', ...login } },
        }),
        route: () => 'only',
      },
      values: good,
      code: 'domain_not_allowed',
    },
    'a form in a frame of a host that is not allowed': {
      script: at({ kind: 'login', ...login }, { frame: 'https://evil.example/form' }),
      code: 'domain_not_allowed',
    },
    'a site that does not answer': {
      script: { ...shop(), route: () => undefined },
      values: good,
      code: 'network_error',
    },
    'a login page that does not answer, of a site that does': {
      script: { ...at({ kind: 'unknown' }), route: (url) => (url.endsWith('/account') ? undefined : 'only') },
      values: good,
      input: { connection: { ...connection, loginUrl: `${origin}/account` } },
      code: 'network_error',
    },
    'a page where logins often are that does not answer': {
      script: { ...at({ kind: 'unknown' }), route: (url) => (url.endsWith('/signin') ? undefined : 'only') },
      values: good,
      code: 'network_error',
    },
    'a site that does not speak TLS, of which the connection does not say so': {
      script: { ...shop(), route: (url) => (url.startsWith('https:') ? undefined : 'login') },
      values: good,
      code: 'network_error',
    },
    'a login that is led from https to http': {
      script: { ...at({ kind: 'login', ...login }, { url: 'http://shop.example/login' }) },
      values: good,
      code: 'domain_not_allowed',
    },
    'a site that redirects its login to an identity provider that the connection does not name': {
      script: { ...at({ kind: 'login', ...login }, { url: 'https://login.microsoftonline.com/' }) },
      values: good,
      code: 'domain_not_allowed',
    },
    'an item of a provider that does not name the site': {
      script: shop(),
      input: { credential: async () => ({ values: good, hosts: ['https://other.example'] }) },
      code: 'domain_not_allowed',
    },
    'a site without a login form': { script: at({ kind: 'unknown' }), values: good, code: 'login_form_not_found' },
    'a passkey that is not there': {
      script: at({ kind: 'passkey', submit }),
      values: good,
      code: 'unsupported_auth_method',
    },
    'a button that is not there': { script: at({ kind: 'login', ...login }), values: good, code: 'element_not_found' },
    'no answer comes': { script: shop(), code: 'awaiting_input_timeout', status: 'EXPIRED' },
    'what the site waits for is not done': {
      script: at({ kind: 'external' }),
      code: 'external_action_timeout',
      status: 'EXPIRED',
    },
    'a re-authentication that needs a person outside': {
      script: at({ kind: 'external' }),
      input: { flowType: 'REAUTH' },
      code: 'external_action_required',
    },
    'a re-authentication that needs a code that is not pushed': {
      script: at({ kind: 'code', fields: [field('code', 'code')], submit }),
      input: { flowType: 'REAUTH' },
      code: 'mfa_required',
    },
    'interstitials without end': {
      script: (() => {
        const pages: Record<string, ScriptedPage> = {};
        for (let n = 0; n < 60; n++)
          pages[`p${n}`] = {
            url: `${origin}/p${n}`,
            reading: { kind: 'interstitial', next: [step('skip', 'Skip')] },
            click: { Skip: () => `p${n + 1}` },
          };
        return { ...shop(pages), route: () => 'p0' };
      })(),
      code: 'max_steps_exceeded',
    },
    'a login that starts again after the code, twice': {
      script: (() => {
        const script = shop(
          {
            code: {
              url: `${origin}/code`,
              reading: { kind: 'code', fields: [field('code', 'code')], submit },
              click: { submit: () => 'login' },
            },
          },
          () => 'code',
        );
        return { ...script, route: () => 'login' };
      })(),
      values: good,
      submits: [{ code: '424242' }, { code: '434343' }],
      code: 'session_expired',
    },
    'a login that only its page knows of': {
      script: { ...shop(), route: () => 'login' },
      values: good,
      code: 'flow_failed',
    },
    'a browser that has exited': {
      script: shop(),
      input: {
        browser: {
          ...scriptedSite(shop()).browser,
          snapshot: () => Promise.reject(new FormsError('frozen', 'The page does not answer.')),
        },
      },
      code: 'browser_error',
    },
    'a page after the login that leads nowhere': {
      script: shop({ home: { url: `${origin}/home`, status: 404, reading: { kind: 'unknown' } } }),
      values: good,
      code: 'navigation_confused',
    },
  };
  test.each(Object.entries(cases))('%s', async (_name, { code, status = 'FAILED', websiteError, ...rest }) => {
    const { outcome } = await run(rest);
    expect(outcome).toMatchObject({ status, errorCode: code, ...(websiteError && { websiteError }), typed: {} });
  });

  test('cancelled', async () => {
    const cancel = new AbortController();
    const { outcome } = await run({
      script: shop(),
      input: {
        signal: cancel.signal,
        report: async ({ step }) => (step === 'AWAITING_INPUT' ? cancel.abort() : undefined),
      },
    });
    expect(outcome).toEqual({ status: 'CANCELED', typed: {} });
  });

  test('the whole flow has an end too', async () => {
    const { outcome } = await run({ script: shop(), input: { deadlines: { ...fast, input: 60_000, total: 300 } } });
    expect(outcome.status).toBe('EXPIRED');
  });
});

// That no password is submitted a third time, and none is shown, is checked of every login here by `run`.
test('a login ends at a site that answers anything at all', async () => {
  const pages: Record<string, ScriptedPage['reading']> = {
    login: { kind: 'login', ...login },
    refused: { kind: 'login', ...login, error: error('No') },
    strange: { kind: 'login', ...login, error: error('Something', 'other') },
    name: { kind: 'login', fields: [field('identifier', 'username')], submit },
    secret: { kind: 'login', fields: [field('password', 'password')], submit },
    code: { kind: 'code', fields: [field('code', 'code')], submit },
    skip: { kind: 'interstitial', next: [step('skip', 'Skip')] },
    entry: { kind: 'entry', next: [step('entry', 'Log in')] },
    renew: { kind: 'change_password', ...login },
    nothing: { kind: 'unknown' },
    blank: { kind: 'blank' },
    home: { kind: 'signed_in' },
    captcha: { kind: 'captcha' },
    locked: { kind: 'locked', error: error('Locked', 'locked') },
  };
  const names = Object.keys(pages);
  const logins = Array.from({ length: 60 }, async (_, seed) => {
    let drawn = seed * 7919 + 1;
    const any = () => names[(drawn = (drawn * 48_271) % 2_147_483_647) % names.length]!;
    const click = {
      submit: (site: SiteState) => (site.cookies.set('s', String(drawn)), any()),
      Skip: any,
      'Log in': any,
    };
    const script: Script = {
      pages: Object.fromEntries(
        names.map((name) => [name, { url: `${origin}/${seed % 3 ? name : ''}`, reading: pages[name]!, click }]),
      ),
      route: any,
    };
    const person = Array.from({ length: 8 }, () => ({ fieldValues: { ...good, code: '424242' } }));
    const { outcome } = await run({ script, ...(seed % 2 ? { values: good } : { submits: person }) });
    expect(outcome.errorCode, `seed ${seed}`).not.toBe('internal_error');
    return outcome.errorCode ?? outcome.status;
  });
  expect(new Set(await Promise.all(logins)).size).toBeGreaterThan(4);
});
