import { afterAll, beforeAll, expect, test } from 'vitest';
import { openForms } from '../../src/chromium/forms/forms.ts';
import { parseTotp, totpCode } from '../../src/credentials/totp.ts';
import { checkWith } from '../../src/logins/flow/health.ts';
import { runWith } from '../../src/logins/flow/state-loop.ts';
import type { Explained, FlowInput, FlowState, Submitted } from '../../src/logins/flow/types.ts';
import { read } from '../../src/logins/reading/read.ts';
import { person } from '../support/logins/gallery/page.ts';
import { startGallery, type Gallery } from '../support/logins/gallery/site.ts';
import { startWindowsSite, type WindowsSite } from '../support/logins/windows-site.ts';
import { answering } from '../support/logins/scripted-flow.ts';
import { muxServer, type MuxServer } from '../support/mux-server.ts';

let server: MuxServer;
let gallery: Gallery;
let windows: WindowsSite;
let forms: ReturnType<typeof openForms>;

beforeAll(async () => {
  gallery = await startGallery();
  windows = await startWindowsSite({ username: email, password });
  server = await muxServer();
  forms = openForms(server.mux);
});

afterAll(async () => {
  forms?.dispose();
  await server?.stop();
  await gallery?.close();
  await windows?.close();
});

const { email, password } = person;
const signal = new AbortController().signal;
const totp = parseTotp(person.totpSecret);
const wrongPassword = 'planted wrong 8';

interface Given extends Partial<FlowInput> {
  /** What a person answers to the questions, one after the other. */
  answers?: ((asked: FlowState) => Submitted)[];
  values?: Record<string, string>;
}

/** One flow at a page of the gallery, or at an address. Its reports never contain a password or a code. */
async function login(page: string, { answers = [], values = { email, password }, ...input }: Given = {}) {
  const reports: FlowState[] = [];
  const notes: Explained[] = [];
  const loginUrl = URL.canParse(page) ? page : `${gallery.url}/${page}`;
  const connection = { id: 'con_1', domain: new URL(loginUrl).hostname, loginUrl, allowedDomains: [] };
  const outcome = await runWith(read, {
    connection,
    flowType: 'LOGIN',
    browser: forms,
    credential: async () => ({ values, totp }),
    totp: async () => totpCode(totp),
    mayEnrol: false,
    report: async (state) => void reports.push(state),
    input: (wanted) =>
      new Promise((resolve, reject) => {
        wanted.signal.addEventListener('abort', () => reject(wanted.signal.reason as Error));
        const answer = answers.shift();
        if (answer) resolve(answering(reports.at(-1), answer(reports.at(-1)!)));
      }),
    record: (note) => void notes.push(note),
    signal,
    ...input,
  });
  expect(outcome.cause).toBeUndefined();
  const { typed: _typed, acceptedCodes: _codes, ...visible } = outcome;
  const all = JSON.stringify([visible, reports, notes]);
  for (const secret of [password, wrongPassword, person.code]) expect(all).not.toContain(secret);
  return { outcome, reports, notes, connection };
}

const byKey =
  (given: Record<string, string>) =>
  ({ fields }: FlowState): Submitted => ({
    fieldValues: Object.fromEntries(fields.flatMap(({ id, key }) => (given[key] ? [[id, given[key]]] : []))),
  });

test.each([
  ['plain-en', 'credentials_invalid', 'Invalid username or password.'],
  ['shadow-de', 'credentials_invalid', 'Anmeldung fehlgeschlagen: Benutzername oder Passwort ungültig.'],
  ['unknown-language', 'credentials_invalid', 'Sellist kasutajat pole või on parool vale.'],
  ['robot-de', 'captcha_blocked', undefined],
  ['locked-fr', 'website_error', 'Votre compte est bloqué. Contactez le support.'],
  ['passkey-only-en', 'unsupported_auth_method', undefined],
])('%s ends with its reason for a wrong password', async (page, errorCode, websiteError) => {
  const { outcome } = await login(page, { values: { email, password: wrongPassword } });
  expect(outcome).toMatchObject({ status: 'FAILED', errorCode, typed: {} });
  expect(outcome.websiteError).toBe(websiteError);
});

test.each(['identifier-first-en', 'totp-en', 'frame-fr', 'sso-choice-en', 'stay-en', 'basic-en'])(
  '%s is logged in at with a credential',
  async (page) => {
    const { outcome } = await login(page);
    expect(outcome).toMatchObject({ status: 'SUCCESS', typed: {} });
    expect(outcome.recipe?.steps).not.toEqual([]);
  },
);

test('a login that the site ended is found by a check, and done again by its recipe', async () => {
  const page = 'cookies-de';
  const { outcome, connection } = await login(page);
  const { postLoginUrl, recipe } = outcome;
  const check = () => checkWith(read, { browser: forms, connection: { ...connection, postLoginUrl }, recipe, signal });
  expect(await check()).toBe('authenticated');
  await forms.close(await forms.open(`${gallery.url}/${page}/logout`));
  expect(await check()).toBe('needs_auth');

  const again = await login(page, { flowType: 'REAUTH', recipe });
  expect(again.outcome.status).toBe('SUCCESS');
  expect(again.notes.some(({ decision }) => decision.startsWith('The recipe'))).toBe(true);
});

test('a person sees the error of the site, types again, and gives the code of a mail', async () => {
  const { outcome, reports } = await login('six-boxes-fr', {
    values: {},
    answers: [byKey({ email, password: wrongPassword }), byKey({ email, password }), () => ({ code: person.code })],
    credential: async () => undefined,
    totp: async () => undefined,
  });
  const asked = reports.filter(({ step }) => step === 'AWAITING_INPUT');
  expect(asked.map(({ fields, websiteError }) => [fields.map(({ type }) => type), websiteError])).toEqual([
    [['identifier', 'password'], undefined],
    [['identifier', 'password'], 'Identifiants invalides'],
    [['code'], undefined],
  ]);
  expect(outcome).toMatchObject({ status: 'SUCCESS', typed: { email, password }, requirements: { codes: ['email'] } });
});

test('a passkey that the site demands is created, used at once, and used to log in again', async () => {
  const page = `${windows.url}/key`;
  const first = await login(page, { mayEnrol: true });
  expect(first.outcome).toMatchObject({ status: 'SUCCESS', requirements: { passkey: true }, typed: {} });
  expect(windows.answered).toEqual(['right password', 'passkey created', 'passkey used']);
  const { passkeys, recipe } = first.outcome;
  expect(passkeys).toMatchObject([{ rpId: 'localhost', privateKey: expect.any(String) }]);
  expect(JSON.stringify([first.notes, first.reports, recipe])).not.toContain(passkeys![0]!.privateKey);

  windows.endSessions();
  windows.answered.length = 0;
  const old = await forms.pages();
  await forms.open(windows.url); // without the passkeys of the others
  for (const { pageId } of old) await forms.close(pageId);
  await expect.poll(async () => (await forms.pages()).length, { timeout: 60_000 }).toBe(1);
  const again = await login(page, { flowType: 'REAUTH', recipe, passkeys, mayEnrol: true });
  expect(again.outcome.status).toBe('SUCCESS');
  expect(windows.answered).toEqual(['passkey used']);
  expect(again.outcome.passkeys![0]!.signCount).toBeGreaterThan(passkeys![0]!.signCount);
});

test('a window that does not know which page opened it is followed', async () => {
  windows.answered.length = 0;
  windows.endSessions();
  const { outcome } = await login(`${windows.url}/partner`);
  expect(outcome.status).toBe('SUCCESS');
  expect(windows.answered).toEqual(['right password']);
});
