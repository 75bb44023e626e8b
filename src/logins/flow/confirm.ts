import { startAfresh } from './afresh.ts';
import { entryAddresses, isSameAddress } from './addresses.ts';
import { isAttended, type Flow } from './context.ts';
import { isPast } from './decide.ts';
import { FlowEnd } from './ends.ts';
import { explain } from './explain.ts';
import { lookAt, patiently } from './look.ts';
import { pause } from './pause.ts';
import { mayBeAt } from './permission.ts';
import { watcher, weigh, type Weighed } from './proof.ts';
import type { RecipeSuccess } from './recipe.ts';
import { lookElsewhere } from './second-look.ts';
import type { FlowStateName } from './states.ts';
import { addressToKeep, entryOf, success } from './success.ts';
import type { FlowOutcome, Look } from './types.ts';
import { saysOf } from './signs.ts';

/**
 * Success by two signs that did not hold before the login (`proof.ts`), while a second page at the same address shows no login form, and no
 * error text is new.
 */
export async function confirm(flow: Flow, signal: AbortSignal): Promise<FlowOutcome | FlowStateName> {
  const { page } = flow;
  const look = page.look!;
  // The pages that are opened from here on are not windows of the site.
  page.followOwnWindows();
  const url = addressOf(flow, look);
  const second = await lookElsewhere({ ...watcher(flow), menus: true }, url, signal);
  const after = await patiently(flow, signal, () => flow.browser.state(page.id));
  const { holds, why, out } = await weigh(flow, look, second, after, signal);
  await explain(flow, 'confirming', why, second);
  if (!holds || !second) return notYet(flow, look, { second, why, out }, signal);
  const entrySays = await entryNow(flow, second, signal);
  return entrySays === 'harms' ? 'looking' : success(flow, second, after, { entrySays, isPast: isPast(flow) });
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
  if (isSameAddress(url, second.snapshot.url)) return saysOf(second.reading);
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

/** Where the login ended; while the page is still the identity provider's, where it began. */
function addressOf(flow: Flow, { snapshot }: Look): string {
  if (flow.hosts.own(snapshot.url)) return snapshot.url;
  const { connection, recipe } = flow.input;
  return entryAddresses(connection, recipe)[0] ?? snapshot.url;
}

/** The first time the login is looked at once more, from its beginning; the second time it is over. */
async function notYet(
  flow: Flow,
  look: Look,
  { second, why, out }: Omit<Weighed, 'holds'> & { second: Look | undefined },
  signal: AbortSignal,
): Promise<FlowStateName> {
  const { attempt, browser, evidence, page, deadlines } = flow;
  evidence.fail(attempt.fills);
  // A way out that was there before the login is no sign of an account.
  const shows = evidence.isIn(look);
  // The form may still be drawn over a page that has nothing of a login.
  const comes = !isPast(flow) && flow.now() - page.waitFrom(flow.now()) < deadlines.coming;
  if (!comes && evidence.failedConfirmations > (shows ? 2 : 1)) {
    if (await startAfresh(flow)) return 'looking';
    if (!out && isAttended(flow) && evidence.askPerson()) return 'looking';
    const end = (code: FlowEnd['code'], what: string) => new FlowEnd(code, `${what} ${why}`, look.reading.error?.text);
    if (shows) throw end('flow_failed', 'The page shows a signed-in account, and nothing else shows that it is one.');
    if (out && flow.factors.hasSubmittedPassword)
      throw end('credentials_invalid', 'The site takes what was submitted and logs no account in.');
    throw end('navigation_confused', 'The site shows neither a login form nor a signed-in account.');
  }
  // The page may still be about to store what keeps the login.
  await pause(4 * deadlines.patience, signal);
  const again = await lookAt(flow, signal, 5000);
  if (again.key !== look.key || saysOf(look.reading) === 'in') return 'looking';
  const from = second && saysOf(second.reading) === 'out' ? second.snapshot.url : evidence.loginPage?.snapshot.url;
  if (from === undefined) return 'entering';
  await page.goTo(browser, from);
  return 'looking';
}
