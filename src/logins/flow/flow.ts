import { createHash, randomBytes } from 'node:crypto';
import type { OpenCredential } from '../../credentials/service.ts';
import type { Snapshot } from '../reading/snapshot.ts';
import type { ReadChoice, ReadContext, ReadField, Reading, SubmittedPart } from '../reading/types.ts';
import type { Decision } from './decision.ts';
import { allowedHosts, type AllowedHosts } from './hosts.ts';
import type { FlowBrowser, StateFingerprint } from './browser.ts';
import { noteAsked, questionOf } from './questions.ts';
import type { RecipeStep } from './recipe-types.ts';
import { prepared } from './values.ts';
import { scrubber, type Scrubber } from './scrub.ts';
import { standardDeadlines, type FlowDeadlines, type FlowInput, type FlowState, type Requirements } from './types.ts';

export type Reader = (snapshot: Snapshot, context: ReadContext) => Reading;

/** One look at a page. */
export interface Look {
  snapshot: Snapshot;
  reading: Reading;
  /** Equal for the same page with the same questions, whatever error it shows. */
  key: string;
}

/** What a person has given and was not typed yet. */
interface Pending {
  /** By the question that each value answers. */
  values: Map<string, string>;
  /** The question of the choice. */
  choice?: string | undefined;
  /** A code that was pushed, and the site of the field that asked for it. */
  code?: { value: string; place: string | undefined } | undefined;
}

/** What one running flow knows. The states read and change it; nothing of it outlives the flow. */
export interface Flow {
  input: FlowInput;
  read: Reader;
  browser: FlowBrowser;
  hosts: AllowedHosts;
  deadlines: FlowDeadlines;
  /** Takes everything that was typed out of texts. */
  scrub: Scrubber;
  /** The same for passwords and codes alone: people choose among accounts by their names. */
  secrets: Scrubber;
  now(): number;
  pageId: string;
  /** Pages that were there before the last act; a newer one that this page opened is followed. */
  knownPages: Set<string>;
  /** The last that acted was the flow, and not a person in the live view, who may open pages of other sites. */
  acted: boolean;

  /** Addresses that have not been tried, the first that answered, and those that did not. */
  addresses: string[];
  guessed: boolean;
  answered?: string | undefined;
  unanswered: { url: string; error: string }[];

  look?: Look | undefined;
  /** The page just before the last submit, and what was submitted. */
  before?: Look | undefined;
  submitted: SubmittedPart[];
  /** The page's answer to the last submit has not been judged yet. */
  unjudged: boolean;
  /** Times that a page came back after a submit without a word. */
  silent: number;
  /** The site refused the credential's values: they are not typed again. */
  credentialRefused: boolean;
  /** What a person sees as the site's last error. */
  websiteError?: string | undefined;
  /** Cookies and storage before anything was submitted. */
  baseline?: StateFingerprint | undefined;
  /** Controls of pages before the first submit: strangers see them. */
  strange: Set<string>;
  /** Opening the login address ended the login, so it is not opened again. */
  entryHarms: boolean;
  /** The login page itself, to compare the page after it with. */
  loginPage?: Look | undefined;

  /** The origins that asked a person for fields, by the ids of the fields. */
  askedAt: Map<string, string>;
  pending: Pending;
  /** Something was given after the last look. */
  untried: boolean;
  /** What people typed in this flow, by the site of the document and the key of the field, to fill the same question again. */
  personal: Map<string, Map<string, string>>;
  typed: Record<string, string>;
  /** The origins of the documents where they were typed, by the same names. */
  typedAt: Map<string, string>;
  /** Names of the credential's values that were typed, each with the question that it answered. */
  taken: Map<string, string>;
  /** Names of accounts that were typed: the page after the login may show them. */
  identifiers: Set<string>;
  /** Where the values of the last fill came from; a person's count before all others. */
  lastFrom: 'person' | 'credential' | 'code';
  /** How often each password was submitted, by its hash. */
  passwordSubmits: Map<string, number>;
  hashSalt: Buffer;
  /** Times that the site refused what a person typed. */
  refusals: number;
  /** Codes generated since the site last took one. */
  generatedCodes: number;
  lastCounter?: number | undefined;
  totpSecret?: string | undefined;
  enrolTried: boolean;
  ssoProvider?: string | undefined;

  /** Elements that could not be used. */
  misses: number;
  acts: number;
  /** Acts of the flow itself on each page since a person last gave something. */
  visits: Map<string, number>;
  /** Steps and choices that were tried, each on its page. */
  tried: Set<string>;
  blankWaits: number;
  failedConfirmations: number;
  /** Forms that were submitted, and how many of them when the last confirmation failed. */
  fills: number;
  fillsAtFailure: number;
  startedOver: boolean;
  waitedForPerson: boolean;
  passkeysEnabled: boolean;

  steps: RecipeStep[];
  /** The next step of the recipe to replay; undefined when reading has taken over. */
  replayAt?: number | undefined;
  requirements: Requirements;
  /** What is asked of a person now. */
  asked: { fields: ReadField[]; choices: ReadChoice[]; message?: string | undefined };
  decision?: Decision | undefined;
  /** What was recorded last, so that a page that changes under a waiting person does not fill the records. */
  lastNote?: string | undefined;
  /** A person chose an identity provider: a host that is not known is shown to the person then, to be confirmed. */
  ssoChosen: boolean;
  /** Hosts that the person has confirmed, with the names of the values that were typed there. */
  confirmed: Map<string, Set<string>>;
  basicSent: number;
  /** The credential as it was for the last look. */
  credential?: OpenCredential | undefined;
  /** The page after the last login was looked at, and whether it still shows the account. */
  checked: boolean;
  foundLoggedIn: boolean;
  reported?: FlowState | undefined;
}

export function newFlow(input: FlowInput, read: Reader): Flow {
  return {
    input,
    read,
    browser: input.browser,
    hosts: allowedHosts(input.connection),
    deadlines: { ...standardDeadlines, ...input.deadlines },
    scrub: scrubber(),
    secrets: scrubber(),
    now: input.now ?? Date.now,
    pageId: '',
    knownPages: new Set(),
    acted: false,
    addresses: [],
    guessed: false,
    unanswered: [],
    submitted: [],
    unjudged: false,
    silent: 0,
    strange: new Set(),
    entryHarms: false,
    credentialRefused: false,
    askedAt: new Map(),
    pending: { values: new Map() },
    untried: false,
    personal: new Map(),
    typed: {},
    typedAt: new Map(),
    taken: new Map(),
    identifiers: new Set(),
    lastFrom: 'credential',
    passwordSubmits: new Map(),
    hashSalt: randomBytes(16),
    refusals: 0,
    generatedCodes: 0,
    enrolTried: false,
    lastCounter: input.lastTotpCounter,
    misses: 0,
    acts: 0,
    visits: new Map(),
    tried: new Set(),
    blankWaits: 0,
    failedConfirmations: 0,
    fills: 0,
    fillsAtFailure: -1,
    startedOver: false,
    waitedForPerson: false,
    passkeysEnabled: false,
    steps: [],
    replayAt: input.flowType === 'REAUTH' && input.recipe ? 0 : undefined,
    requirements: { keys: [], totp: false, codes: [], external: false, passkey: false, basic: false },
    asked: { fields: [], choices: [] },
    ssoChosen: false,
    confirmed: new Map(),
    basicSent: 0,
    checked: false,
    foundLoggedIn: false,
  };
}

/** Passwords are counted by a hash that means nothing outside of this flow. */
export function passwordKey(flow: Flow, password: string): string {
  return createHash('sha256').update(flow.hashSalt).update(password).digest('base64');
}

const mostSubmits = 2;

/** The same password is submitted twice at most, whatever the site says or leaves out. */
export const isSpent = (flow: Flow, password: string) =>
  (flow.passwordSubmits.get(passwordKey(flow, password)) ?? 0) >= mostSubmits;

/** From now on a value is in nothing that the flow tells. */
export function hideTyped(flow: Flow, { type, options }: ReadField, value: string): void {
  if (options) return;
  flow.scrub.add(value);
  if (type !== 'identifier' && type !== 'text') flow.secrets.add(value);
}

/** The same for what the credential has, typed or not. */
export function hideCredential(flow: Flow, { values, totp }: OpenCredential): void {
  const codes = totp ? [totp.secret] : [];
  const { entries } = prepared(values);
  flow.scrub.hold([...codes, ...entries.map(({ value }) => value)]);
  flow.secrets.hold([...codes, ...entries.flatMap(({ secret, value }) => (secret ? [value] : []))]);
}

export const isAttended = (flow: Flow) => flow.input.attended?.() ?? false;

/** Reports a state to users, unless it is the one before: the same question on a page that was drawn again is the same question. */
export async function report(flow: Flow, state: FlowState): Promise<void> {
  const fits = roomFor(mostCharacters);
  const asked = <T extends ReadField | ReadChoice>(one: T) => ({
    ...shown(flow, one),
    question: questionOf(flow, one),
  });
  // Fields come first, then choices, then the options of fields: a page with many choices still asks for its password.
  const fields = state.fields
    .slice(0, mostShown)
    .map(({ options, ...field }) => ({ field: asked(field), options }))
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
    ssoProvider: flow.ssoProvider,
  };
  noteAsked(flow, clean.fields);
  if (flow.reported && withoutRefs(clean) === withoutRefs(flow.reported)) return;
  flow.reported = clean;
  await flow.input.report(clean);
}

/** References to elements are new in each look. */
const withoutRefs = (state: FlowState) =>
  JSON.stringify(state, (key, value: unknown) => (key === 'ref' || key === 'refs' ? undefined : value));

/** More questions than any login has. */
export const mostShown = 60;
/** Of all questions of a page together, as JSON. A list has the questions of a hundred logins. */
const mostCharacters = 64_000;

/** Whether the next one fits into the room that those before it have left. */
function roomFor(characters: number): (one: object) => boolean {
  let room = characters;
  return (one) => (room -= JSON.stringify(one).length) >= 0;
}

const pageTexts = new Set(['label', 'hint', 'placeholder', 'description', 'target', 'provider', 'value']);

/** What a page says of a question may repeat what was typed. A selector that does is left out. Ids stay, since answers name them. */
function shown<T extends object>({ secrets }: Flow, question: T): T {
  const clean = Object.entries(question).map(([name, value]: [string, unknown]) => {
    if (name === 'selectors') return [name, secrets.without(value as string[])];
    return [name, typeof value === 'string' && pageTexts.has(name) ? secrets.text(value) : value];
  });
  return Object.fromEntries(clean) as T;
}

/** Resolves after a time; rejects as soon as the signal fires. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    }, ms);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
}
