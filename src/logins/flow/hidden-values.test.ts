import { expect, test } from 'vitest';
import { error, good, isIn, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import { choice, field, step, submit } from '../../../test/support/logins/scripted-site.ts';

test('a login shows no password that the page repeats beside its questions', async () => {
  const repeats = `Not ${good.password}`;
  const { reports } = await run({
    script: shop({
      refused: {
        url: `${origin}/login`,
        reading: {
          kind: 'login',
          submit,
          fields: [
            field('identifier', 'username', { label: `User ${good.username}` }),
            field('password', 'password', {
              label: repeats,
              hint: repeats,
              placeholder: repeats,
              selectors: [`label=${repeats}`],
            }),
            field('text', 'tenant', { options: [{ label: repeats, value: good.password, selected: false }] }),
          ],
          choices: [
            choice('account', 'other', { label: repeats, description: repeats }),
            choice('mfa_method', `mfa_${good.password}`, {
              ref: 'mfa',
              target: repeats,
              selectors: [`text=${repeats}`],
            }),
            choice('sso_provider', 'sso', { provider: repeats }),
          ],
          error: error('Wrong'),
        },
      },
      login: { ...shop().pages['login']!, click: { submit: () => 'refused' } },
    }),
    submits: [{ fieldValues: good }],
  });
  const asked = reports.filter(({ step }) => step === 'AWAITING_INPUT');
  expect(asked).toHaveLength(2);
  expect(JSON.stringify(asked)).not.toContain(good.password);
  expect(asked[1]!.fields[0]!.label).toContain(good.username); // a person must know which account it is
});

test('a login shows no secret of HTTP Basic and of a new authenticator app beside its questions', async () => {
  const totpSecret = 'PLANTEDSECRETABC';
  const asks = (repeats: string) => ({
    url: `${origin}/more`,
    reading: {
      kind: 'choice' as const,
      choices: ['one', 'two'].map((id) => choice('other', id, { label: repeats })),
    },
  });
  const basic = await run({
    script: {
      pages: {
        basic: { url: `${origin}/`, basic: true, status: 401, reading: { kind: 'basic' } },
        more: asks(`Not ${good.password}`),
      },
      route: () => 'basic',
      basic: () => 'more',
    },
    values: good,
  });
  expect(basic.steps).toContain('AWAITING_INPUT');
  const code = field('code', 'code');
  const enrol = await run({
    script: shop({
      login: {
        url: `${origin}/login`,
        reading: { kind: 'enrol_totp', totpSecret, fields: [code], submit },
        click: { submit: () => 'more' },
      },
      more: asks(`Keep ${totpSecret}`),
    }),
    input: { mayEnrol: true },
  });
  expect(enrol.steps).toContain('AWAITING_INPUT');
  expect(JSON.stringify([enrol.reports, enrol.notes])).not.toContain(totpSecret);
});

test('a login keeps no address with a secret in it, and no part of one in its records', async () => {
  const long = `${'x'.repeat(190)}${good.password}`;
  const script = shop({
    home: {
      url: `${origin}/home/${good.password}?next=${good.password}`,
      reading: { kind: 'signed_in' },
      texts: [long],
    },
  });
  script.route = (_url, site) => (isIn(site) ? 'home' : 'login');
  const { outcome, notes } = await run({ script, values: good });
  expect(outcome).toMatchObject({ status: 'SUCCESS', postLoginUrl: `${origin}/` });
  expect(JSON.stringify([outcome.recipe, notes])).not.toContain(good.password.slice(0, 10));
});

test('a login records no page with the secret of an authenticator app, also where it is skipped', async () => {
  const totpSecret = 'JBSW Y3DP EHPK 3PXP';
  const script = shop({
    login: {
      url: `${origin}/login`,
      reading: { kind: 'interstitial', totpSecret, next: [step('skip', 'Later')] },
      texts: [`Enter this key: ${totpSecret}`],
      click: { Later: (site) => (site.cookies.set('session', '1'), (site.loggedIn = true), 'home') },
    },
  });
  const { notes } = await run({ script });
  expect(notes.length).toBeGreaterThan(0);
  expect(JSON.stringify(notes)).not.toContain('JBSW');
});
