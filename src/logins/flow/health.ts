import type { ReadingKind } from '../reading/types.ts';
import { entryAddresses, isAtPage, isSameAddress } from './addresses.ts';
import type { FlowBrowser } from './browser.ts';
import { allowedHosts } from './hosts.ts';
import { lookBeside, lookTwice, timeFor, type Watcher } from './second-look.ts';
import { compare, isOffer, labelsOf, saysOf, saysOver, showsFirstStep, sizeOf } from './signs.ts';
import type { FlowConnection, Health, Look, Reader, Recipe } from './types.ts';

interface CheckInput {
  browser: FlowBrowser;
  connection: FlowConnection;
  recipe?: Recipe | undefined;
  signal: AbortSignal;
  /** See `FlowDeadlines`. */
  patience?: number | undefined;
  coming?: number | undefined;
}

export interface Checked {
  health: Health;
  /** A sentence for the user: what decided, or why nothing does. */
  why: string;
}

const found =
  (health: Health) =>
  (why: string): Checked => ({ health, why });
const isIn = found('authenticated');
const isOut = found('needs_auth');
const unclear = found('unknown');

export const checkWith = async (read: Reader, input: CheckInput): Promise<Health> =>
  (await checked(read, input)).health;

/**
 * Whether a browser with the profile is still logged in. It is when the page shows what it showed after the last login, after
 * it was loaded twice, and when the address where logins begin has not got its form back. `unknown` means that the site does
 * not show it: it is down, or shows neither. A connection must not lose its status for that.
 */
export async function checked(read: Reader, input: CheckInput): Promise<Checked> {
  const { browser, connection, recipe, signal, patience, coming } = input;
  const { inMenu: menus, formTook = 0 } = recipe?.success ?? {};
  const formTakes = timeFor(formTook, coming);
  const watcher: Watcher = { browser, read, domain: connection.domain, patience, coming, menus, formTakes };
  const ended = connection.postLoginUrl ?? recipe?.success.url;
  const [first] = entryAddresses(connection, recipe);
  const asked = ended ?? first;
  if (asked === undefined) return unclear('The connection has no address to look at.');
  const seen = await lookTwice(watcher, asked, signal);
  if (!seen) return unclear('The page after the login did not answer, or could not be read.');
  const { look, steady } = seen;
  const broken = faultOf(look);
  if (broken !== undefined) return unclear(broken);
  const says = saysThen(look, recipe);
  if (says === 'out') return isOut('The page after the login asks to log in.');
  if (!allowedHosts(connection).own(look.snapshot.url))
    return unclear('The page after the login leads to a host that the connection does not name.');
  if (says === 'nothing' && isBackAtStart(look, recipe))
    return isOut('The page after the login has what the last login began with.');
  const shown = steady && ended !== undefined ? evidence(look, recipe) : steady && says === 'in';
  const before = recipe?.success.entrySays;
  // A form that is always at its address says nothing.
  if (shown && says === 'in' && (recipe === undefined || before === 'out'))
    return isIn('The page after the login shows a signed-in account.');
  const same = (why: string) => sameForStrangers(watcher, look, { says, recipe, signal, why });
  const entry = recipe?.entryUrl ?? first;
  if (entry === undefined || (isSameAddress(entry, asked) && (shown || ended === undefined)))
    return shown
      ? same('The page after the login is as it was.')
      : unclear('The page shows neither an account nor a form.');
  const again = await lookTwice(watcher, entry, signal);
  if (!again) return unclear('The login page did not answer, or could not be read.');
  const brokenAgain = faultOf(again.look);
  if (brokenAgain !== undefined) return unclear(brokenAgain);
  switch (saysOf(again.look.reading)) {
    case 'in':
      if (!steady || !again.steady || isOver(look, recipe) || isOver(again.look, recipe))
        return unclear('The pages show an account, and say that the login is over or change while they are looked at.');
      // An application may show its empty frame at both addresses.
      return isWhole(says === 'in' ? look : again.look, recipe)
        ? isIn('The login page shows a signed-in account.')
        : unclear('The page shows an account, and much less than after the last login.');
    case 'out':
      if (shown && before === 'out') return same('The page after the login is as it was, and so is the login page.');
      // Without a record of how it was, a page that shows an account outweighs a form elsewhere.
      return shown && says === 'in' && before === undefined
        ? isIn('The page after the login shows a signed-in account.')
        : isOut('The login page has its form again.');
    default:
      if (shown) return same('The page after the login is as it was, and the login page has no form.');
      return steady && says === 'nothing' && isReplaced(look, recipe)
        ? isOut('The page after the login shows other things than then: what the site has for visitors.')
        : unclear('The pages show neither an account nor a form.');
  }
}

/** A page by which nothing but its address was recognised may be the same for everyone. */
async function sameForStrangers(
  watcher: Watcher,
  look: Look,
  { says, recipe, signal, why }: { says: string; recipe: Recipe | undefined; signal: AbortSignal; why: string },
): Promise<Checked> {
  if (says === 'in' || !recipe || compare(look, recipe.success).marked !== undefined) return isIn(why);
  const beside = await lookBeside(watcher, look.snapshot.url, signal);
  if (!beside || !isAlike(beside.ours, beside.strangers)) return isIn(why);
  return unclear('The page after the login is the same for visitors that the site does not know.');
}

/** Both show the same controls at the same address. */
function isAlike(ours: Look, strangers: Look): boolean {
  const labels = new Set(labelsOf(strangers.snapshot));
  const own = labelsOf(ours.snapshot);
  return (
    isAtPage(strangers.snapshot.url, ours.snapshot.url) &&
    saysOf(strangers.reading) === saysOf(ours.reading) &&
    own.length === labels.size &&
    own.every((label) => labels.has(label)) &&
    Math.abs(sizeOf(ours.snapshot) - sizeOf(strangers.snapshot)) <= mostDifferent * sizeOf(ours.snapshot)
  );
}

/** Of the parts of a page: news and times differ from visit to visit. */
const mostDifferent = 0.1;

/** An application that offers a login did so after the last login too. */
function saysThen({ reading }: Look, recipe: Recipe | undefined): ReturnType<typeof saysOf> {
  return isOffer(reading) && recipe?.success.kind === reading.kind ? 'nothing' : saysOf(reading);
}

/** The page shows what it showed when the last login ended. */
function evidence(look: Look, recipe: Recipe | undefined): boolean {
  const says = saysOf(look.reading);
  if (isOver(look, recipe) || (look.snapshot.httpStatus ?? 200) >= 400) return false;
  if (!recipe) return says === 'in';
  const { stayed, marked, whole } = compare(look, recipe.success);
  if (!whole) return false;
  if (says === 'in') return stayed || marked === true;
  return !recipe.success.signedInSigns && stayed && marked !== false && (marked ?? recipe.success.entrySays !== 'out');
}

const isOver = (look: Look, recipe: Recipe | undefined) => recipe?.success.over !== true && saysOver(look);

/** A page for visitors without a login, in an unknown language, has no recognised text and nothing of the page after the login. */
const isReplaced = (look: Look, recipe: Recipe | undefined) =>
  recipe !== undefined && (look.snapshot.httpStatus ?? 200) < 400 && compare(look, recipe.success).replaced;

const isWhole = (look: Look, recipe: Recipe | undefined) => !recipe || compare(look, recipe.success).whole;

/** The page has what the first step of the last login clicks or types into, and had it no more after that login. */
const isBackAtStart = (look: Look, recipe: Recipe | undefined) =>
  recipe !== undefined &&
  recipe.success.startShown !== true &&
  recipe.success.entrySays !== 'out' &&
  showsFirstStep(look, recipe.steps);

/** Why a page says nothing about the login: it is not the page that the site has otherwise. */
function faultOf({ snapshot, reading }: Look): string | undefined {
  const status = snapshot.httpStatus ?? 200;
  // A page that is forbidden now was not when the login ended.
  const refused = status === 401 || status === 403;
  const asks = saysOf(reading) !== 'nothing' || refused;
  if (status >= 400 && !asks) return `The site answered ${status}.`;
  return faults[reading.kind];
}

const faults: Partial<Record<ReadingKind, string>> = {
  captcha: 'The site shows a captcha.',
  maintenance: 'The site says that it is not available.',
  blank: 'The page stayed empty.',
  locked: 'The site says that the account is locked.',
};
