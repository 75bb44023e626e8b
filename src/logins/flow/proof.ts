import type { ReadingKind, StepReason } from '../reading/types.ts';
import { pageAddress } from './addresses.ts';
import type { StateFingerprint } from './browser.ts';
import type { Flow } from './context.ts';
import { isPast } from './decide.ts';
import { checked } from './health.ts';
import { mayBeAt } from './permission.ts';
import { lookBeside, lookElsewhere, timeFor, type Watcher } from './second-look.ts';
import type { Look } from './types.ts';
import { isOffer, saysOf } from './signs.ts';

export interface Weighed {
  holds: boolean;
  why: string;
  /** The page shows plainly that no account is logged in. */
  out: boolean;
}

const no = (why: string, out = false): Weighed => ({ holds: false, why, out });
const yes = (why: string): Weighed => ({ holds: true, why, out: false });

export const watcher = ({ browser, read, input, deadlines }: Flow): Watcher => ({
  browser,
  read,
  domain: input.connection.domain,
  patience: deadlines.patience,
  coming: deadlines.coming,
});

/** What shows that an account is logged in, or why nothing does. `second` is another page at the address of `look`. */
export async function weigh(
  flow: Flow,
  look: Look,
  second: Look | undefined,
  after: StateFingerprint,
  signal: AbortSignal,
): Promise<Weighed> {
  if (!second) return no('The address did not answer in a second page.');
  if (!mayBeAt(flow, second.snapshot.url)) return no('The second page went to a host that is not allowed.');
  const { error } = look.reading;
  if (error?.fresh && (error.kind !== 'other' || saysOf(look.reading) !== 'in'))
    return no('The page shows a new error text.');
  if (saysOf(second.reading) === 'out') {
    if (isOffer(second.reading) && flow.evidence.hasChanged(after) && (await isFormGone(flow, signal)))
      return yes('The page offers a login, but the login form is gone from its own address.');
    return no('A second page at the same address asks to log in.', true);
  }
  if (saysOf(second.reading) === 'nothing' && (second.snapshot.httpStatus ?? 200) >= 400)
    return no(`A second page was answered ${second.snapshot.httpStatus}.`);
  if (flow.evidence.byPerson)
    return yes('A person says that the account is logged in, and a second page has no login form.');
  if (flow.factors.basicSent > 0) return yes('The site takes the HTTP Basic credentials.');
  if (flow.evidence.foundLoggedIn) return yes('The page after the last login needs no login now.');
  return isPast(flow) ? bySigns(flow, look, second, after, signal) : asFound(flow, second, signal);
}

/**
 * Two signs that did not hold before the login: the page shows an account, cookies or storage have changed, the page has the controls of an
 * application and names the account, the form is gone from its address, the site refuses strangers.
 */
async function bySigns(
  flow: Flow,
  look: Look,
  second: Look,
  after: StateFingerprint,
  signal: AbortSignal,
): Promise<Weighed> {
  const { evidence } = flow;
  const changed = evidence.hasChanged(after);
  const says = saysOf(second.reading);
  if (says === 'nothing' && !changed) return no('No cookie and no storage changed since the login page.');
  // Read by itself: a page without the form looks signed in, which is not sufficient evidence.
  const alone = { reading: flow.read(look.snapshot, { domain: flow.input.connection.domain }) };
  const shown = evidence.isIn(says === 'in' ? second : alone);
  const signs = [
    ...(shown ? ['the page shows a signed-in account'] : []),
    ...(changed ? ['cookies or storage changed'] : []),
    ...(evidence.showsApplication(second)
      ? ['the page has the controls of an application, and names the account']
      : []),
  ];
  if (signs.length === 0) return no('Nothing shows that an account is logged in, but a way out that was there before.');
  if (signs.length === 1 && (await isFormGone(flow, signal))) signs.push('the login form is gone from its own address');
  if (signs.length === 1 && says === 'in' && (await refusesStrangers(flow, second, signal)).holds)
    signs.push('a visitor that the site does not know is asked to log in');
  if (signs.length > 1) return yes(`Since the login ${signs.join(', and ')}.`);
  return changed && !shown
    ? no('The login form is still at its address, and nothing shows that an account is logged in.', true)
    : no(`Only one thing shows that an account is logged in: ${signs[0]}.`);
}

/** Nothing was submitted, so nothing can have changed. The shell of an application may show its way out before it shows its form. */
async function asFound(flow: Flow, second: Look, signal: AbortSignal): Promise<Weighed> {
  if (saysOf(second.reading) !== 'in') return no('Nothing shows that an account is logged in.');
  const { connection, recipe } = flow.input;
  if (recipe !== undefined) {
    const { health, why } = await checked(flow.read, { ...watcher(flow), connection, recipe, signal });
    if (health === 'authenticated') return yes('The page shows what it showed after the last login.');
    if (health === 'needs_auth') return no(why, true);
  }
  return refusesStrangers(flow, second, signal);
}

/** The page shows an account to this profile, and asks a visitor that the site does not know to log in. */
async function refusesStrangers(flow: Flow, { snapshot }: Look, signal: AbortSignal): Promise<Weighed> {
  const beside = await lookBeside({ ...watcher(flow), menus: true }, snapshot.url, signal);
  if (!beside) return no('The address did not answer to a visitor that the site does not know.');
  const { ours, strangers } = beside;
  if (saysOf(ours.reading) === 'out') return no('After a while the page asks to log in.', true);
  if (saysOf(ours.reading) !== 'in') return no('After a while the page shows no account any more.');
  const { url, httpStatus } = strangers.snapshot;
  const refused = saysOf(strangers.reading) === 'out' || httpStatus === 401 || httpStatus === 403;
  if (refused || !flow.hosts.own(url))
    return yes('The page shows an account, and asks a visitor that the site does not know to log in.');
  return no('The site shows the same to a visitor that it does not know.');
}

/** Steps that open a form on the same page. A new page at the same address does not show that form, logged in or not. */
const leadsToForm = new Set<string>(['entry', 'menu', 'tab'] satisfies StepReason[]);

/** Pages that hide whether there is a form. */
const barred = new Set<ReadingKind>(['blank', 'captcha', 'maintenance', 'locked']);

/** The address that had the form has it no more, also after the time that it took to come before. */
async function isFormGone(flow: Flow, signal: AbortSignal): Promise<boolean> {
  const { loginPage, entryHarms, formTook } = flow.evidence;
  if (!loginPage || entryHarms || !isPast(flow)) return false;
  const formTakes = timeFor(formTook, flow.deadlines.coming);
  const login = await lookElsewhere({ ...watcher(flow), formTakes }, loginPage.snapshot.url, signal);
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
