import type { ManagedAuth } from '../api/schema.gen.d.ts';

type Asked = Pick<ManagedAuth, 'flow_step' | 'fields' | 'choices' | 'website_error' | 'interaction_id'>;

/** The login has replaced its question, or was replacing it. */
const passing = new Set(['stale_interaction', 'flow_not_waiting']);
const TRIES = 6;
const PAUSE_MS = 500;

/**
 * Identifies the question of a login. It stays the same until another question is asked or the answer was wrong. The id of the interaction
 * changes each time the login reads the page.
 */
export const questionOf = ({ flow_step, fields, choices, website_error }: Asked): string | undefined =>
  flow_step === 'AWAITING_INPUT'
    ? JSON.stringify([fields?.map(({ id }) => id), choices?.map(({ id }) => id), website_error])
    : undefined;

/**
 * Sends the answer to the question that was shown. If the login has read the page again, the answer is sent with the new id of the
 * same question. It is not sent for another question.
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
