import { FormsError } from './browser.ts';
import { asksSources, isCode } from './codes.ts';
import type { Flow } from './context.ts';
import { lookAt } from './look.ts';
import { pause } from './pause.ts';
import { report } from './report.ts';
import type { FlowStateName } from './states.ts';
import type { Look } from './types.ts';

const mostFrozen = 5;
/** For the person at the hosted page. */
const looksBySelf = 'The service looks for this code by itself. You can also enter it here.';

/**
 * Waits for a person, a pushed code, or the page itself: an answered push, or a person in the live
 * view, changes the page. Each is followed by another look, which decides by the page of that time.
 */
export async function awaitChange(
  flow: Flow,
  step: 'AWAITING_INPUT' | 'AWAITING_EXTERNAL_ACTION',
  signal: AbortSignal,
): Promise<FlowStateName> {
  const { person } = flow;
  const { fields, choices, message } = person.asked;
  if (person.untried) return 'looking';
  await report(flow, {
    step,
    fields,
    choices,
    externalActionMessage: message ?? (asksSources(flow.page.credential, fields) ? looksBySelf : undefined),
    websiteError: flow.attempt.websiteError,
  });
  // An answer to the wait before this one may have been taken since.
  if (person.untried) return 'looking';
  flow.page.followOwnWindows();
  const leave = new AbortController();
  const both = AbortSignal.any([signal, leave.signal]);
  try {
    const first = await Promise.race([given(flow, both), changed(flow, both)]);
    if (first === 'changed' && step === 'AWAITING_EXTERNAL_ACTION') flow.draft.need({ external: true });
    if (first === 'given') flow.attempt.forgetVisits();
    return 'looking';
  } finally {
    leave.abort(new Error('The flow waits no longer.'));
  }
}

/** The next submit that answers one of the questions. */
async function given(flow: Flow, signal: AbortSignal): Promise<'given'> {
  const { fields, choices } = flow.person.asked;
  const sentAt = asksSources(flow.page.credential, fields) ? (flow.attempt.sentAt ?? flow.beganAt) : undefined;
  for (;;) {
    // Taken even when the page has changed in the same moment: what a person has given must not get lost.
    const submitted = await flow.input.input({ signal, codes: fields.some(isCode), sentAt });
    if (flow.person.take(submitted)) return 'given';
    // Nothing to ask for: only the page can change.
    if (fields.length === 0 && choices.length === 0) await pause(1000, signal);
  }
}

/** Resolves when the page asks something else than it did. */
async function changed(flow: Flow, signal: AbortSignal): Promise<'changed'> {
  const before = flow.page.look && asks(flow, flow.page.look);
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
const asks = ({ person }: Flow, { key, reading: { fields, choices } }: Look) =>
  [key, ...[...fields, ...choices].map((asked) => person.questionOf(asked))].join(' ');
