import type { ReadChoice, ReadField } from '../reading/types.ts';
import type { Flow } from './context.ts';
import type { FlowState } from './types.ts';

/** Reports a state to users, unless it is the one before: the same question on a page that was drawn again is the same question. */
export async function report(flow: Flow, state: FlowState): Promise<void> {
  const fits = roomFor(mostCharacters);
  const asked = <T extends ReadField | ReadChoice>(one: T) => ({
    ...shown(flow, one),
    question: flow.person.questionOf(one),
  });
  // Fields come first, then choices, then the options of fields: a page with many choices still asks for its password.
  const fields = state.fields
    .slice(0, mostShown)
    .map(({ options, ...field }) => ({ field: asked(withoutError(field, state.websiteError)), options }))
    .filter(({ field }) => fits(field));
  const choices = state.choices.slice(0, mostShown).map(asked).filter(fits);
  const clean: FlowState = {
    ...state,
    externalActionMessage: state.externalActionMessage && flow.scrub.text(state.externalActionMessage),
    websiteError: state.websiteError && flow.scrub.text(state.websiteError),
    choices,
    fields: fields.map(({ field, options }) => ({
      ...field,
      ...(options && { options: options.map((option) => shown(flow, option)).filter(fits) }),
    })),
    ssoProvider: flow.person.ssoProvider,
  };
  if (flow.person.isNews(clean)) await flow.input.report(clean);
}

/** More questions than any login has. */
export const mostShown = 60;
/** Of all questions of a page together, as JSON. A list has the questions of a hundred logins. */
const mostCharacters = 64_000;

/** Whether the next one fits into the room that those before it have left. */
function roomFor(characters: number): (one: object) => boolean {
  let room = characters;
  return (one) => (room -= JSON.stringify(one).length) >= 0;
}

/** Sites describe their fields by the error text. It is reported once, and not with each field. */
function withoutError<T extends { hint?: string }>({ hint, ...field }: T, error = ''): Omit<T, 'hint'> {
  const repeats = hint !== undefined && error !== '' && (hint.includes(error) || error.includes(hint));
  return { ...field, ...(hint !== undefined && !repeats && { hint }) };
}

const pageTexts = new Set(['label', 'hint', 'placeholder', 'description', 'target', 'provider', 'value']);

/** A page's text of a question may repeat typed values. A selector that contains one is left out. Ids stay, since answers name them. */
function shown<T extends object>({ secrets }: Flow, question: T): T {
  const clean = Object.entries(question).map(([name, value]: [string, unknown]) => {
    if (name === 'selectors') return [name, secrets.without(value as string[])];
    return [name, typeof value === 'string' && pageTexts.has(name) ? secrets.text(value) : value];
  });
  return Object.fromEntries(clean) as T;
}
