import { Attempt } from './attempt.ts';
import type { FlowBrowser } from './browser.ts';
import { Evidence } from './evidence.ts';
import { Factors } from './factors.ts';
import type { HiddenValues } from './hidden-values.ts';
import { allowedHosts, type AllowedHosts } from './hosts.ts';
import { FlowPage } from './page.ts';
import { Person } from './person.ts';
import { RecipeDraft } from './recipe-draft.ts';
import { scrubber } from './scrub.ts';
import { standardDeadlines, type FlowDeadlines, type FlowInput, type Reader } from './types.ts';

/** What the states of one flow share. Only the file of a part changes its fields; the states call its methods. */
export interface Flow extends Readonly<HiddenValues> {
  readonly input: FlowInput;
  readonly read: Reader;
  /** Usable for as long as the flow is in the state that got it. */
  readonly browser: FlowBrowser;
  readonly hosts: AllowedHosts;
  readonly deadlines: Readonly<FlowDeadlines>;
  readonly now: () => number;
  /** In milliseconds since 1970. */
  readonly beganAt: number;
  readonly page: Readonly<FlowPage>;
  readonly attempt: Readonly<Attempt>;
  readonly factors: Readonly<Factors>;
  readonly person: Readonly<Person>;
  readonly evidence: Readonly<Evidence>;
  readonly draft: Readonly<RecipeDraft>;
}

export function newFlow(input: FlowInput, read: Reader): Flow {
  const hosts = allowedHosts(input.connection);
  const now = input.now ?? Date.now;
  const hidden = { scrub: scrubber(), secrets: scrubber() };
  return {
    ...hidden,
    input,
    read,
    browser: input.browser,
    hosts,
    deadlines: { ...standardDeadlines, ...input.deadlines },
    now,
    beganAt: now(),
    page: new FlowPage(),
    attempt: new Attempt(),
    factors: new Factors(input.lastTotpCounter),
    person: new Person(hosts, hidden),
    evidence: new Evidence(),
    draft: new RecipeDraft(),
  };
}

export const isAttended = ({ input }: Flow) => input.attended?.() ?? false;
