import type { ReadField, Reading } from '../reading/types.ts';
import { pageAddress } from './addresses.ts';
import { FormsError } from './browser.ts';
import type { Flow } from './context.ts';
import { isRefusal, type Decision } from './decision.ts';
import { planFill } from './plan.ts';
import type { RecipeClick, RecipeStep } from './recipe.ts';
import type { Look } from './types.ts';

/** The browser keeps the references of its last few looks, and each search is one. */
const mostSearches = 3;

/** What a recipe may take the place of: not the ends, the judgement of an answer, or what a person has given. */
const replaceable: Decision['do'][] = ['fill', 'ask', 'click', 'choose', 'external', 'enter'];

/** The recipe's next step instead of the reading's decision, where its page has not changed. */
export async function replayed(flow: Flow, look: Look, decision: Decision): Promise<Decision> {
  const { attempt, person } = flow;
  if (
    !replaceable.includes(decision.do) ||
    isRefusal(decision) ||
    person.hasGiven ||
    attempt.credentialRefused ||
    attempt.silent > 0
  )
    return decision;
  // What lies over the form is closed first; a recipe knows nothing of it.
  if (decision.do === 'click' && decision.step.why === 'dismiss') return decision;
  const replay = await nextReplay(flow, look);
  if (!replay) return decision;
  const step = stepOf(flow, look, replay);
  if (!step || isNeedless(decision, step)) return decision;
  attempt.replayed(replay.at);
  return step;
}

/** The site asks at once for what another way was taken to the last time. The ways that it offers now may lack that one. */
const isNeedless = (decision: Decision, step: Decision) =>
  decision.do === 'fill' && step.do === 'choose' && step.choice.mfaType !== undefined;

function stepOf(flow: Flow, look: Look, replay: Replay): Decision | undefined {
  const { fields, click } = replay;
  const why = `The recipe's step ${replay.at + 1} fits the page.`;
  if (fields.length > 0) {
    const reading = { ...look.reading, fields, submit: click ?? look.reading.submit };
    const plan = planFill(flow, reading);
    if (plan.missing.length > 0 || plan.fills.length === 0) return undefined;
    return { do: 'fill', plan, look: { ...look, reading }, why };
  }
  if (!click) return undefined;
  const { ref, label, selectors, stoodFor, choice } = click;
  if (stoodFor === 'choice' && choice)
    return { do: 'choose', choice: { id: 'recipe', ref, label, selectors, ...definedOf(choice) }, why };
  if (stoodFor === 'submit' || stoodFor === 'choice') return undefined;
  return { do: 'click', step: { ref, label, selectors, why: stoodFor, act: 'click' }, why };
}

function definedOf({ type, mfaType, provider }: NonNullable<NonNullable<Replay['click']>['choice']>) {
  return { type, ...(mfaType && { mfaType }), ...(provider !== undefined && { provider }) };
}

/** What a step of a recipe means on this page. */
interface Replay {
  step: RecipeStep;
  at: number;
  fields: ReadField[];
  click?: (RecipeClick & { ref: string }) | undefined;
}

/**
 * The next step of the recipe, when this is its page and all its elements are found. A step is replayed once and in order;
 * clicks that are not needed any more are passed over. Undefined when the page must be read.
 */
async function nextReplay(flow: Flow, { snapshot, reading }: Look): Promise<Replay | undefined> {
  const { recipe, flowType } = flow.input;
  const { replayAt } = flow.attempt;
  if (!recipe || flowType !== 'REAUTH' || replayAt === undefined) return undefined;
  const here = pageAddress(snapshot.url);
  let searches = 0;
  const search = async (selectors: string[]) =>
    ++searches > mostSearches ? undefined : flow.browser.find(flow.page.id, selectors).catch(unlessFrozen);
  for (let at = replayAt; at < recipe.steps.length; at++) {
    const step = recipe.steps[at]!;
    const replay =
      step.page === here && step.kind === reading.kind ? await located(step, at, reading, search) : undefined;
    if (replay) return replay;
    // Steps that only clicked may have become needless; a step that typed has not, unless it was done by reading.
    if (!isDone(flow, step)) return undefined;
  }
  return undefined;
}

/** What the step typed was typed in this flow too. A site that remembers the account does not ask for its name again. */
function isDone({ draft: { steps } }: Flow, { fills }: RecipeStep): boolean {
  const typed = new Set(steps.flatMap((step) => step.fills.map(({ type }) => type)));
  return fills.every(({ type }) => typed.has(type) || (type === 'identifier' && typed.has('password')));
}

/** The only element that a selector matches, by the best selector with one match. Radio buttons of a set share their name. */
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

/** A place on the page does not identify a choice: sites put the last used one first. */
const isPlace = (selector: string) => selector.includes(':nth-of-type(');

/** A field that the reading did not find. */
const unread = { required: true, filled: false, legacyType: 'text' as const };

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
    const alike = reading.fields.filter((field) => field.key === key);
    const known = only(alike, selectors);
    const ref = known?.ref ?? (select ? undefined : await search(selectors));
    if (ref === undefined) return undefined;
    fields.push(known ?? { ...unread, id: `recipe_${key}`, ref, type, key, label, selectors });
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

/** A page that has navigated does not have the element; the next look reads the new page. */
function unlessFrozen(error: unknown): undefined {
  if (!(error instanceof FormsError) || error.fault === 'frozen') throw error;
}
