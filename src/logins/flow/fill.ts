import type { OpenCredential } from '../../credentials/service.ts';
import type { ReadField, SubmittedPart } from '../reading/types.ts';
import { FormsError } from './browser.ts';
import { nextCode } from './codes.ts';
import { FlowEnd } from './ends.ts';
import { hideTyped, isSpent, passwordKey, type Flow, type Look } from './flow.ts';
import { hostOf } from './hosts.ts';
import { lookNow, rememberPages } from './look.ts';
import { codeChannel, isCode, memoryKey, type Fill, type FillPlan } from './plan.ts';
import { learnFill, unlearn } from './recipe.ts';
import { allowFor } from './permission.ts';
import { keepPersonal } from './questions.ts';
import { nameFor, namesFor } from './values.ts';

type Filled = Fill & { value: string };

/** Names that a login needs. A credential has no more values, and a page can ask under 60 other names in each of 40 forms. */
const mostKeys = 100;

interface Typing {
  flow: Flow;
  look: Look;
  credential: OpenCredential | undefined;
}

/** Types what the plan has and submits it. True when something was submitted, false when the page wants another look first. */
export async function fill(
  flow: Flow,
  look: Look,
  plan: FillPlan,
  credential: OpenCredential | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const fills: Filled[] = [];
  for (const one of plan.fills) {
    const value = one.value ?? (await nextCode(flow, signal));
    // A code that cannot be made any more is asked of a person by the next look.
    if (value === undefined) return false;
    // Whatever has led here, a page that was read wrongly or a recipe: a third submit may lock the account.
    if (one.field.type === 'password' && isSpent(flow, value))
      throw new FlowEnd(
        'max_attempts_reached',
        'The same password was submitted twice, and the site asks for it again.',
      );
    fills.push({ ...one, value });
    hideTyped(flow, one.field, value);
  }
  // Some pages submit by themselves with the last character.
  const typing: Typing = { flow, look, credential };
  const typed = (await typeAll(typing, fills)) ? await afterTyping(typing, fills) : undefined;
  for (const one of fills) remember(flow, look, one, credential);
  learnFill(flow, look, fills);
  flow.pending = { values: new Map() };

  const asks = typed?.reading.kind === look.reading.kind ? typed : undefined;
  if (asks && hasNewQuestion(flow.look ?? look, asks)) return false;
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
        unlearn(flow);
        throw error;
      }
    }
  }
  // An error text of the last answer must not make the same text of the next answer look old.
  if (!look.reading.error?.fresh || !flow.before) flow.before = look;
  flow.submitted = [...new Set(fills.map(({ field }): SubmittedPart => field.type))];
  flow.lastFrom = fills.some(({ from }) => from === 'person')
    ? 'person'
    : fills.some(({ from }) => from === 'code')
      ? 'code'
      : 'credential';
  flow.unjudged = true;
  flow.fills++;
  flow.websiteError = undefined;
  return true;
}

/** Counts before the submit: what is submitted by the page itself, or while the browser fails, counts too. */
function countPasswords(flow: Flow, fills: readonly Filled[], by: 1 | -1): void {
  for (const { field, value } of fills)
    if (field.type === 'password') {
      const key = passwordKey(flow, value);
      flow.passwordSubmits.set(key, (flow.passwordSubmits.get(key) ?? 0) + by);
      if (flow.passwordSubmits.get(key) === 0) flow.passwordSubmits.delete(key);
    }
}

/** Types everything. False when the page went on before the end: it does so with the last character of a code, mostly. */
async function typeAll(typing: Typing, fills: readonly Filled[]): Promise<boolean> {
  const { flow, look } = typing;
  for (const [index, filled] of fills.entries()) {
    const { field } = filled;
    try {
      await typeInto(typing, filled);
    } catch (error) {
      if (!isPassing(error) && !isUnusable(error)) throw error;
      // What the page says to a code is judged by the next look, whether it is gone, barred or emptied now.
      if (index === fills.length - 1 && (isCode(field) || (await wentOn(flow, look, field)))) return false;
      throw error;
    }
  }
  return true;
}

/** The element vanished because its page did, or because the question is answered. */
async function wentOn(flow: Flow, look: Look, field: ReadField): Promise<boolean> {
  try {
    const { reading, snapshot } = await lookNow(flow);
    const same = reading.kind === look.reading.kind && snapshot.url === look.snapshot.url;
    return !same || !reading.fields.some(({ type }) => type === field.type);
  } catch (error) {
    if (isPassing(error)) return true;
    throw error;
  }
}

async function typeInto({ flow, credential }: Typing, { field, value, ...origin }: Filled): Promise<void> {
  const { browser, pageId } = flow;
  const allow = allowFor(flow, origin, credential);
  if (field.options) {
    const radio = field.options.find((option) => option.value === value)?.ref;
    await browser.act(
      pageId,
      radio ? { kind: 'pick', ref: radio, allow } : { kind: 'choose', ref: field.ref, value, allow },
    );
    return;
  }
  const boxes = field.refs ?? [];
  if (boxes.length <= 1) {
    await browser.act(pageId, { kind: 'type', ref: field.ref, text: value, clear: true, allow });
    return;
  }
  const characters = Array.from(value.replace(/[\s-]/g, ''));
  for (const [index, ref] of boxes.entries()) {
    const text = characters[index];
    if (text === undefined) return;
    try {
      await browser.act(pageId, { kind: 'type', ref, text, clear: true, allow });
    } catch (error) {
      // The page took the code with its last character, and is gone or barred already. Some put all of it in at the first box.
      if (index > 0 && (isPassing(error) || isUnusable(error))) return;
      throw error;
    }
  }
}

/** The page after typing. Undefined when it went on by itself. Scripts that start late empty fields: those are typed again, once. */
async function afterTyping(typing: Typing, fills: readonly Filled[]): Promise<Look | undefined> {
  const { flow, look } = typing;
  try {
    const typed = await lookNow(flow);
    const emptied = fills.filter(
      ({ field }) =>
        !field.options && !isCode(field) && typed.reading.fields.some(({ id, filled }) => id === field.id && !filled),
    );
    if (emptied.length === 0 || typed.key !== look.key) return typed;
    for (const one of emptied) {
      const now = typed.reading.fields.find(({ id }) => id === one.field.id);
      if (now) await typeInto(typing, { ...one, field: now });
    }
    return await lookNow(flow);
  } catch (error) {
    if (isPassing(error)) return undefined;
    throw error;
  }
}

/** A field came up while typing, such as a password below a name. */
function hasNewQuestion(look: Look, typed: Look): boolean {
  const before = new Set(look.reading.fields.map(({ id }) => id));
  return typed.reading.fields.some(
    ({ id, type }) => !before.has(id) && (type === 'password' || isCode({ type } as ReadField)),
  );
}

/** What must be ticked before the submit, and the box that keeps the login for longer. */
async function tickBoxes(flow: Flow, { reading }: Look): Promise<void> {
  const boxes = reading.next.filter(({ act, why }) => act === 'check' && why === 'accept').map(({ ref }) => ref);
  if (reading.remember && !reading.remember.checked) boxes.push(reading.remember.ref);
  for (const ref of boxes)
    // A box that cannot be ticked does not stop a login that may go without it.
    await flow.browser.act(flow.pageId, { kind: 'check', ref, on: true }).catch(ignoreUnfit);
}

/** By the button; by Enter where there is none, where it cannot be clicked, and where it had no effect the last time. */
async function submit(flow: Flow, { reading }: Look, planned: Look, last: ReadField | undefined): Promise<void> {
  await rememberPages(flow);
  const now = last && (reading.fields.find(({ id }) => id === last.id) ?? last);
  const button = reading.submit ?? planned.reading.submit;
  const enter =
    now && !now.options ? ({ kind: 'press', key: 'Enter', ref: now.refs?.at(-1) ?? now.ref } as const) : undefined;
  const click = button && ({ kind: 'click', ref: button.ref } as const);
  const ways = (flow.silent > 0 ? [enter, click] : [click, enter]).filter((way) => way !== undefined);
  if (ways.length === 0)
    throw new FlowEnd(
      'element_not_found',
      'The page has a form without a button and without a field to press Enter in.',
    );
  for (const [index, way] of ways.entries()) {
    try {
      await flow.browser.act(flow.pageId, way);
      return;
    } catch (error) {
      if (error instanceof FormsError && error.fault === 'stale') return;
      if (index === ways.length - 1 || !(error instanceof FormsError) || error.fault !== 'unreachable') throw error;
    }
  }
}

/** What the login needs, and what a person typed. */
function remember(
  flow: Flow,
  look: Look,
  { field, value, from, name }: Filled,
  credential: OpenCredential | undefined,
): void {
  const { requirements } = flow;
  if (name !== undefined) flow.taken.set(name, memoryKey(field));
  if (isCode(field) && from !== 'credential') {
    const channel = codeChannel(field, look.reading);
    if (from === 'code') requirements.totp = true;
    else if (!requirements.codes.includes(channel)) requirements.codes.push(channel);
    return;
  }
  if (field.type === 'identifier') flow.identifiers.add(value);
  const values = credential?.values ?? {};
  // By the credential's own name where no other would find it again.
  const own = name !== undefined && !namesFor([name])(field.key) ? name : undefined;
  const key = own ?? (field.key === 'text' ? nameFor(field, {}) : field.key);
  const isKept = requirements.keys.length >= mostKeys || requirements.keys.includes(key);
  if (field.key !== 'new_password' && !isKept) requirements.keys.push(key);
  if (from !== 'person') return;
  const kept = nameFor(field, values);
  flow.typed[kept] = value;
  keepPlace(flow, field.origin, kept);
  keepPersonal(flow, field.origin, field.key === 'new_password' ? 'password' : memoryKey(field), value);
}

/** One value is kept by a name. It is for the host where it was typed last, and for no other that had one by this name. */
function keepPlace(flow: Flow, origin: string | undefined, name: string): void {
  for (const names of flow.confirmed.values()) names.delete(name);
  flow.typedAt.set(name, origin ?? '');
  const host = origin === undefined ? undefined : hostOf(origin);
  if (origin === undefined || host === undefined) return;
  if (flow.hosts.learned(origin) && !flow.confirmed.has(host)) flow.confirmed.set(host, new Set());
  flow.confirmed.get(host)?.add(name);
}

export const isPassing = (error: unknown) =>
  error instanceof FormsError && (error.fault === 'stale' || error.fault === 'page_gone');

/** The element is there, and cannot be clicked or typed into. */
const isUnusable = (error: unknown) => error instanceof FormsError && error.fault === 'unreachable';

function ignoreUnfit(error: unknown): void {
  if (!(error instanceof FormsError)) throw error;
}
