import type { ReadChoice, ReadField, Step } from '../reading/types.ts';
import { FlowEnd } from './ends.ts';
import type { Flow, Look } from './flow.ts';
import type { FillPlan } from './plan.ts';
import { mayTypeAt } from './permission.ts';

/** What to do with a page. Each has a sentence for `explain`. */
export type Decision = { why: string } &
  /** `look` is the page as a recipe sees it. */
  (
    | { do: 'fill'; plan: FillPlan; look?: Look | undefined }
    | { do: 'click'; step: Step }
    | { do: 'choose'; choice: ReadChoice }
    | {
        do: 'ask';
        fields: ReadField[];
        choices: ReadChoice[];
        websiteError?: string | undefined;
        /** The site has refused what was submitted. */
        refused?: true;
      }
    | { do: 'external'; message: string; fields: ReadField[]; choices: ReadChoice[] }
    | { do: 'basic' }
    /** The person has confirmed the host. */
    | { do: 'trust'; host: string }
    | { do: 'passkey' }
    | { do: 'enrol' }
    | { do: 'wait' }
    | { do: 'enter' }
    | { do: 'start_over'; refused?: true; websiteError?: string | undefined }
    | { do: 'confirm' }
    | { do: 'end'; end: FlowEnd }
  );

export function ending(code: FlowEnd['code'], message: string, websiteError?: string): Decision {
  return { do: 'end', why: message, end: new FlowEnd(code, message, { websiteError }) };
}

/** The frame that a field is in, when nothing may be typed into it. The browser has the last word, when it types. */
export function foreignFrame(flow: Flow, { frames }: Look['snapshot'], { ref }: ReadField) {
  const frame = frames.find(({ elements }) => elements.some((element) => element.ref === ref));
  return frame && !frame.main && !mayTypeAt(flow, frame.origin) ? frame : undefined;
}

export const stepKey = (look: Look, { why, label }: Step) => `step ${look.key} ${why} ${label}`;

/**
 * A re-authentication that ends with website_error is tried again soon, which would only prolong the lock; so it says that
 * there have been enough attempts.
 */
export function lockedOut({ input }: Flow, websiteError?: string): Decision {
  const code = input.flowType === 'REAUTH' ? 'max_attempts_reached' : 'website_error';
  return ending(code, 'The site says that the account is locked or disabled.', websiteError);
}
