import type { OpenCredential } from '../../credentials/service.ts';
import type { ReadChoice, Reading } from '../reading/types.ts';
import { isCode, takesGenerated } from './codes.ts';
import { isAttended, type Flow } from './context.ts';
import { wantedProvider } from './permission.ts';
import { hashOf } from './signs.ts';
import type { Look } from './types.ts';
import { prepared } from './values.ts';

interface Chosen {
  choice: ReadChoice;
  why: string;
}

/** The choice to take without a person, if one is plainly right. A choice without effect is not taken again. */
export function chooseAlone(flow: Flow, look: Look): Chosen | undefined {
  const { reading, snapshot } = look;
  const open = reading.choices.filter((choice) => !flow.attempt.hasTried(look, choice));
  if (open.length === 0) return undefined;
  return (
    providerWanted(flow, open, snapshot.url) ??
    learned(flow, open, reading) ??
    secondFactor(flow, open, reading) ??
    (reading.kind === 'choice' && reading.fields.length === 0 ? plainly(flow, open, reading) : undefined)
  );
}

/** The credential or the connection names the identity provider. */
function providerWanted(flow: Flow, open: ReadChoice[], url: string): Chosen | undefined {
  const wanted = wantedProvider(flow);
  if (wanted === undefined || !flow.hosts.own(url)) return undefined;
  const choice = open.find(
    ({ type, provider, label }) =>
      type === 'sso_provider' &&
      (same(provider, wanted) || (provider === undefined && label.toLowerCase().includes(wanted.toLowerCase()))),
  );
  return choice && { choice, why: `The login goes through ${wanted}.` };
}

/** The last login took the same choice. */
function learned(flow: Flow, open: ReadChoice[], reading: Reading): Chosen | undefined {
  const { credential } = flow.page;
  const clicks = flow.input.recipe?.steps.flatMap(({ click }) => (click?.choice ? [click] : [])) ?? [];
  // The site asks at once for what another way was taken to the last time.
  const there = credential?.totp !== undefined && asksGenerated(reading);
  for (const { choice: before, label } of clicks) {
    if (there && before?.mfaType) continue;
    const isIt = (one: ReadChoice) =>
      before?.account === undefined
        ? one.label === label || flow.scrub.text(one.label) === label || before?.mfaType
        : hashOf(one.label) === before.account;
    const choice = open.find((one) => one.type === before?.type && one.mfaType === before.mfaType && isIt(one));
    if (choice) return { choice, why: 'The last login took the same choice.' };
  }
  return undefined;
}

const asksGenerated = (reading: Reading) =>
  reading.fields.some((field) => isCode(field) && takesGenerated(field, reading));

/** A code can be generated, or a password is at hand, so there is no need to wait for a person. */
function secondFactor(flow: Flow, open: ReadChoice[], reading: Reading): Chosen | undefined {
  const { credential } = flow.page;
  const of = (type: ReadChoice['mfaType']) => open.find(({ mfaType }) => mfaType === type);
  const generates = credential?.totp !== undefined && asksGenerated(reading);
  if (credential?.totp && !generates && reading.kind !== 'login') {
    const app = of('totp');
    if (app) return { choice: app, why: 'Codes of the authenticator app can be generated.' };
    const other = of('switch');
    if (other) return { choice: other, why: 'Another way may take a code of the authenticator app.' };
  }
  const sent = reading.kind === 'login' || reading.kind === 'code' ? undefined : sentTo(credential?.codeSources, of);
  if (sent) return { choice: sent, why: 'The service can read the code that is sent there.' };
  const hasPassword = Object.keys(credential?.values ?? {}).some((name) => /pass|pwd/i.test(name));
  // A site that knows the account from before may send a code at once, and take the password instead.
  const insteadOfCode = reading.kind === 'code' && !generates && !flow.factors.hasSubmittedPassword;
  const password =
    hasPassword && (insteadOfCode || ['external', 'choice', 'passkey'].includes(reading.kind))
      ? of('password')
      : undefined;
  return password && { choice: password, why: 'The credential has a password.' };
}

/** The way to a code that a source of the credential has. A webhook may have the codes of mails or those of text messages. */
function sentTo(sources: OpenCredential['codeSources'], of: (type: ReadChoice['mfaType']) => ReadChoice | undefined) {
  if (!sources?.length) return undefined;
  return sources.includes('imap') ? of('email') : (of('sms') ?? of('email'));
}

function plainly(flow: Flow, open: ReadChoice[], reading: Reading): Chosen | undefined {
  const { credential } = flow.page;
  const { entries } = prepared(credential?.values ?? {});
  const byAccount = accountOf(flow, open, reading, entries);
  if (byAccount) return byAccount;
  const kinds = entries
    .filter(({ name }) => /type|method|role|source/i.test(name))
    .flatMap(({ word }) => word || [])
    .slice(0, mostNames);
  const named = open.find(({ label }) => {
    const lower = label.toLowerCase();
    return kinds.some((kind) => lower.includes(kind));
  });
  if (named) return { choice: named, why: 'The credential names it.' };
  const [only] = open;
  // The only way in, even if it opens an identity provider. The values that are typed there depend on the host.
  if (only && reading.choices.length === 1 && (only.type !== 'sso_provider' || credential))
    return { choice: only, why: 'There is only one choice.' };
  return undefined;
}

const peerTypes = new Set<string>(['sign_in_method', 'auth_method', 'other'] satisfies ReadChoice['type'][]);

/** More names of one account than any credential has, and the longest: a mail address. */
const mostNames = 40;
const longestName = 254;

/** The account of the credential, among those that the site remembers. */
function accountOf(
  flow: Flow,
  open: ReadChoice[],
  reading: Reading,
  values: ReturnType<typeof prepared>['entries'],
): Chosen | undefined {
  const ids = values.filter(({ secret }) => !secret).map(({ value }) => value);
  const names = [...flow.person.typedAt(open[0]?.origin).values(), ...ids]
    .filter(({ length }) => length > 2 && length <= longestName)
    .slice(0, mostNames)
    .map((name) => name.toLowerCase());
  const isOurs = ({ label, description, target }: ReadChoice) =>
    [label, description, target].some((text) => text !== undefined && tellsOneOf(text, names));
  const accounts = open.filter(({ type }) => type === 'account');
  // A page that is not known as one to choose an account on. A way to get a code may name the account too.
  const peers = open.filter(({ type, mfaType }) => peerTypes.has(type) && mfaType === undefined);
  const ours = accounts.find(isOurs) ?? peers.find(isOurs);
  if (ours) return { choice: ours, why: 'The account is the one of the credential.' };
  // After the password, the user name is no longer asked for.
  if (names.length === 0 || flow.factors.hasSubmittedPassword) return undefined;
  const other = accounts.find(({ id }) => id.startsWith('account_other'));
  if (other) return { choice: other, why: 'None of the accounts is known to be the one of the credential.' };
  const { flowType, recipe } = flow.input;
  const isNew = recipe !== undefined && !recipe.steps.some(({ click }) => click?.choice);
  const last = peers.at(-1);
  // The last login had no such question: the site remembers it. In no known language, "another account" is the last of them.
  if (flowType === 'REAUTH' && isNew && last && reading.next.length === 0 && !isAttended(flow))
    return {
      choice: last,
      why: 'The site did not ask for it the last time, and the last of them is mostly for others.',
    };
  return undefined;
}

/** A text names an account in full, or with characters left out: `a•••@example.com`. */
function tellsOneOf(text: string, names: readonly string[]): boolean {
  const plain = text.toLowerCase();
  if (names.some((name) => plain.includes(name))) return true;
  const masked = plain
    .split(/[\s,;()<>]+/)
    .map((word) => word.split(/[*•·●…]+|\.{3,}/))
    .filter((parts) => parts.length > 1);
  return masked.some((parts) => names.some((name) => fits(parts, name)));
}

function fits(parts: readonly string[], wanted: string): boolean {
  const shown = parts.reduce((sum, { length }) => sum + length, 0);
  if (shown < 3 || shown >= wanted.length) return false;
  const [first = '', ...rest] = parts;
  let at = first.length;
  if (!wanted.startsWith(first) || !wanted.endsWith(rest.at(-1) ?? '')) return false;
  return rest.every((part) => {
    const found = wanted.indexOf(part, at);
    at = found + part.length;
    return found >= 0;
  });
}

const same = (one: string | undefined, other: string) => one?.toLowerCase() === other.toLowerCase();
