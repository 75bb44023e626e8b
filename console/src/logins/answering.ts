import type { ManagedAuth } from '../api/schema.gen.d.ts';

type Asked = Pick<ManagedAuth, 'flow_step' | 'fields' | 'choices' | 'website_error' | 'interaction_id'>;

/** The login has replaced its question, or was about to. */
const passing = new Set(['stale_interaction', 'flow_not_waiting']);
const TRIES = 6;
const PAUSE_MS = 500;

/**
 * What a login asks: the same while the same is asked, and another after a wrong answer. The interaction has a new id whenever the login
 * looks at the page again.
 */
export const questionOf = ({ flow_step, fields, choices, website_error }: Asked): string | undefined =>
  flow_step === 'AWAITING_INPUT'
    ? JSON.stringify([fields?.map(({ id }) => id), choices?.map(({ id }) => id), website_error])
    : undefined;

/**
 * Gives an answer to the question that a person saw. The login may look at the page again in the moment of the click, and then takes the
 * answer under the new name of the same question. An answer is not given to another question.
 */
export async function answering<T>(
  seen: Asked,
  submit: (interaction: string | undefined) => Promise<T>,
  read: () => Promise<Asked>,
  pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS)),
): Promise<T> {
  let interaction = seen.interaction_id;
  for (let tries = 1; ; tries++) {
    try {
      return await submit(interaction ?? undefined);
    } catch (error) {
      if (!passing.has((error as { code?: string }).code ?? '') || tries === TRIES) throw error;
      await pause();
      const now = await read();
      if (questionOf(now) !== questionOf(seen)) throw error;
      interaction = now.interaction_id;
    }
  }
}
