import type { ReadField, Reading } from '../reading/types.ts';
import { isCode, takesGenerated } from './codes.ts';
import type { Flow } from './context.ts';
import type { Fill, FillPlan } from './decision.ts';
import { leftFor, optionFor, valueFor } from './values.ts';

/** What can be typed now: what a person has just given, then what a person gave before, then the credential. */
export function planFill(flow: Flow, reading: Reading): FillPlan {
  const plan: FillPlan = { fills: [], missing: [] };
  for (const field of reading.fields) {
    const fill = fillFor(flow, field, reading);
    if (fill) plan.fills.push(fill);
    else if (isNeeded(field) || field.options) plan.missing.push(field);
  }
  if (!flow.attempt.credentialRefused) fillFromRest(flow, plan, reading);
  plan.missing = plan.missing.filter(isNeeded);
  return plan;
}

/** Values under names that fit no field, where only one field can be meant. */
function fillFromRest({ attempt, page }: Flow, plan: FillPlan, reading: Reading): void {
  const values = page.credential?.values ?? {};
  const used = new Set(plan.fills.flatMap(({ name }) => name ?? []));
  const open = plan.missing.filter(
    (field) => !['new_password', 'captcha'].includes(field.key) && (!isCode(field) || isFixed(field, reading, values)),
  );
  for (const kind of [
    open.filter(({ options }) => options),
    open.filter(({ type, options }) => type === 'password' && !options),
    open.filter(({ type, options }) => type !== 'password' && !options),
  ]) {
    // Two open questions of a kind: which value is for which is a guess.
    if (kind.length > 1 && !kind[0]?.options) continue;
    for (const field of kind) {
      const elsewhere = attempt.takenElsewhere(memoryKey(field));
      const found = isCode(field) ? fixedCode(field, values) : leftFor(field, values, new Set([...used, ...elsewhere]));
      if (!found) continue;
      used.add(found.name);
      plan.fills.push({ field, value: found.value, from: 'credential', name: found.name });
      plan.missing = plan.missing.filter((one) => one !== field);
    }
  }
  plan.fills.sort((a, b) => reading.fields.indexOf(a.field) - reading.fields.indexOf(b.field));
}

/** A PIN that is always the same looks like a code, but no site sends it, and it is in the credential by its name. */
const isFixed = (field: ReadField, reading: Reading, values: Record<string, string>) =>
  field.type === 'code' && field.mfaType === undefined && takesGenerated(field, reading) && !!fixedCode(field, values);

const fixedCode = (field: ReadField, values: Record<string, string>) =>
  valueFor({ ...field, type: 'password', key: 'pin' }, onlyPins(values));

const pinsBefore = new WeakMap<Record<string, string>, Record<string, string>>();

/** The same object for the same values, so that it is prepared once as well. */
function onlyPins(values: Record<string, string>): Record<string, string> {
  const pins =
    pinsBefore.get(values) ??
    Object.fromEntries(
      Object.entries(values).filter(([name]) => /\b(pin|code|passcode|tan)\b/i.test(name.replace(/_/g, ' '))),
    );
  pinsBefore.set(values, pins);
  return pins;
}

function fillFor({ attempt, factors, page, person }: Flow, field: ReadField, reading: Reading): Fill | undefined {
  const { credential } = page;
  const given = person.answerTo(field);
  if (given !== undefined) {
    const value = field.options ? (optionFor(field, given) ?? given) : given;
    return { field, value, from: 'person' };
  }
  if (isCode(field)) {
    const generates = credential?.totp !== undefined && factors.mayGenerate;
    return generates && takesGenerated(field, reading) ? { field, from: 'code' } : undefined;
  }
  if (field.key === 'new_password') return undefined;
  const before = person.typedAt(field.origin).get(memoryKey(field));
  if (before !== undefined) return { field, value: before, from: 'person' };
  if (attempt.credentialRefused && field.type !== 'text') return undefined;
  const found = valueFor(field, credential?.values ?? {});
  return found && { field, value: found.value, from: 'credential', name: found.name };
}

/** Under which a person's value is remembered for the same question on a later page. */
export const memoryKey = ({ key, label }: ReadField) =>
  key === 'text' || key === 'security_answer' ? `${key}:${label}` : key;

function isNeeded(field: ReadField): boolean {
  if (field.options) return field.required && !field.options.some(({ selected, value }) => selected && value !== '');
  if (field.filled && field.type !== 'password' && !isCode(field)) return false;
  return field.required || field.type !== 'text';
}
