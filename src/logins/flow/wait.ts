import { FormsError } from './browser.ts';
import { hideTyped, pause, report, type Flow, type Look } from './flow.ts';
import { lookAt } from './look.ts';
import type { FlowStateName } from './states.ts';
import type { Submitted } from './types.ts';
import { isCode } from './plan.ts';
import { placeOf, questionOf } from './questions.ts';

const mostFrozen = 5;

/**
 * Waits for a person, a pushed code, or the page itself: a push that was answered, or a person who went on in the live
 * view, changes the page. Each way leads to another look, which decides with what is there then.
 */
export async function awaitChange(
  flow: Flow,
  step: 'AWAITING_INPUT' | 'AWAITING_EXTERNAL_ACTION',
  signal: AbortSignal,
): Promise<FlowStateName> {
  const { fields, choices, message } = flow.asked;
  if (flow.untried) return 'looking';
  await report(flow, {
    step,
    fields,
    choices,
    externalActionMessage: message,
    websiteError: flow.websiteError,
  });
  // An answer to the wait before this one may have been taken meanwhile.
  if (flow.untried) return 'looking';
  flow.waitedForPerson = true;
  flow.acted = false;
  const leave = new AbortController();
  const both = AbortSignal.any([signal, leave.signal]);
  try {
    const first = await Promise.race([given(flow, both), changed(flow, both)]);
    if (first === 'changed' && step === 'AWAITING_EXTERNAL_ACTION') flow.requirements.external = true;
    if (first === 'given') flow.visits.clear();
    return 'looking';
  } finally {
    leave.abort(new Error('The flow waits no longer.'));
  }
}

/** The next submit that answers something of what is asked. */
async function given(flow: Flow, signal: AbortSignal): Promise<'given'> {
  const { fields, choices } = flow.asked;
  for (;;) {
    // Taken even when the page has changed in the same moment: what a person has given must not get lost.
    const submitted = await flow.input.input({ signal, codes: fields.some(isCode) });
    if (take(flow, submitted)) return 'given';
    // Nothing to ask for: only the page can change.
    if (fields.length === 0 && choices.length === 0) await pause(1000, signal);
  }
}

function take(flow: Flow, { fieldValues = {}, choiceId, code, questions = [] }: Submitted): boolean {
  const { fields, choices } = flow.asked;
  const answered = new Set(questions);
  let taken = false;
  for (const field of fields) {
    const value = fieldValues[field.id];
    const question = questionOf(flow, field);
    if (value === undefined || value === '' || !answered.has(question)) continue;
    flow.pending.values.set(question, value);
    hideTyped(flow, field, value);
    taken = true;
  }
  const choice = choices.find(({ id }) => id === choiceId);
  if (choice && answered.has(questionOf(flow, choice))) {
    flow.pending.choice = questionOf(flow, choice);
    taken = true;
  }
  const codeField = fields.find(isCode);
  if (code !== undefined && code !== '' && codeField) {
    flow.pending.code = { value: code, place: placeOf(flow, codeField.origin) };
    flow.scrub.add(code);
    flow.secrets.add(code);
    taken = true;
  }
  flow.untried ||= taken;
  return taken;
}

/** Resolves when the page asks something else than it did. */
async function changed(flow: Flow, signal: AbortSignal): Promise<'changed'> {
  const before = flow.look && asks(flow, flow.look);
  for (let frozen = 0; ;) {
    await pause(flow.deadlines.every, signal);
    try {
      const look = await lookAt(flow, signal, 3000);
      if (asks(flow, look) !== before) return 'changed';
      frozen = 0;
    } catch (error) {
      // A page may be busy for a while; a person has time.
      if (!(error instanceof FormsError) || error.fault !== 'frozen' || ++frozen > mostFrozen) throw error;
    }
  }
}

/** The page and its questions, as one text that is equal while they are. */
const asks = (flow: Flow, { key, reading: { fields, choices } }: Look) =>
  [key, ...[...fields, ...choices].map((asked) => questionOf(flow, asked))].join(' ');
