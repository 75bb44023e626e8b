import type { ReadChoice, ReadField, Step } from '../reading/types.ts';
import { FlowEnd } from './ends.ts';
import type { Look } from './types.ts';

export interface Fill {
  field: ReadField;
  /** Undefined for a code that is generated when it is typed. */
  value?: string | undefined;
  from: 'person' | 'credential' | 'code';
  /** The name of the credential's value. */
  name?: string | undefined;
}

export interface FillPlan {
  fills: Fill[];
  /** Fields that the page needs and that have no value. */
  missing: ReadField[];
}

/** What to do with a page. Each has a sentence for `explain`. */
export type Decision = { why: string } &
  /** `look` is the page as a recipe sees it. */
  (
    | { do: 'fill'; plan: FillPlan; look?: Look | undefined }
    | { do: 'click'; step: Step }
    | { do: 'choose'; choice: ReadChoice }
    | { do: 'ask'; fields: ReadField[]; choices: ReadChoice[]; websiteError?: string | undefined; refused?: true }
    | { do: 'external'; message: string; fields: ReadField[]; choices: ReadChoice[] }
    | { do: 'basic' }
    /** The person has confirmed the host. */
    | { do: 'trust'; host: string }
    | { do: 'passkey' }
    | { do: 'enrol' }
    | { do: 'wait' }
    | { do: 'enter' }
    | { do: 'start_over'; refused?: true; websiteError?: string | undefined }
    | { do: 'confirm'; byPerson?: true }
    | { do: 'end'; end: FlowEnd }
  );

export function ending(code: FlowEnd['code'], message: string, websiteError?: string): Decision {
  return { do: 'end', why: message, end: new FlowEnd(code, message, websiteError) };
}

/** The site has refused the submitted values. */
export const isRefusal = (decision: Decision) => 'refused' in decision && decision.refused === true;
