import type { OpenCredential } from '../../credentials/service.ts';
import type { Decision } from './decision.ts';
import type { Flow, Look } from './flow.ts';
import { planFill } from './plan.ts';
import { nextReplay, type Replay } from './recipe.ts';

/** What a recipe may take the place of: not the ends, the judgement of an answer, or what a person has given. */
const replaceable: Decision['do'][] = ['fill', 'ask', 'click', 'choose', 'external', 'enter'];

/** The recipe's next step instead of the reading's decision, where its page has not changed. */
export async function replayed(
  flow: Flow,
  look: Look,
  credential: OpenCredential | undefined,
  decision: Decision,
): Promise<Decision> {
  const personal = flow.pending.values.size > 0 || flow.pending.choice !== undefined || flow.pending.code !== undefined;
  if (!replaceable.includes(decision.do) || personal || flow.credentialRefused || flow.silent > 0) return decision;
  if ('refused' in decision && decision.refused) return decision;
  // What lies over the form is closed first; a recipe knows nothing of it.
  if (decision.do === 'click' && decision.step.why === 'dismiss') return decision;
  const replay = await nextReplay(flow, look);
  if (!replay) return decision;
  const step = stepOf(flow, look, credential, replay);
  if (!step || isNeedless(decision, step)) return decision;
  flow.replayAt = replay.at + 1;
  return step;
}

/** The site asks at once for what another way was taken to the last time. The ways that it offers now may lack that one. */
const isNeedless = (decision: Decision, step: Decision) =>
  decision.do === 'fill' && step.do === 'choose' && step.choice.mfaType !== undefined;

function stepOf(flow: Flow, look: Look, credential: OpenCredential | undefined, replay: Replay): Decision | undefined {
  const { fields, click } = replay;
  const why = `The recipe's step ${replay.at + 1} fits the page.`;
  if (fields.length > 0) {
    const reading = { ...look.reading, fields, submit: click ?? look.reading.submit };
    const plan = planFill(flow, reading, credential);
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
