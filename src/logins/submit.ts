import { errors } from '../errors.ts';
import { isWellFormed } from '../lib/text.ts';
import type { FlowState, Submitted } from './flow/types.ts';
import type { ReadChoice } from './reading/types.ts';
import type { SubmitFields } from './schema.ts';

/**
 * What a submit means for the login that runs: every form of the request, the canonical one and the older ones, as ids of
 * what the page asks for now. Refuses what the page does not ask for, since it would be typed nowhere.
 */
export function submittedTo(state: FlowState, request: SubmitFields): Submitted {
  const values = { ...namedValues(state, request.fields ?? {}), ...knownValues(state, request.field_values ?? {}) };
  if (!Object.values(values).every(isWellFormed)) throw broken();
  const choice = choiceOf(state, request);
  if (Object.keys(values).length === 0 && choice === undefined)
    throw errors.invalid_input({
      detail: 'A submit needs field_values, selected_choice_id, or one of the older fields.',
    });
  const asked = [...state.fields.filter(({ id }) => Object.hasOwn(values, id)), ...(choice ? [choice] : [])];
  return {
    ...(Object.keys(values).length > 0 ? { fieldValues: values } : {}),
    ...(choice === undefined ? {} : { choiceId: choice.id }),
    questions: asked.flatMap(({ question }) => question ?? []),
  };
}

function knownValues({ fields }: FlowState, given: Record<string, string>): Record<string, string> {
  for (const id of Object.keys(given))
    if (!fields.some((field) => field.id === id))
      throw notAsked(`field_values: the login asks for no field '${id}' now.`);
  return given;
}

/** By the name of a discovered field, or by the key that a credential would have it under, unless another origin asked under it before. */
function namedValues({ fields }: FlowState, given: Record<string, string>): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const field =
      fields.find(({ id }) => id === name) ?? fields.find(({ id, key }) => key === name && !id.includes('@'));
    if (!field) throw notAsked(`fields: the login asks for no field '${name}' now.`);
    values[field.id] = value;
  }
  return values;
}

function choiceOf({ choices }: FlowState, request: SubmitFields): FlowState['choices'][number] | undefined {
  const [given, other] = waysToChoose.filter(([name]) => request[name] !== undefined);
  if (!given) return undefined;
  if (other) throw errors.invalid_input({ detail: `${given[0]} and ${other[0]} are two choices. Send one of them.` });
  const [name, names] = given;
  const chosen = choices.find((choice) => names(choice, request[name]!));
  if (!chosen) throw notAsked(`${name}: the login offers no choice '${request[name]}' now.`);
  return chosen;
}

type ChoiceName = 'selected_choice_id' | 'sso_button_selector' | 'sso_provider' | 'mfa_option_id' | 'sign_in_option_id';

/** The fields of a request that name a choice, each with what it names. */
const waysToChoose: [ChoiceName, (choice: ReadChoice, value: string) => boolean][] = [
  ['selected_choice_id', ({ id }, value) => id === value],
  ['sso_button_selector', ({ type, selectors }, value) => type === 'sso_provider' && selectors.includes(value)],
  ['sso_provider', (choice, value) => choice.type === 'sso_provider' && providerOf(choice) === value],
  [
    'mfa_option_id',
    (one, value) => one.id === value || (one.type === 'mfa_method' && (one.mfaType ?? 'switch') === value),
  ],
  ['sign_in_option_id', ({ id }, value) => id === value],
];

export const broken = () =>
  errors.invalid_input({ detail: 'A value has half of a surrogate pair. Send whole characters.' });
const providerOf = ({ provider, label }: ReadChoice) => provider ?? label.toLowerCase();
const notAsked = (what: string) =>
  errors.flow_not_waiting({ detail: `${what} GET /auth/connections/{id} has what it asks for.` });
