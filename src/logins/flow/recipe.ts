import type { ReadChoice, ReadField, Reading, Step } from '../reading/types.ts';
import { keptAddress, pageAddress } from './addresses.ts';
import { FormsError, type StateFingerprint } from './browser.ts';
import type { Flow, Look } from './flow.ts';
import type { Fill } from './plan.ts';
import { hashOf } from './signs.ts';
import type { Recipe, RecipeClick, RecipeFill, RecipeStep, RecipeSuccess } from './recipe-types.ts';

const mostSteps = 30;
/** A page chooses labels and selectors, and the recipe is stored and read for each login and check. */
const mostCharacters = 64_000;
/** The browser keeps the references of its last few looks, and each search is one. */
const mostSearches = 3;

/** Keeps what was typed where, by the names of the values, never by the values. */
export function learnFill(flow: Flow, look: Look, fills: readonly Fill[]): void {
  const { submit } = look.reading;
  learn(flow, look, {
    fills: fills.map(({ field }) => fillOf(field)),
    click: submit && { stoodFor: 'submit', label: submit.label, selectors: [...submit.selectors] },
  });
}

export function learnStep(flow: Flow, look: Look, { why, label, selectors }: Step): void {
  // A banner that was closed is not there the next time.
  if (why !== 'dismiss') learn(flow, look, { fills: [], click: { stoodFor: why, label, selectors: [...selectors] } });
}

export function learnChoice(flow: Flow, look: Look, { type, mfaType, provider, label, selectors }: ReadChoice): void {
  learn(flow, look, {
    fills: [],
    // The name of a person may be in the label of an account, so it is kept as a hash.
    click: {
      stoodFor: 'choice',
      label: type === 'account' ? '' : label,
      selectors: [...selectors],
      choice: { type, mfaType, provider, ...(type === 'account' && { account: hashOf(label) }) },
    },
  });
}

function learn(flow: Flow, { snapshot, reading }: Look, step: Pick<RecipeStep, 'fills' | 'click'>): void {
  if (flow.steps.length < mostSteps) flow.steps.push({ page: pageAddress(snapshot.url), kind: reading.kind, ...step });
}

/** The site refused what the last step did: it is no part of a login that succeeds. */
export function unlearn(flow: Flow): void {
  flow.steps.pop();
}

function fillOf(field: ReadField): RecipeFill {
  const { key, type, label, selectors, options } = field;
  return { key, type, label, selectors: [...selectors], ...(options && { select: true }) };
}

/** Where the next login begins, and where a check sees whether there is a form again. */
export function entryOf(flow: Flow, postLoginUrl: string): string {
  const { loginUrl } = flow.input.connection;
  return loginUrl ?? addressToKeep(flow, flow.loginPage?.snapshot.url ?? flow.answered ?? postLoginUrl);
}

/** The address without what handed the login over, and of one with a secret in it only the origin. */
export function addressToKeep({ secrets }: Flow, url: string): string {
  const kept = keptAddress(url);
  return secrets.text(kept) === kept ? kept : new URL('/', kept).href;
}

export function recipeOf(
  flow: Flow,
  postLoginUrl: string,
  after: StateFingerprint,
  seen: Omit<RecipeSuccess, 'url' | 'cookies' | 'storage'>,
): Recipe {
  const before = new Set(flow.baseline?.cookies.map(cookieKey));
  const stored = new Map(flow.baseline?.storage.map(({ origin, hash }) => [origin, hash]));
  return {
    version: 1,
    entryUrl: entryOf(flow, postLoginUrl),
    steps: fitting(flow.steps.map((step) => withoutTyped(flow, step))),
    success: {
      url: postLoginUrl,
      cookies: [...new Set(after.cookies.filter((one) => !before.has(cookieKey(one))).map(({ name }) => name))].slice(
        0,
        40,
      ),
      storage: after.storage
        .filter(({ origin, hash, keys }) => keys > 0 && stored.get(origin) !== hash)
        .map(({ origin }) => origin),
      ...seen,
    },
    requirements: flow.requirements,
    learnedAt: new Date(flow.now()).toISOString(),
  };
}

/** The first steps that fit. Those after them are done by reading the page. */
function fitting(steps: RecipeStep[]): RecipeStep[] {
  let room = mostCharacters;
  const end = steps.findIndex((step) => (room -= JSON.stringify(step).length) < 0);
  return end === -1 ? steps : steps.slice(0, end);
}

/** Pages repeat what was typed: "Password for alice". A way to find an element that goes by it is dropped. */
function withoutTyped({ scrub, secrets }: Flow, { page, kind, fills, click }: RecipeStep): RecipeStep {
  return {
    page: secrets.text(page),
    kind,
    fills: fills.map((one) => ({ ...one, label: scrub.text(one.label), selectors: scrub.without(one.selectors) })),
    ...(click && { click: { ...click, label: scrub.text(click.label), selectors: scrub.without(click.selectors) } }),
  };
}

export const cookieKey = ({ name, domain, path, hash }: StateFingerprint['cookies'][number]) =>
  JSON.stringify([name, domain, path, hash]);

/** What a step of a recipe means on this page. */
export interface Replay {
  step: RecipeStep;
  at: number;
  fields: ReadField[];
  click?: (RecipeClick & { ref: string }) | undefined;
}

/**
 * The next step of the recipe, when this is its page and all its elements are found. A step is replayed once and in order;
 * clicks that are not needed any more are passed over. Undefined when the page must be read.
 */
export async function nextReplay(flow: Flow, { snapshot, reading }: Look): Promise<Replay | undefined> {
  const { recipe } = flow.input;
  if (!recipe || flow.replayAt === undefined) return undefined;
  const here = pageAddress(snapshot.url);
  let searches = 0;
  const search = async (selectors: string[]) =>
    ++searches > mostSearches ? undefined : flow.browser.find(flow.pageId, selectors).catch(unlessFrozen);
  for (let at = flow.replayAt; at < recipe.steps.length; at++) {
    const step = recipe.steps[at]!;
    const replay =
      step.page === here && step.kind === reading.kind ? await located(step, at, reading, search) : undefined;
    if (replay) return replay;
    // Steps that only clicked on may have become needless; one that typed has not, unless it was done by reading.
    if (!isDone(flow, step)) return undefined;
  }
  return undefined;
}

/** What the step typed was typed in this flow too. A site that remembers the account does not ask for its name again. */
function isDone({ steps }: Flow, { fills }: RecipeStep): boolean {
  const typed = new Set(steps.flatMap((step) => step.fills.map(({ type }) => type)));
  return fills.every(({ type }) => typed.has(type) || (type === 'identifier' && typed.has('password')));
}

/** The only one that a selector names, by the best selector that names one. Radio buttons of a set share their name. */
function only<T extends { selectors: string[] }>(
  candidates: readonly T[],
  selectors: readonly string[],
): T | undefined {
  for (const selector of selectors) {
    const [found, another] = candidates.filter((one) => one.selectors.includes(selector));
    if (found && !another) return found;
  }
  return undefined;
}

/** A place on the page tells no choice from another: sites put the way first that was used last. */
const isPlace = (selector: string) => selector.includes(':nth-of-type(');

/**
 * The elements of a step. What the reading has found by the same ways is taken as it is: it has its options and boxes too.
 * Looking for an element makes older references stale, so a step that needs more than a few searches is not replayed.
 */
async function located(
  step: RecipeStep,
  at: number,
  reading: Reading,
  search: (selectors: string[]) => Promise<string | undefined>,
): Promise<Replay | undefined> {
  const fields: ReadField[] = [];
  for (const { key, type, label, selectors, select } of step.fills) {
    const known = only(
      reading.fields.filter((field) => field.key === key),
      selectors,
    );
    const ref = known?.ref ?? (select ? undefined : await search(selectors));
    if (ref === undefined) return undefined;
    fields.push(
      known ?? {
        id: `recipe_${key}`,
        ref,
        type,
        key,
        label,
        required: true,
        filled: false,
        selectors,
        legacyType: 'text',
      },
    );
  }
  const { click } = step;
  if (!click) return { step, at, fields };
  const { submit, choices, next } = reading;
  const { choice } = click;
  const known = choice
    ? choices.filter(({ type, mfaType }) => type === choice.type && mfaType === choice.mfaType)
    : click.stoodFor === 'submit'
      ? [submit].filter((one) => one !== undefined)
      : next;
  const read = choice !== undefined && choices.length > 0;
  const selectors = read ? click.selectors.filter((selector) => !isPlace(selector)) : click.selectors;
  const ref = only(known, selectors)?.ref ?? (read ? undefined : await search(selectors));
  return ref === undefined ? undefined : { step, at, fields, click: { ...click, ref } };
}

/** A page that goes on meanwhile has not the element; the next look sees what it has. */
function unlessFrozen(error: unknown): undefined {
  if (!(error instanceof FormsError) || error.fault === 'frozen') throw error;
}
