import type { ReadingKind, StepReason } from '../reading/types.ts';
import { entryAddresses, pageAddress } from './addresses.ts';
import type { StateFingerprint } from './browser.ts';
import { isPast } from './decide.ts';
import { FlowEnd } from './ends.ts';
import { explain } from './explain.ts';
import { pause, type Flow, type Look } from './flow.ts';
import { lookAt } from './look.ts';
import { addressToKeep, cookieKey, entryOf, recipeOf } from './recipe.ts';
import type { RecipeSuccess } from './recipe-types.ts';
import { isOffer, lookElsewhere, saysOf } from './second-look.ts';
import { labelsOf, marksOf, namesAccount, saysOver, sizeOf } from './signs.ts';
import type { FlowStateName } from './states.ts';
import type { FlowOutcome } from './types.ts';
import { mayBeAt } from './permission.ts';

/** Links and buttons that a page must have beyond those of the login page to count as the application. */
const leastNewControls = 4;

/**
 * Success by evidence: the login form is gone, and is still gone when the address is opened in a second page; cookies or
 * storage have changed; no error text is new. A page that says nothing is believed only if the login address has no form
 * any more, or if it has the many controls of an application and names the account.
 */
export async function confirm(flow: Flow, signal: AbortSignal): Promise<FlowOutcome | FlowStateName> {
  const look = flow.look!;
  // Pages that are opened from here on are no windows of the site.
  flow.acted = false;
  const url = addressOf(flow, look);
  const second = await lookElsewhere(watcher(flow), url, signal);
  const after = await flow.browser.state(flow.pageId);
  const { holds, why, out } = await weigh(flow, look, second, after, signal);
  await explain(flow, 'confirming', why, second);
  if (!holds || !second) return notYet(flow, look, { second, why, out }, signal);
  const postLoginUrl = addressToKeep(flow, second.snapshot.url);
  const entrySays = await entryNow(flow, second, postLoginUrl, signal);
  return entrySays === 'harms' ? 'looking' : success(flow, second, postLoginUrl, after, entrySays);
}

/**
 * What the address where logins begin says now, for checks to compare with. There are sites whose login page ends the
 * login: there the login is done once more, and the address is left alone.
 */
async function entryNow(
  flow: Flow,
  second: Look,
  postLoginUrl: string,
  signal: AbortSignal,
): Promise<RecipeSuccess['entrySays'] | 'harms'> {
  if (flow.entryHarms) return 'out';
  if (flow.steps.length === 0 || flow.basicSent > 0) return undefined;
  const url = entryOf(flow, postLoginUrl);
  if (pageAddress(url) === pageAddress(second.snapshot.url)) return saysOf(second.reading);
  const entry = await lookElsewhere(watcher(flow), url, signal);
  if (!entry || (entry.snapshot.httpStatus ?? 200) >= 400 || !mayBeAt(flow, entry.snapshot.url)) return undefined;
  const says = saysOf(entry.reading);
  if (says !== 'out' || saysOf(second.reading) === 'out') return says;
  const third = await lookElsewhere(watcher(flow), second.snapshot.url, signal);
  if (!third || saysOf(third.reading) !== 'out') return says;
  await explain(flow, 'confirming', 'Opening the login page ended the login, so it is done once more.', third);
  flow.entryHarms = true;
  flow.steps = [];
  flow.before = undefined;
  flow.submitted = [];
  flow.unjudged = false;
  await flow.browser.navigate(flow.pageId, entry.snapshot.url);
  return 'harms';
}

const watcher = ({ browser, read, input, deadlines }: Flow) => ({
  browser,
  read,
  domain: input.connection.domain,
  patience: deadlines.patience,
});

/** Where the login ended; while the page is still the identity provider's, where it began. */
function addressOf(flow: Flow, { snapshot }: Look): string {
  if (flow.hosts.own(snapshot.url)) return snapshot.url;
  const { connection, recipe } = flow.input;
  return entryAddresses(connection, recipe)[0] ?? snapshot.url;
}

interface Weighed {
  holds: boolean;
  why: string;
  /** The page shows plainly that no account is logged in. */
  out: boolean;
}

async function weigh(
  flow: Flow,
  look: Look,
  second: Look | undefined,
  after: StateFingerprint,
  signal: AbortSignal,
): Promise<Weighed> {
  const no = (why: string, out = false) => ({ holds: false, why, out });
  const yes = (why: string) => ({ holds: true, why, out: false });
  if (!second) return no('The address did not answer in a second page.');
  if (!mayBeAt(flow, second.snapshot.url)) return no('The second page went to a host that is not allowed.');
  const { error } = look.reading;
  if (error?.fresh && (error.kind !== 'other' || saysOf(look.reading) !== 'in'))
    return no('The page shows a new error text.');
  switch (saysOf(second.reading)) {
    case 'out':
      if (isOffer(second.reading) && (await isFormGone(flow, after, signal)))
        return yes('The page offers a login, but the login form is gone from its own address.');
      return no('A second page at the same address asks to log in.', true);
    case 'in':
      return yes('A second page at the same address shows a signed-in account.');
    default:
  }
  if ((second.snapshot.httpStatus ?? 200) >= 400)
    return no(`A second page was answered ${second.snapshot.httpStatus}.`);
  if (flow.basicSent > 0) return yes('The site takes the HTTP Basic credentials.');
  if (flow.foundLoggedIn) return yes('The page after the last login needs no login now.');
  if (!isPast(flow)) return no('Nothing shows that an account is logged in.');
  if (!hasChanged(flow.baseline, after)) return no('No cookie and no storage changed since the login page.');
  // Read by itself: that a form is gone makes a page look signed in, and is no evidence of its own.
  const alone = flow.read(look.snapshot, { domain: flow.input.connection.domain });
  if (saysOf(alone) === 'in') return yes('The page shows a signed-in account, and a second page has no login form.');
  if (await isFormGone(flow, after, signal)) return yes('The login form is gone from its own address too.');
  if (isApplication(flow, second)) return yes('The page has the controls of an application, and names the account.');
  return no('The login form is still at its address, and nothing shows that an account is logged in.', true);
}

/** Steps that lead to a form on the same page. A new page at the same address does not show that form, logged in or not. */
const leadsToForm = new Set<string>(['entry', 'menu', 'tab'] satisfies StepReason[]);

/** Pages that hide whether there is a form. */
const barred = new Set<ReadingKind>(['blank', 'captcha', 'maintenance', 'locked']);

/** A submit has changed cookies or storage, and the address that had the form has it no more. */
async function isFormGone(flow: Flow, after: StateFingerprint, signal: AbortSignal): Promise<boolean> {
  const { loginPage } = flow;
  if (!loginPage || flow.entryHarms || !isPast(flow) || !hasChanged(flow.baseline, after)) return false;
  const login = await lookElsewhere(watcher(flow), loginPage.snapshot.url, signal);
  if (!login || (login.snapshot.httpStatus ?? 200) >= 400 || barred.has(login.reading.kind)) return false;
  const says = saysOf(login.reading);
  const offers = isOffer(login.reading);
  if (says === 'out' && !(offers && loginPage.reading.fields.length > 0)) return false;
  const page = pageAddress(loginPage.snapshot.url);
  const clicked = flow.steps.flatMap(({ click, ...step }) =>
    click && step.page === page && leadsToForm.has(click.stoodFor) ? [click.label] : [],
  );
  if (clicked.length === 0) return true;
  // What led to the form must be gone then, and nothing else may lead there. A closed menu is a guess: where the way in was
  // not in a menu, the menu may as well be that of the account.
  const shown = new Set(login.snapshot.frames.flatMap(({ elements }) => elements.map((one) => one.accessibleName)));
  const inMenu = flow.steps.some(({ click, ...step }) => step.page === page && click?.stoodFor === 'menu');
  const waysIn = login.reading.next.filter(({ why }) => inMenu || why !== 'menu');
  return waysIn.length === 0 && !clicked.some((label) => label === '' || shown.has(label));
}

function hasChanged(before: StateFingerprint | undefined, after: StateFingerprint): boolean {
  if (!before) return false;
  const cookies = new Set(before.cookies.map(cookieKey));
  const storage = new Map(before.storage.map(({ origin, hash }) => [origin, hash]));
  return (
    after.cookies.some((cookie) => !cookies.has(cookieKey(cookie))) ||
    after.storage.some(({ origin, hash, keys }) => keys > 0 && storage.get(origin) !== hash)
  );
}

/** Many controls that the login page does not have, and the name that was typed. A refusal names no account and offers little. */
function isApplication({ loginPage, identifiers }: Flow, { snapshot, reading }: Look): boolean {
  const shown = (look: Look['snapshot'] | undefined) =>
    look?.frames.flatMap(({ elements, texts }) => [
      ...elements.filter(({ visible }) => visible).map(({ accessibleName, href }) => accessibleName || href || ''),
      ...texts.filter(({ visible }) => visible).map(({ text }) => text),
    ]) ?? [];
  const before = new Set(shown(loginPage?.snapshot));
  const fresh = [...new Set(shown(snapshot))].filter((text) => text !== '' && !before.has(text));
  const controls = new Set(
    snapshot.frames.flatMap(({ elements }) => elements.map(({ accessibleName }) => accessibleName)),
  );
  return (
    reading.fields.length === 0 &&
    reading.error === undefined &&
    fresh.filter((text) => controls.has(text)).length >= leastNewControls &&
    namesAccount(fresh, identifiers)
  );
}

/** The first time the login is looked at once more, from its beginning; the second time it is over. */
async function notYet(
  flow: Flow,
  look: Look,
  { second, why, out }: Omit<Weighed, 'holds'> & { second: Look | undefined },
  signal: AbortSignal,
): Promise<FlowStateName> {
  flow.failedConfirmations++;
  flow.fillsAtFailure = flow.fills;
  const shows = saysOf(look.reading) === 'in';
  if (flow.failedConfirmations > 2 || (flow.failedConfirmations > 1 && !shows)) {
    const websiteError = look.reading.error?.text;
    if (shows)
      throw new FlowEnd('flow_failed', `The page shows a signed-in account that its profile would not keep. ${why}`, {
        websiteError,
      });
    if (out && flow.passwordSubmits.size > 0)
      throw new FlowEnd('credentials_invalid', `The site takes what was submitted and logs no account in. ${why}`, {
        websiteError,
      });
    throw new FlowEnd('navigation_confused', `The site shows neither a login form nor a signed-in account. ${why}`, {
      websiteError,
    });
  }
  flow.unjudged = false;
  // The page may still be about to store what keeps the login.
  await pause(4 * flow.deadlines.patience, signal);
  const again = await lookAt(flow, signal, 5000);
  if (again.key !== look.key || shows) return 'looking';
  flow.blankWaits = 0;
  const from = second && saysOf(second.reading) === 'out' ? second.snapshot.url : flow.loginPage?.snapshot.url;
  if (from === undefined) return 'entering';
  await flow.browser.navigate(flow.pageId, from);
  return 'looking';
}

async function success(
  flow: Flow,
  second: Look,
  postLoginUrl: string,
  after: StateFingerprint,
  entrySays: RecipeSuccess['entrySays'],
): Promise<FlowOutcome> {
  const { snapshot, reading } = second;
  const seen = {
    signedInSigns: saysOf(reading) === 'in',
    kind: reading.kind,
    ...(saysOver(second) && { over: true }),
    ...(entrySays && { entrySays }),
    marks: marksOf(flow.scrub.without(labelsOf(snapshot)), flow.strange),
    size: sizeOf(snapshot),
  };
  return {
    status: 'SUCCESS',
    postLoginUrl,
    ...(flow.steps.length > 0 && {
      recipe: recipeOf(flow, postLoginUrl, after, seen),
      requirements: flow.requirements,
    }),
    typed: flow.typed,
    typedProvider: typedProvider(flow),
    ...(flow.confirmed.size > 0 && {
      ssoHosts: Object.fromEntries(Array.from(flow.confirmed, ([host, names]) => [host, [...names]])),
    }),
  };
}

/** The provider at whose hosts everything was typed that a person typed. Its button alone says nothing about the values. */
function typedProvider({ typed, typedAt, hosts }: Flow): string | undefined {
  const [provider, ...others] = new Set(Object.keys(typed).map((name) => hosts.sso(typedAt.get(name) ?? '')));
  return others.length === 0 ? provider : undefined;
}
