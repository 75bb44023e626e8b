import type { FlowStep } from '../api-enums.ts';
import { expired, FlowEnd } from './ends.ts';
import type { FlowDeadlines } from './types.ts';

/** What the answer to "what if it stays here" depends on. */
export interface Stay {
  deadlines: FlowDeadlines;
  reauth: boolean;
  asksCode: boolean;
  captcha: boolean;
}

interface StateOfFlow {
  means: string;
  /** What users see. Undefined leaves it as it was. */
  step: FlowStep | undefined;
  /** Milliseconds that a flow may stay in it, besides the deadline of the whole flow. */
  deadline(stay: Stay): number;
  /** What happens when it stays there: the next state, or the end. */
  stays: FlowStateName | ((stay: Stay) => FlowEnd);
}

export type FlowStateName =
  'opening' | 'looking' | 'entering' | 'acting' | 'awaiting_input' | 'awaiting_external' | 'responding' | 'confirming';

/**
 * Every state of a flow. A flow ends by a `FlowEnd`, thrown in any of them. The whole flow has a deadline too, so that no
 * way through the states, however it goes round, outlives it.
 */
export const flowStates: Record<FlowStateName, StateOfFlow> = {
  opening: {
    means: 'The browser goes to the first address of the login that answers.',
    step: 'DISCOVERING',
    deadline: ({ deadlines: { page } }) => 3 * page,
    stays: () => new FlowEnd('network_error', 'No address of the site answered in time.'),
  },
  looking: {
    means: 'The page is read, and what to do with it is decided.',
    step: undefined,
    deadline: ({ deadlines: { page, coming } }) => page + Math.max(page, coming),
    stays: () =>
      new FlowEnd(
        'browser_error',
        'The page could not be read in time. It may be frozen, or lead to another page again and again.',
      ),
  },
  entering: {
    means: 'The page has no login form; the next address that may have one is tried.',
    step: 'DISCOVERING',
    deadline: ({ deadlines: { page, coming } }) => 2 * page + 2 * coming,
    stays: 'looking',
  },
  acting: {
    means: 'Fields are typed into and buttons are clicked.',
    step: 'SUBMITTING',
    // The next window of one-time codes may be a minute away.
    deadline: ({ deadlines: { page } }) => 2 * page + 90_000,
    stays: () => new FlowEnd('browser_error', 'The page did not take what was typed in time. It may be frozen.'),
  },
  responding: {
    means: 'Something was submitted; the page takes its time to answer.',
    step: 'SUBMITTING',
    deadline: ({ deadlines: { page } }) => page,
    stays: 'looking',
  },
  awaiting_input: {
    means: 'The page asks for something that only a person, or a pushed code, can give.',
    step: 'AWAITING_INPUT',
    deadline: ({ deadlines: { input } }) => input,
    stays: ({ reauth, asksCode }) =>
      reauth && asksCode
        ? new FlowEnd(
            'mfa_required',
            'The site asks for a code that the flow cannot make, and none was pushed in time.',
          )
        : expired('awaiting_input_timeout', 'What the site asks for was not submitted in time. Start the login again.'),
  },
  awaiting_external: {
    means: 'The page waits for something outside of it: a push, a link in a mail, a person in the live view.',
    step: 'AWAITING_EXTERNAL_ACTION',
    // No person waits for a re-authentication. A push is answered soon or not at all.
    deadline: ({ deadlines: { external }, reauth }) => (reauth ? Math.min(external, 120_000) : external),
    stays({ reauth, captcha }) {
      if (captcha) return new FlowEnd('captcha_blocked', 'The captcha of the site was not solved in time.');
      const action = 'an action outside of the page';
      return reauth
        ? new FlowEnd('external_action_required', `The site waits for ${action}, which a re-authentication cannot do.`)
        : expired('external_action_timeout', `The site waited for ${action} that did not come in time.`);
    },
  },
  confirming: {
    means: 'The login looks done; a second page shows whether it is.',
    step: 'SUBMITTING',
    // Each of several pages may be waited for.
    deadline: ({ deadlines: { page, coming } }) => 3 * page + 2 * coming,
    stays: () => new FlowEnd('flow_failed', 'Whether the login succeeded could not be found out in time.'),
  },
};
