import type { ReadField } from '../reading/types.ts';
import { FormsError, isFrozen, isPassing, type Action } from './browser.ts';
import { codeChannel, isCode, takesGenerated } from './codes.ts';
import type { Flow } from './context.ts';
import type { Fill, FillPlan } from './decision.ts';
import { FlowEnd } from './ends.ts';
import { hideTyped } from './hidden-values.ts';
import { lookNow, patiently } from './look.ts';
import { allowFor } from './permission.ts';
import { memoryKey } from './plan.ts';
import type { Look } from './types.ts';
import { nameFor, namesFor } from './values.ts';

type Filled = Fill & { value: string };

/** Types what the plan has and submits it. True when something was submitted, false when the page wants another look first. */
export async function fill(flow: Flow, look: Look, plan: FillPlan, signal: AbortSignal): Promise<boolean> {
  const { draft, factors, page, person } = flow;
  const fills: Filled[] = [];
  for (const one of plan.fills) {
    const value = one.value ?? (await factors.nextCode(flow.input.totp, flow.now, signal));
    // A code that cannot be made any more is asked of a person by the next look.
    if (value === undefined) return false;
    // Also for a page that was read wrongly, or a recipe: a third submit may lock the account.
    if (one.field.type === 'password' && factors.isSpent(value))
      throw new FlowEnd(
        'max_attempts_reached',
        'The same password was submitted twice, and the site asks for it again.',
      );
    fills.push({ ...one, value });
    hideTyped(flow, one.field, value);
  }
  // Some pages submit by themselves with the last character.
  const typed = (await typeAll(flow, look, fills, signal)) ? await afterTyping(flow, look, fills, signal) : undefined;
  for (const one of fills) remember(flow, look, one);
  draft.addFill(look, fills);
  person.dropAnswers();

  const asks = typed?.reading.kind === look.reading.kind ? typed : undefined;
  if (asks && hasNewQuestion(page.look ?? look, asks)) return false;
  countPasswords(flow, fills, 1);
  if (asks) {
    await tickBoxes(flow, asks);
    try {
      await submit(flow, asks, look, fills.at(-1)?.field);
    } catch (error) {
      // A page that sends a complete code by itself bars its form until the answer is there.
      if (!isUnusable(error)) throw error;
      if (!fills.some(({ field }) => isCode(field))) {
        countPasswords(flow, fills, -1);
        draft.removeLast();
        throw error;
      }
    }
  }
  flow.attempt.filled(look, fills);
  return true;
}

/** Counts before the submit: a password that the page submits by itself, or while the browser fails, counts too. */
function countPasswords({ factors }: Flow, fills: readonly Filled[], by: 1 | -1): void {
  for (const { field, value } of fills) if (field.type === 'password') factors.countPassword(value, by);
}

/** Types everything. False when the page went on before the end: it does so with the last character of a code, mostly. */
async function typeAll(flow: Flow, look: Look, fills: readonly Filled[], signal: AbortSignal): Promise<boolean> {
  for (const [index, filled] of fills.entries()) {
    try {
      await typeInto(flow, look, filled);
    } catch (error) {
      if (!isPassing(error) && !isUnusable(error)) throw error;
      if (index === fills.length - 1 && (await wentOn(flow, look, fills, signal))) return false;
      throw error;
    }
  }
  return true;
}

/**
 * The last element vanished because its page did, or because the question is answered. A code that stands alone is taken: its field may be
 * removed, disabled or empty by now. Beside fields that are still there, it is a field that the page has taken back.
 */
async function wentOn(flow: Flow, look: Look, fills: readonly Filled[], signal: AbortSignal): Promise<boolean> {
  const { field } = fills.at(-1)!;
  const others = fills.filter((one) => one.field !== field && !isCode(one.field));
  if (isCode(field) && others.length === 0) return true;
  try {
    const { reading, snapshot } = await patiently(flow, signal, () => lookNow(flow));
    const same = reading.kind === look.reading.kind && snapshot.url === look.snapshot.url;
    if (isCode(field)) return !same || !others.every((one) => reading.fields.some(({ id }) => id === one.field.id));
    return !same || !reading.fields.some(({ type }) => type === field.type);
  } catch (error) {
    if (isPassing(error)) return true;
    throw error;
  }
}

async function typeInto(flow: Flow, look: Look, { field, value, ...origin }: Filled): Promise<void> {
  const act = (action: Action) => flow.browser.act(flow.page.id, action);
  const allow = allowFor(flow, origin);
  if (field.options) {
    const radio = field.options.find((option) => option.value === value)?.ref;
    await act(radio ? { kind: 'pick', ref: radio, allow } : { kind: 'choose', ref: field.ref, value, allow });
    return;
  }
  const boxes = field.refs ?? [];
  if (boxes.length <= 1) {
    // A page forgets what came up after a field when that field is edited.
    const { attempt } = flow;
    const unlessHeld = field.filled && attempt.asksMore(look) && attempt.hasTyped(look, field, value);
    await act({ kind: 'type', ref: field.ref, text: value, clear: true, allow, unlessHeld });
    return;
  }
  const characters = Array.from(value.replace(/[\s-]/g, ''));
  for (const [index, ref] of boxes.entries()) {
    const text = characters[index];
    if (text === undefined) return;
    try {
      await act({ kind: 'type', ref, text, clear: true, allow });
    } catch (error) {
      // The page took the code with its last character, and has removed or disabled the box. Some pages fill all boxes from the first one.
      if (index > 0 && (isPassing(error) || isUnusable(error))) return;
      throw error;
    }
  }
}

/** The page after typing. Undefined when it went on by itself. Scripts that start late empty fields: those are typed again, once. */
async function afterTyping(
  flow: Flow,
  look: Look,
  fills: readonly Filled[],
  signal: AbortSignal,
): Promise<Look | undefined> {
  const lookAtTyped = () => patiently(flow, signal, () => lookNow(flow));
  try {
    const typed = await lookAtTyped();
    const emptied = fills.filter(
      ({ field }) =>
        !field.options && !isCode(field) && typed.reading.fields.some(({ id, filled }) => id === field.id && !filled),
    );
    if (emptied.length === 0 || typed.key !== look.key) return typed;
    for (const one of emptied) {
      const now = typed.reading.fields.find(({ id }) => id === one.field.id);
      if (now) await typeInto(flow, look, { ...one, field: now });
    }
    return await lookAtTyped();
  } catch (error) {
    if (isPassing(error)) return undefined;
    throw error;
  }
}

/** A field came up while typing, such as a password below a name. */
function hasNewQuestion(look: Look, typed: Look): boolean {
  const before = new Set(look.reading.fields.map(({ id }) => id));
  return typed.reading.fields.some(({ id, type }) => !before.has(id) && (type === 'password' || isCode({ type })));
}

/** What must be ticked before the submit, and the box that keeps the login for longer. */
async function tickBoxes(flow: Flow, { reading }: Look): Promise<void> {
  const boxes = reading.next.filter(({ act, why }) => act === 'check' && why === 'accept').map(({ ref }) => ref);
  if (reading.remember && !reading.remember.checked) boxes.push(reading.remember.ref);
  for (const ref of boxes)
    // A box that cannot be ticked does not stop a login that may go without it.
    await flow.browser.act(flow.page.id, { kind: 'check', ref, on: true }).catch(ignoreUnfit);
}

/** By the button; by Enter where there is none, where it cannot be clicked, and where it had no effect the last time. */
async function submit(flow: Flow, { reading }: Look, planned: Look, last: ReadField | undefined): Promise<void> {
  await flow.page.rememberPages(flow.browser);
  const now = last && (reading.fields.find(({ id }) => id === last.id) ?? last);
  const button = reading.submit ?? planned.reading.submit;
  const enter =
    now && !now.options ? ({ kind: 'press', key: 'Enter', ref: now.refs?.at(-1) ?? now.ref } as const) : undefined;
  const click = button && ({ kind: 'click', ref: button.ref } as const);
  const ways = (flow.attempt.silent > 0 ? [enter, click] : [click, enter]).filter((way) => way !== undefined);
  if (ways.length === 0)
    throw new FlowEnd(
      'element_not_found',
      'The page has a form without a button and without a field to press Enter in.',
    );
  for (const [index, way] of ways.entries()) {
    try {
      await flow.browser.act(flow.page.id, way);
      return;
    } catch (error) {
      // A page that does not answer has begun to compute something with the values. If it has not, the same form is there again.
      if ((error instanceof FormsError && error.fault === 'stale') || isFrozen(error)) return;
      if (index === ways.length - 1 || !(error instanceof FormsError) || error.fault !== 'unreachable') throw error;
    }
  }
}

/** What the login needs, and what a person typed. */
function remember(flow: Flow, look: Look, { field, value, from, name }: Filled): void {
  const { draft, factors, person } = flow;
  if (name !== undefined) flow.attempt.take(name, memoryKey(field));
  if (isCode(field) && from !== 'credential') {
    if (from !== 'code') factors.giveCode(value);
    // A person who typed a code of an authenticator app may add its secret to the credential later.
    const generated = takesGenerated(field, look.reading) && !person.hasSourceCode;
    if (from === 'code' || generated) draft.need({ totp: true });
    else draft.needCode(codeChannel(field, look.reading));
    return;
  }
  if (field.type === 'identifier') flow.evidence.addIdentifier(value);
  const values = flow.page.credential?.values ?? {};
  // By the credential's own name where no other would find it again.
  const own = name !== undefined && !namesFor([name])(field.key) ? name : undefined;
  const key = own ?? (field.key === 'text' ? nameFor(field, {}) : field.key);
  if (field.key !== 'new_password') draft.needKey(key);
  const question = field.key === 'new_password' ? 'password' : memoryKey(field);
  if (from === 'person') person.keepAt(field.origin, nameFor(field, values), question, value);
}

/** The element is there, and cannot be clicked or typed into. */
const isUnusable = (error: unknown) => error instanceof FormsError && error.fault === 'unreachable';

function ignoreUnfit(error: unknown): void {
  if (!(error instanceof FormsError)) throw error;
}
