import { expect } from 'vitest';
import type { OpenCredential } from '../../../src/credentials/service.ts';
import type { TotpCode } from '../../../src/credentials/totp.ts';
import type { Reader } from '../../../src/logins/flow/types.ts';
import { runWith } from '../../../src/logins/flow/state-loop.ts';
import type { Explained, FlowInput, FlowState, Submitted } from '../../../src/logins/flow/types.ts';
import type { Reading } from '../../../src/logins/reading/types.ts';
import { field, scriptedSite, submit, type Script, type ScriptedPage, type SiteState } from './scripted-site.ts';

export const origin = 'https://shop.example';
export const good = { username: 'alice-planted', password: 'planted-secret-1' };
export const login = { fields: [field('identifier', 'username'), field('password', 'password')], submit };
export const error = (text: string, kind: NonNullable<Reading['error']>['kind'] = 'credentials') => ({
  text,
  kind,
  fresh: true,
});

/** The usual site: a form, an account, and an error for a wrong password. Cases change what they are about. */
export function shop(
  changes: Record<string, ScriptedPage> = {},
  accepted: (site: SiteState) => string = () => 'home',
): Script {
  const submits = (site: SiteState) => {
    site.cookies.set('session', String(site.submits.length));
    const { username, password } = Object.fromEntries(site.values);
    return username === good.username && password === good.password ? accepted(site) : 'refused';
  };
  return {
    pages: {
      login: { url: `${origin}/login`, reading: { kind: 'login', ...login }, click: { submit: submits } },
      refused: {
        url: `${origin}/login`,
        reading: { kind: 'login', ...login, error: error('That did not work') },
        click: { submit: submits },
      },
      home: { url: `${origin}/home`, reading: { kind: 'signed_in' }, texts: [`Hello ${good.username}`] },
      ...changes,
    },
    route: (url, site) => (site.loggedIn || url.endsWith('/home') ? (isIn(site) ? 'home' : 'login') : 'login'),
  };
}

/** A submit as `submittedTo` makes it: for the questions of the last report, unless the case says which. */
export const answering = (asked: FlowState | undefined, submitted: Submitted): Submitted => ({
  questions: [...(asked?.fields ?? []), ...(asked?.choices ?? [])].flatMap(({ question }) => question ?? []),
  ...submitted,
});

export const fast = { page: 20_000, input: 700, external: 700, patience: 10, every: 20, coming: 150 };

export const isIn = (site: SiteState) => site.submits.some((one) => one['password'] === good.password) || site.loggedIn;

export interface Case {
  script: Script;
  values?: Record<string, string>;
  totp?: () => Promise<TotpCode | undefined>;
  codeSources?: OpenCredential['codeSources'];
  submits?: Submitted[];
  input?: Partial<FlowInput>;
  /** With a browser of another site than the script's. */
  read?: Reader;
}

export async function run({ script, values, totp, codeSources, submits = [], input = {}, ...given }: Case) {
  const { browser, read, site } = scriptedSite(script);
  const reports: FlowState[] = [];
  const notes: Explained[] = [];
  const queue = [...submits];
  const next: FlowInput['input'] = ({ signal }) =>
    queue.length > 0
      ? Promise.resolve(queue.shift()!)
      : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const outcome = await runWith(given.read ?? read, {
    connection: { id: 'con_1', domain: 'shop.example', allowedDomains: [] },
    flowType: 'LOGIN',
    browser,
    credential: async () =>
      values && {
        values,
        codeSources,
        ...(totp && { totp: { secret: 'ABCDEFGH', algorithm: 'SHA1', digits: 6, period: 30 } }),
      },
    totp: totp ?? (async () => undefined),
    mayEnrol: false,
    report: async (state) => void reports.push(state),
    record: (note) => void notes.push(note),
    signal: new AbortController().signal,
    deadlines: fast,
    ...input,
    input: async (wanted) => answering(reports.at(-1), await (input.input ?? next)(wanted)),
  });
  // Invariants of every flow.
  const { typed, totpSecret, passkeys, acceptedCodes, cause, ...shown } = outcome;
  expect(cause).toBeUndefined();
  const published = JSON.stringify([reports, notes, shown]);
  for (const secret of [good.password, 'planted-wrong', 'planted-new', '424242', '434343'])
    expect(published).not.toContain(secret);
  const passwords = site.submits.flatMap((one) => one['password'] ?? []);
  for (const password of passwords) expect(passwords.filter((one) => one === password).length).toBeLessThanOrEqual(2);
  return {
    outcome,
    reports,
    notes,
    site,
    steps: reports.map((one) => one.step),
    typed,
    totpSecret,
    passkeys,
    acceptedCodes,
  };
}
