import { expect, test } from 'vitest';
import { answering, login, origin, run, shop } from '../../../test/support/logins/scripted-flow.ts';
import { choice, field, scriptedSite, submit, type ScriptedPage } from '../../../test/support/logins/scripted-site.ts';
import { submittedTo } from '../submit.ts';
import type { FlowState, Submitted } from './types.ts';

const connection = { id: 'con_1', domain: 'shop.example', allowedDomains: ['partner.example'] };
const asksPassword: ScriptedPage['reading'] = { kind: 'login', fields: [field('password', 'password')], submit };
const answer = { fieldValues: { password: 'planted-new' } };

/** Pages that ask for something else under the same id. */
const others: Record<string, ScriptedPage> = {
  'another host': { url: 'https://partner.example/login', reading: asksPassword },
  'a frame of another host': { url: `${origin}/login`, frame: 'https://partner.example', reading: asksPassword },
  'another label': {
    url: `${origin}/login`,
    reading: { ...asksPassword, fields: [field('password', 'password', { label: 'PIN of your card' })] },
  },
  'another kind of field': {
    url: `${origin}/login`,
    reading: { ...asksPassword, fields: [field('text', 'password', { key: 'security_answer' })] },
  },
};

/** Asks for a password and then for something else; the person's answer is to the first question. */
async function answeredLate(other: ScriptedPage, when: 'before it is typed' | 'before it is taken') {
  const script = shop({ login: { url: `${origin}/login`, reading: asksPassword }, other });
  script.route = (url) => (url.endsWith('/other') ? 'other' : 'login');
  const { browser, read, site } = scriptedSite(script);
  const reports: FlowState[] = [];
  const given: Submitted[] = [];
  const { outcome } = await run({
    script,
    read,
    input: {
      browser,
      connection,
      report: async (state) => void reports.push(state),
      input: async ({ signal }) => {
        const first = reports.find(({ fields }) => fields.length > 0);
        if (given.length === 0 && when === 'before it is typed') {
          await browser.navigate('page-1', `${origin}/other`);
          given.push(answering(first, answer));
          return given[0]!;
        }
        if (given.length === 0) void browser.navigate('page-1', `${origin}/other`);
        if (given.length === 0 && reports.filter(({ fields }) => fields.length > 0).length > 1) {
          given.push(answering(first, answer));
          return given[0]!;
        }
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        );
      },
    },
  });
  return { outcome, asked: reports.filter(({ fields }) => fields.length > 0), given, site };
}

for (const when of ['before it is typed', 'before it is taken'] as const)
  test.each(Object.keys(others))(`an answer is not used for %s that the page asks for ${when}`, async (other) => {
    const { outcome, asked, given, site } = await answeredLate(others[other]!, when);
    expect(given).toHaveLength(1);
    expect([[...site.values], site.submits]).toEqual([[], []]);
    expect(asked).toHaveLength(2);
    expect(outcome.errorCode).toBe('awaiting_input_timeout');
  });

test('an answer that does not say to which question it is cannot reach another host under the same id', async () => {
  const { asked } = await answeredLate(others['another host']!, 'before it is taken');
  const late = asked[1]!;
  for (const request of [{ field_values: answer.fieldValues }, { fields: answer.fieldValues }])
    expect(() => submittedTo(late, request)).toThrow(/asks for no field 'password' now/);
  const { id } = late.fields[0]!;
  expect(submittedTo(late, { field_values: { [id]: 'other' } })).toMatchObject({ fieldValues: { [id]: 'other' } });
  expect([asked[0]!.fields[0]!.id, id]).toEqual(['password', 'password@partner.example']);
});

test('a login reports every question of a page, and only some of very many options', async () => {
  const options = Array.from({ length: 100 }, (_, at) => ({
    label: `${at} ${'x'.repeat(90)}`,
    value: `${at} ${'y'.repeat(190)}`,
    selected: false,
  }));
  const fields = Array.from({ length: 40 }, (_, at) => field('text', 'text', { id: `option_${at}`, options }));
  const script = shop({ login: { url: `${origin}/login`, reading: { kind: 'login', fields, submit } } });
  const { reports } = await run({ script });
  const asked = reports.find((state) => state.fields.length > 0)!;
  expect(asked.fields).toHaveLength(40);
  expect(JSON.stringify(asked).length).toBeLessThan(80_000);
  expect(asked.fields[0]!.options).toHaveLength(100);
  expect(asked.fields[39]!.options).toEqual([]);
});

test('seconds that a page counts in a label do not make another question', async () => {
  let looks = 0;
  const script = shop({ login: { url: `${origin}/login`, reading: asksPassword } });
  Object.defineProperty(script.pages['login']!, 'reading', {
    get: () => ({
      ...asksPassword,
      fields: [field('password', 'password', { label: `Password (${60 - looks++} s)` })],
    }),
  });
  const { site } = await run({ script, submits: [answer] });
  expect([...site.values.values()]).toEqual(['planted-new']);
});

test('a choice that the page exchanges for another is not taken', async () => {
  const chooses = (label: string) => ({
    kind: 'choice' as const,
    choices: [choice('sign_in_method', 'one', { label }), choice('sign_in_method', 'two', { label: 'Other' })],
  });
  const script = shop({
    login: { url: `${origin}/login`, reading: chooses('By password'), click: { one: () => 'home' } },
    other: { url: `${origin}/login`, reading: chooses('Delete my account'), click: { one: () => 'home' } },
  });
  script.route = (url) => (url.endsWith('/other') ? 'other' : 'login');
  const { browser, read, site } = scriptedSite(script);
  let waits = 0;
  await run({
    script,
    read,
    input: {
      browser,
      input: async ({ signal }) => {
        if (++waits > 1)
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
        await browser.navigate('page-1', `${origin}/other`);
        return { choiceId: 'one' };
      },
    },
  });
  expect(site.log.filter((act) => act.startsWith('click'))).toEqual([]);
  expect(waits).toBeGreaterThan(1);
});

test('values that a person typed at the site are not typed into a frame of an identity provider in a page of the site', async () => {
  const host = 'acme.okta.com';
  const script = shop({
    login: { url: `${origin}/login`, reading: { kind: 'login', ...login }, click: { submit: () => 'framed' } },
    framed: {
      url: `${origin}/sso`,
      frame: `https://${host}`,
      reading: { kind: 'login', ...login },
      click: { submit: () => 'home' },
    },
  });
  const mine = { username: 'ann-planted', password: 'planted-new' };
  const { site, reports } = await run({
    script,
    submits: [{ fieldValues: mine }],
    input: { connection: { ...connection, ssoHosts: { [host]: () => false } } },
  });
  expect(site.submits).toEqual([mine]);
  expect(reports.filter(({ fields }) => fields.length === 2)).toHaveLength(2);
});

test('the host that a value is learned for is the one of its document', async () => {
  const host = 'acme.okta.com';
  const script = shop({
    login: {
      url: `${origin}/login`,
      frame: `https://${host}`,
      reading: { kind: 'login', ...login },
      click: { submit: (site) => (site.cookies.set('session', '1'), (site.loggedIn = true), 'home') },
    },
  });
  const { outcome } = await run({
    script,
    submits: [{ fieldValues: { username: 'ann-planted', password: 'planted-new' } }],
    input: { connection: { ...connection, ssoHosts: { [host]: () => false } } },
  });
  expect(outcome).toMatchObject({ status: 'SUCCESS', ssoHosts: { [host]: ['username', 'password'] } });
});

test('a value of the credential is not tried in a frame of an identity provider that it is not for', async () => {
  const host = 'acme.okta.com';
  const script = shop({
    login: { url: `${origin}/login`, frame: `https://${host}`, reading: { kind: 'login', ...login }, click: {} },
  });
  const { outcome, reports } = await run({
    script,
    values: { username: 'ann-planted', password: 'planted-new' },
    input: { connection: { ...connection, ssoHosts: { [host]: () => false } } },
  });
  expect(reports.some(({ step }) => step === 'AWAITING_INPUT')).toBe(true);
  expect(outcome.errorCode).toBe('awaiting_input_timeout');
});

test('an error text that the site describes its fields by is reported once', async () => {
  const text = 'That did not work';
  const described = (hint: string) => [
    field('identifier', 'username', { hint: 'Your number' }),
    field('password', 'password', { hint }),
  ];
  const refused: ScriptedPage = {
    url: `${origin}/login`,
    reading: {
      kind: 'login',
      fields: described(`${text}.`),
      submit,
      error: { text, kind: 'credentials', fresh: true },
    },
  };
  const { reports } = await run({
    script: shop({ refused }),
    submits: [{ fieldValues: { username: 'ann', password: 'planted-wrong' } }],
  });
  const asked = reports.findLast(({ fields }) => fields.length > 0)!;
  expect(asked.websiteError).toBe(text);
  expect(asked.fields.map(({ hint }) => hint)).toEqual(['Your number', undefined]);
});
