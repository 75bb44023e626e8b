import { expect, test } from 'vitest';
import { good, origin, run, shop, type Case } from '../../../test/support/logins/scripted-flow.ts';
import {
  choice,
  field,
  step,
  submit,
  type Script,
  type ScriptedPage,
  type SiteState,
} from '../../../test/support/logins/scripted-site.ts';
import type { TotpCode } from '../../credentials/totp.ts';
import type { Recipe } from './types.ts';

/**
 * What a site shows when a profile comes back to it: it remembers the account, the device or the way that was taken the last
 * time. No person is there, and the credential has everything, so nothing may be asked.
 */
async function backAgain(before: Script, after: Script, more: Omit<Case, 'script'> = {}) {
  const first = await run({ values: good, ...more, script: before });
  expect(first.outcome.status).toBe('SUCCESS');
  const { recipe } = first.outcome;
  expect(JSON.stringify(recipe)).not.toMatch(/planted|Harbour/);
  const second = await run({
    values: good,
    ...more,
    submits: [],
    script: after,
    input: { ...more.input, flowType: 'REAUTH', recipe: recipe as Recipe },
  });
  return { status: second.outcome.status, asks: second.steps.includes('AWAITING_INPUT'), submits: second.site.submits };
}
const done = { status: 'SUCCESS', asks: false };

const enters = (site: SiteState) => (site.cookies.set('session', String(site.submits.length)), 'home');
const passwordPage: ScriptedPage = {
  url: `${origin}/password`,
  reading: { kind: 'login', fields: [field('password', 'password')], submit },
  click: { submit: (site) => (site.values.get('password') === good.password ? enters(site) : 'login') },
};
/** A site that shows another page first to those whom it knows. */
const welcomes = (welcome: ScriptedPage, more: Record<string, ScriptedPage> = {}): Script => {
  const script = shop({ welcome, password: passwordPage, ...more });
  return { ...script, route: (url, site) => (script.route(url, site) === 'home' ? 'home' : 'welcome') };
};
const picker = (choices: ReturnType<typeof choice>[], click: ScriptedPage['click'] = {}): ScriptedPage => ({
  url: `${origin}/welcome`,
  reading: { kind: 'choice', choices },
  click,
});
const toForm = { other: () => 'login' };
const another = choice('account', 'account_other', { ref: 'other', label: 'Use another account' });
const code = async (): Promise<TotpCode> => ({
  code: '424242',
  counter: 1,
  expiresAt: new Date(Date.now() + 60_000),
});
const totpPage: ScriptedPage = {
  url: `${origin}/code`,
  reading: {
    kind: 'code',
    fields: [field('totp_code', 'code')],
    submit,
    choices: [choice('mfa_method', 'mfa_switch', { mfaType: 'switch', label: 'Try another way' })],
  },
  click: {
    submit: (site) => (site.values.get('code') === '424242' ? enters(site) : 'login'),
    mfa_switch: () => 'ways',
  },
};
const smsPage: ScriptedPage = {
  url: `${origin}/code`,
  reading: {
    kind: 'code',
    fields: [field('code', 'code', { label: 'Code from the SMS', mfaType: 'sms' })],
    submit,
    choices: totpPage.reading.choices!,
  },
  click: { mfa_switch: () => 'ways' },
};

test('the account of the credential is taken among those that a site remembers', async () => {
  const ours = choice('account', 'account', { ref: 'ours', label: `Alice ${good.username}` });
  expect(
    await backAgain(shop(), welcomes(picker([another, ours], { ours: () => 'password', other: () => 'login' }))),
  ).toMatchObject(done);
});

test('the account is also recognised when the page masks some of its characters', async () => {
  const ours = choice('account', 'account', { ref: 'ours', label: 'al•••planted' });
  const theirs = choice('account', 'account_2', { ref: 'theirs', label: 'b•••planted' });
  expect(
    await backAgain(shop(), welcomes(picker([theirs, ours], { ours: () => 'password', theirs: () => 'refused' }))),
  ).toMatchObject(done);
});

test('an account that is shown by another name is not taken; the credential’s is typed', async () => {
  const known = choice('account', 'account', { ref: 'known', label: 'A. Liddell' });
  expect(await backAgain(shop(), welcomes(picker([known, another], toForm)))).toEqual({ ...done, submits: [good] });
});

test('a site that remembers accounts in a language that is not known is left by the last way', async () => {
  const choices = [choice('sign_in_method', 'one'), choice('sign_in_method', 'other')];
  expect(await backAgain(shop(), welcomes(picker(choices, toForm)))).toEqual({ ...done, submits: [good] });
});

test('a site that sends a code to an account that it remembers gets the password instead', async () => {
  const mail: ScriptedPage = {
    url: `${origin}/welcome`,
    reading: {
      kind: 'code',
      fields: [field('code', 'code', { label: 'Code from the e-mail', mfaType: 'email' })],
      submit,
      choices: [choice('mfa_method', 'mfa_password', { mfaType: 'password', label: 'Use your password' })],
    },
    click: { mfa_password: () => 'password' },
  };
  expect(await backAgain(shop(), welcomes(mail))).toMatchObject(done);
});

test('a way among radio buttons, which share their name, is the one of the last login', async () => {
  const ways = (order: ('sms' | 'app')[]): ScriptedPage => ({
    url: `${origin}/ways`,
    reading: {
      kind: 'choice',
      choices: order.map((id, at) =>
        choice('mfa_method', id, {
          mfaType: id === 'sms' ? 'sms' : 'totp',
          selectors: ['input[name="way"]', `label=${id}`, `form > label:nth-of-type(${at + 1})`],
        }),
      ),
    },
    click: { sms: () => 'sms', app: () => 'code' },
  });
  const site = (order: ('sms' | 'app')[]) => shop({ ways: ways(order), code: totpPage, sms: smsPage }, () => 'ways');
  expect(await backAgain(site(['sms', 'app']), site(['sms', 'app']), { totp: code })).toMatchObject(done);
  expect(await backAgain(site(['sms', 'app']), site(['app', 'sms']), { totp: code })).toMatchObject(done);
});

test('a site that asks at once for the way that was taken the last time is answered', async () => {
  const app = choice('mfa_method', 'app', { mfaType: 'totp' });
  const sms = choice('mfa_method', 'sms', { mfaType: 'sms' });
  const ways = (choices: (typeof app)[]): ScriptedPage => ({
    url: `${origin}/ways`,
    reading: { kind: 'choice', choices },
    click: { app: () => 'code', sms: () => 'sms' },
  });
  expect(
    await backAgain(
      shop({ sms: smsPage, ways: ways([sms, app]), code: totpPage }, () => 'sms'),
      shop({ sms: smsPage, ways: ways([sms]), code: totpPage }, () => 'code'),
      { totp: code },
    ),
  ).toMatchObject(done);
});

test('a workspace that a person chose is chosen again, though the name was remembered and the address is new', async () => {
  const ours = choice('account', 'account_2', { ref: 'ours', label: 'Harbour Office' });
  const theirs = choice('account', 'account', { ref: 'theirs', label: 'Head Office' });
  const workspaces = (path: string): ScriptedPage => ({
    ...picker([theirs, ours], { ours: enters, theirs: () => 'nowhere' }),
    url: origin + path,
  });
  const toWorkspace = { ...passwordPage, click: { submit: () => 'workspace' } };
  const before = shop({ workspace: workspaces('/org/17') }, () => 'workspace');
  const after = welcomes(toWorkspace, { workspace: workspaces('/org/23') });
  expect(await backAgain(before, after, { submits: [{ choiceId: 'account_2' }] })).toMatchObject(done);
});

test('a device that is to be remembered, and a password that is asked for once more, ask for no person', async () => {
  const stay: ScriptedPage = {
    url: `${origin}/device`,
    reading: { kind: 'interstitial', next: [step('stay_signed_in', 'Trust this device')] },
    click: { 'Trust this device': enters },
  };
  const confirm: ScriptedPage = { ...passwordPage, click: { submit: () => 'stay' } };
  expect(await backAgain(shop(), welcomes(confirm, { stay }))).toEqual({
    ...done,
    submits: [{ password: good.password }],
  });
});
