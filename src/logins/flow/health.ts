import { entryAddresses, pageAddress } from './addresses.ts';
import type { FlowBrowser } from './browser.ts';
import { allowedHosts } from './hosts.ts';
import { isOffer, lookTwice, saysOf } from './second-look.ts';
import { compare, saysOver } from './signs.ts';
import type { FlowConnection, Health, Look, Reader, Recipe } from './types.ts';

interface CheckInput {
  browser: FlowBrowser;
  connection: FlowConnection;
  recipe?: Recipe | undefined;
  signal: AbortSignal;
  /** See `FlowDeadlines`. */
  patience?: number | undefined;
}

/**
 * Whether a browser with the profile is still logged in. It is when the page shows what it showed after the last login, after
 * it was loaded twice, and when the address where logins begin has not got its form back. `unknown` means that the site does
 * not show it: it is down, or shows neither. A connection must not lose its status for that.
 */
export async function checkWith(read: Reader, input: CheckInput): Promise<Health> {
  const { browser, connection, recipe, signal, patience } = input;
  const watcher = { browser, read, domain: connection.domain, patience };
  const ended = connection.postLoginUrl ?? recipe?.success.url;
  const [first] = entryAddresses(connection, recipe);
  const asked = ended ?? first;
  if (asked === undefined) return 'unknown';
  const seen = await lookTwice(watcher, asked, signal);
  if (!seen || isBroken(seen.look)) return 'unknown';
  const { look, steady } = seen;
  const says = saysThen(look, recipe);
  if (says === 'out') return 'needs_auth';
  if (!allowedHosts(connection).own(look.snapshot.url)) return 'unknown';
  const shown = steady && ended !== undefined ? evidence(look, recipe) : steady && says === 'in';
  const before = recipe?.success.entrySays;
  // A form that is always at its address says nothing.
  if (shown && says === 'in' && (recipe === undefined || before === 'out')) return 'authenticated';
  const entry = recipe?.entryUrl ?? first;
  if (entry === undefined || (ended === undefined && pageAddress(entry) === pageAddress(asked)))
    return shown ? 'authenticated' : 'unknown';
  const again = await lookTwice(watcher, entry, signal);
  if (!again || isBroken(again.look)) return 'unknown';
  switch (saysOf(again.look.reading)) {
    case 'in':
      if (!steady || !again.steady || isOver(look, recipe) || isOver(again.look, recipe)) return 'unknown';
      // An application may show its empty frame at both addresses.
      return isWhole(says === 'in' ? look : again.look, recipe) ? 'authenticated' : 'unknown';
    case 'out':
      if (shown && before === 'out') return 'authenticated';
      // Without a record of how it was, a page that shows an account outweighs a form elsewhere.
      return shown && says === 'in' && before === undefined ? 'authenticated' : 'needs_auth';
    default:
      if (shown) return 'authenticated';
      return steady && says === 'nothing' && isReplaced(look, recipe) ? 'needs_auth' : 'unknown';
  }
}

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

function isBroken({ snapshot, reading }: Look): boolean {
  const status = snapshot.httpStatus ?? 200;
  // A page that is forbidden now was not when the login ended.
  const refused = status === 401 || status === 403;
  const asks = saysOf(reading) !== 'nothing' || refused;
  return (status >= 400 && !asks) || ['captcha', 'maintenance', 'blank', 'locked'].includes(reading.kind);
}
