import type { ReadingKind, StepReason } from '../reading/types.ts';
import { entryAddresses, pageAddress } from './addresses.ts';
import type { StateFingerprint } from './browser.ts';
import type { Flow } from './context.ts';
import { isPast } from './decide.ts';
import { FlowEnd } from './ends.ts';
import { explain } from './explain.ts';
import { lookAt } from './look.ts';
import { pause } from './pause.ts';
import { mayBeAt } from './permission.ts';
import type { RecipeSuccess } from './recipe.ts';
import { isOffer, lookElsewhere, saysOf } from './second-look.ts';
import type { FlowStateName } from './states.ts';
import { addressToKeep, entryOf, success } from './success.ts';
import type { FlowOutcome, Look } from './types.ts';

/**
 * Success by evidence: the login form has disappeared, also when the address is opened in a second page; cookies or
 * storage have changed; no error text is new. A page that says nothing is believed only if the login address has no form
 * any more, or if it has the many controls of an application and names the account.
 */
export async function confirm(flow: Flow, signal: AbortSignal): Promise<FlowOutcome | FlowStateName> {
  const { page } = flow;
  const look = page.look!;
  // The pages that are opened from here on are not windows of the site.
  page.followOwnWindows();
  const url = addressOf(flow, look);
  const second = await lookElsewhere(watcher(flow), url, signal);
  const after = await flow.browser.state(page.id);
  const { holds, why, out } = await weigh(flow, look, second, after, signal);
  await explain(flow, 'confirming', why, second);
  if (!holds || !second) return notYet(flow, look, { second, why, out }, signal);
  const entrySays = await entryNow(flow, second, signal);
  return entrySays === 'harms' ? 'looking' : success(flow, second, after, entrySays);
}

/**
 * The current state of the login address, for checks to compare with. Opening the login page ends the login on some
 * sites: there the login is repeated, and the address is not opened.
 */
async function entryNow(flow: Flow, second: Look, signal: AbortSignal): Promise<RecipeSuccess['entrySays'] | 'harms'> {
  const { attempt, draft, evidence, factors, page } = flow;
  if (evidence.entryHarms) return 'out';
  if (draft.steps.length === 0 || factors.basicSent > 0) return undefined;
  const url = entryOf(flow, addressToKeep(flow, second.snapshot.url));
  if (pageAddress(url) === pageAddress(second.snapshot.url)) return saysOf(second.reading);
  const entry = await lookElsewhere(watcher(flow), url, signal);
  if (!entry || (entry.snapshot.httpStatus ?? 200) >= 400 || !mayBeAt(flow, entry.snapshot.url)) return undefined;
  const says = saysOf(entry.reading);
  if (says !== 'out' || saysOf(second.reading) === 'out') return says;
  const third = await lookElsewhere(watcher(flow), second.snapshot.url, signal);
  if (!third || saysOf(third.reading) !== 'out') return says;
  await explain(flow, 'confirming', 'Opening the login page ended the login, so it is done once more.', third);
  evidence.harm();
  draft.clear();
  attempt.forgetSubmit();
  await page.goTo(flow.browser, entry.snapshot.url);
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
  if (flow.factors.basicSent > 0) return yes('The site takes the HTTP Basic credentials.');
  if (flow.evidence.foundLoggedIn) return yes('The page after the last login needs no login now.');
  if (!isPast(flow)) return no('Nothing shows that an account is logged in.');
  if (!flow.evidence.hasChanged(after)) return no('No cookie and no storage changed since the login page.');
  // Read by itself: a page without the form looks signed in, which is not sufficient evidence.
  const alone = flow.read(look.snapshot, { domain: flow.input.connection.domain });
  if (saysOf(alone) === 'in') return yes('The page shows a signed-in account, and a second page has no login form.');
  if (await isFormGone(flow, after, signal)) return yes('The login form is gone from its own address too.');
  if (flow.evidence.showsApplication(second))
    return yes('The page has the controls of an application, and names the account.');
  return no('The login form is still at its address, and nothing shows that an account is logged in.', true);
}

/** Steps that open a form on the same page. A new page at the same address does not show that form, logged in or not. */
const leadsToForm = new Set<string>(['entry', 'menu', 'tab'] satisfies StepReason[]);

/** Pages that hide whether there is a form. */
const barred = new Set<ReadingKind>(['blank', 'captcha', 'maintenance', 'locked']);

/** A submit has changed cookies or storage, and the address that had the form has it no more. */
async function isFormGone(flow: Flow, after: StateFingerprint, signal: AbortSignal): Promise<boolean> {
  const { loginPage, entryHarms } = flow.evidence;
  if (!loginPage || entryHarms || !isPast(flow) || !flow.evidence.hasChanged(after)) return false;
  const login = await lookElsewhere(watcher(flow), loginPage.snapshot.url, signal);
  if (!login || (login.snapshot.httpStatus ?? 200) >= 400 || barred.has(login.reading.kind)) return false;
  const says = saysOf(login.reading);
  const offers = isOffer(login.reading);
  if (says === 'out' && !(offers && loginPage.reading.fields.length > 0)) return false;
  const page = pageAddress(loginPage.snapshot.url);
  const clicked = flow.draft.steps.flatMap(({ click, ...step }) =>
    click && step.page === page && leadsToForm.has(click.stoodFor) ? [click.label] : [],
  );
  if (clicked.length === 0) return true;
  // The element that opened the form must have disappeared then, and no other may open it. A closed menu is a guess: where the way in was
  // not in a menu, the menu may as well be that of the account.
  const shown = new Set(login.snapshot.frames.flatMap(({ elements }) => elements.map((one) => one.accessibleName)));
  const inMenu = flow.draft.steps.some(({ click, ...step }) => step.page === page && click?.stoodFor === 'menu');
  const waysIn = login.reading.next.filter(({ why }) => inMenu || why !== 'menu');
  return waysIn.length === 0 && !clicked.some((label) => label === '' || shown.has(label));
}

/** The first time the login is looked at once more, from its beginning; the second time it is over. */
async function notYet(
  flow: Flow,
  look: Look,
  { second, why, out }: Omit<Weighed, 'holds'> & { second: Look | undefined },
  signal: AbortSignal,
): Promise<FlowStateName> {
  const { attempt, browser, evidence, page } = flow;
  evidence.fail(attempt.fills);
  const shows = saysOf(look.reading) === 'in';
  if (evidence.failedConfirmations > (shows ? 2 : 1)) {
    const end = (code: FlowEnd['code'], what: string) => new FlowEnd(code, `${what} ${why}`, look.reading.error?.text);
    if (shows) throw end('flow_failed', 'The page shows a signed-in account that its profile would not keep.');
    if (out && flow.factors.hasSubmittedPassword)
      throw end('credentials_invalid', 'The site takes what was submitted and logs no account in.');
    throw end('navigation_confused', 'The site shows neither a login form nor a signed-in account.');
  }
  // The page may still be about to store what keeps the login.
  await pause(4 * flow.deadlines.patience, signal);
  const again = await lookAt(flow, signal, 5000);
  if (again.key !== look.key || shows) return 'looking';
  const from = second && saysOf(second.reading) === 'out' ? second.snapshot.url : evidence.loginPage?.snapshot.url;
  if (from === undefined) return 'entering';
  await page.goTo(browser, from);
  return 'looking';
}
