import type { ReadField, SubmittedPart } from '../reading/types.ts';
import { pageAddress } from './addresses.ts';
import { isRefusal, type Decision, type Fill } from './decision.ts';
import { FlowEnd } from './ends.ts';
import type { Look } from './types.ts';

const mostActs = 40;
const mostVisits = 3;
/** Elements that vanished or could not be used before the flow fails. */
const mostMisses = 2;
/** Times that a page did not answer an act before the flow fails. */
const mostFreezes = 6;

/** A step or a choice of a page. */
type Tried = { label: string } & ({ why: string } | { type: string });

/** What the flow has done on the site, how often, and the site's answer to the last submit. */
export class Attempt {
  decision?: Decision | undefined;
  /** The page just before the last submit, and the parts that were submitted. */
  before?: Look | undefined;
  submitted: readonly SubmittedPart[] = [];
  /** The source of the last submitted values: a person if any of them came from a person. */
  lastFrom: Fill['from'] = 'credential';
  /** When the flow last clicked or submitted something that a site may answer with a code, in milliseconds since 1970. */
  sentAt?: number | undefined;
  /** The page's answer to the last submit was not judged yet. */
  unjudged = false;
  /** How often in a row a page came back after a submit without an error text. */
  silent = 0;
  /** The site refused the credential's values: they are not typed again. */
  credentialRefused = false;
  /** How often the site refused values that a person typed. */
  refusals = 0;
  /** The site's error text for the last submit, for the person. */
  websiteError?: string | undefined;
  /** Submitted forms. */
  fills = 0;
  startedOver = false;
  /** The next step of the recipe to replay; undefined when the pages are read instead. */
  replayAt: number | undefined = 0;
  #acts = 0;
  #misses = 0;
  #freezes = 0;
  /** Acts of the flow on each page since the last answer of a person. */
  #visits = new Map<string, number>();
  #tried = new Set<string>();
  /** Names of the credential's values that were typed, each with the question that it answered. */
  #taken = new Map<string, string>();
  /** Submitted values by the field of the page that they were typed into. */
  #typed = new Map<string, string>();

  /** Counts an act, so that a site with a loop ends the flow. */
  count({ key, reading }: Look): void {
    if (++this.#acts > mostActs)
      throw new FlowEnd('max_steps_exceeded', `The login was not done after ${mostActs} steps.`);
    const visits = (this.#visits.get(key) ?? 0) + 1;
    this.#visits.set(key, visits);
    if (visits > mostVisits)
      throw new FlowEnd('stuck_in_loop', 'The site shows the same page again and again.', reading.error?.text);
  }

  send(at: number): void {
    this.sentAt = at;
  }

  /** An answer of a person is reason to visit pages again. */
  forgetVisits(): void {
    this.#visits.clear();
  }

  /** Counts an element that could not be used, and stops the replay of the recipe. True when there were too many. */
  miss(): boolean {
    this.replayAt = undefined;
    return ++this.#misses > mostMisses;
  }

  /** Counts an act that the page did not answer. False when there were too many. */
  freeze(): boolean {
    return ++this.#freezes <= mostFreezes;
  }

  replayed(at: number): void {
    this.replayAt = at + 1;
  }

  hasTried(look: Look, one: Tried): boolean {
    return this.#tried.has(triedKey(look, one));
  }

  addTried(look: Look, one: Tried): void {
    this.#tried.add(triedKey(look, one));
  }

  take(name: string, question: string): void {
    this.#taken.set(name, question);
  }

  /** Names of the credential's values that answered other questions. */
  takenElsewhere(question: string): string[] {
    return [...this.#taken].flatMap(([name, taken]) => (taken === question ? [] : name));
  }

  chose(look: Look): void {
    this.before = look;
    this.#submit(['choice']);
  }

  /** Whether this value was typed into this field, and submitted. */
  hasTyped(look: Look, field: ReadField, value: string): boolean {
    return this.#typed.get(placeOf(look, field)) === value;
  }

  /** The page has a field that it did not have before the last submit: the answer is a further question. */
  asksMore({ reading }: Look): boolean {
    const before = this.before && new Set(this.before.reading.fields.map(({ id }) => id));
    return before !== undefined && before.size > 0 && reading.fields.some(({ id }) => !before.has(id));
  }

  filled(look: Look, fills: readonly Fill[]): void {
    for (const { field, value } of fills) if (value !== undefined) this.#typed.set(placeOf(look, field), value);
    // An error text of the last answer must not make the same text of the next answer look old.
    if (!look.reading.error?.fresh || !this.before) this.before = look;
    const sources = new Set(fills.map(({ from }) => from));
    this.lastFrom = sources.has('person') ? 'person' : sources.has('code') ? 'code' : 'credential';
    this.fills++;
    this.#submit([...new Set(fills.map(({ field }) => field.type))]);
  }

  #submit(parts: SubmittedPart[]): void {
    this.submitted = parts;
    this.unjudged = true;
    this.websiteError = undefined;
  }

  /** The decision about a page. It contains the judgement of the page's answer to the last submit. */
  decide({ key }: Look, decision: Decision): void {
    this.decision = decision;
    if (this.unjudged) this.silent = key === this.before?.key ? this.silent + 1 : 0;
    this.unjudged = false;
    if (decision.do === 'start_over') {
      this.startedOver = true;
      this.forgetSubmit();
    }
    if (!isRefusal(decision)) return;
    this.silent = 0;
    this.websiteError = 'websiteError' in decision ? decision.websiteError : undefined;
    if (this.lastFrom === 'person') this.refusals++;
    else this.credentialRefused = true;
  }

  /** The browser has forgotten the site: what was tried on its pages may have another effect now. */
  startAfresh(): void {
    this.forgetSubmit();
    this.forgetVisits();
    this.#tried.clear();
    this.replayAt = 0;
  }

  forgetSubmit(): void {
    this.before = undefined;
    this.submitted = [];
  }
}

const placeOf = ({ snapshot }: Look, { origin, id, selectors }: ReadField) =>
  JSON.stringify([pageAddress(snapshot.url), origin, id, selectors[0]]);

const triedKey = ({ key }: Look, one: Tried) =>
  JSON.stringify([key, 'why' in one ? ['step', one.why] : ['choice', one.type], one.label]);
