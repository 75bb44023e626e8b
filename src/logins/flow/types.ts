import type { OpenCredential } from '../../credentials/service.ts';
import type { TotpCode } from '../../credentials/totp.ts';
import type { FlowStep } from '../api-enums.ts';
import type { Snapshot } from '../reading/snapshot.ts';
import type { ReadChoice, ReadContext, ReadField, Reading, ReadingKind } from '../reading/types.ts';
import type { FlowBrowser, Passkey } from './browser.ts';
import type { Recipe, Requirements } from './recipe.ts';

export type { FlowBrowser, Passkey } from './browser.ts';
export type { Recipe, Requirements } from './recipe.ts';

export type Reader = (snapshot: Snapshot, context: ReadContext) => Reading;

/** One look at a page. */
export interface Look {
  snapshot: Snapshot;
  reading: Reading;
  /** Equal for the same page with the same questions, also with another error. */
  key: string;
  /** The reading is of the page with a menu open that was closed. */
  inMenu?: true | undefined;
}

export type WasTyped = (name: string, value: string) => boolean;

/** What a flow knows of its connection. */
export interface FlowConnection {
  id: string;
  domain: string;
  /** The domain was given with `http:`. */
  plainHttp?: boolean | undefined;
  loginUrl?: string | undefined;
  allowedDomains: readonly string[];
  /**
   * Hosts of identity providers at which a person typed values in an earlier login. Each has a function that returns whether a person typed
   * this value there under this name. `theSite` means the connection's own hosts.
   */
  ssoHosts?: Readonly<Record<string, WasTyped>> | undefined;
  /** Where the last successful login ended. */
  postLoginUrl?: string | undefined;
  /** The SSO provider that a person chose before, or that the credential names. */
  ssoProvider?: string | undefined;
}

/** Milliseconds; see `standardDeadlines`. */
export interface FlowDeadlines {
  /** Limit of the whole flow, including waits. */
  total: number;
  /** Waiting for a person's input. */
  input: number;
  /** Waiting for something outside of the page: a push, a link in a mail, a person in the live view. */
  external: number;
  /** One navigation or the answer to one submit. */
  page: number;
  /** The step in which the flow waits for a page that is not there yet. */
  patience: number;
  /** How often a page is looked at while the flow waits for a person. */
  every: number;
  /** A page that still loads, computes or changes, and shows nothing to go on with. */
  coming: number;
}

export const standardDeadlines: FlowDeadlines = {
  total: 20 * 60_000,
  input: 10 * 60_000,
  external: 10 * 60_000,
  page: 30_000,
  patience: 400,
  every: 2000,
  coming: 30_000,
};

/** One flow in one browser. It knows nothing of HTTP and SQL: all of that is behind these functions. */
export interface FlowInput {
  connection: FlowConnection;
  flowType: 'LOGIN' | 'REAUTH';
  browser: FlowBrowser;
  /**
   * The credential's values, read again each time, since it may have changed. Undefined when there is none. When the
   * look-up fails the flow asks the person instead; it never ends with internal_error for that.
   */
  credential(): Promise<OpenCredential | undefined>;
  /** The one-time code of this moment. Undefined when the credential has no secret for it. */
  totp(): Promise<TotpCode | undefined>;
  /** The newest window with a code that an earlier flow used, so that no code is sent twice. */
  lastTotpCounter?: number | undefined;
  recipe?: Recipe | undefined;
  /** Passkeys that earlier flows left for this connection. */
  passkeys?: Passkey[] | undefined;
  /**
   * The flow may set up two-factor login when the site demands it, since what it learns is kept (save_credentials).
   * Without this a site that demands it is left to the person in the live view.
   */
  mayEnrol: boolean;
  /**
   * Whether a person is there now, on the hosted page or the live view. A captcha, or a stored password that the site
   * refuses, is left to that person then; without one the flow fails at once. False when unset.
   */
  attended?: (() => boolean) | undefined;
  /** Each change of what users see. The flow awaits it, so that the states are stored in their order. */
  report(state: FlowState): Promise<void>;
  /**
   * The next submit of a person. With `codes`, a code that was pushed to the connection counts too: the page asks for one.
   * Rejects when the signal fires. Submits that arrived before this call and were not taken may be given at once.
   */
  input(options: InputWanted): Promise<Submitted>;
  /** Takes one record of what the flow saw and decided. Keep the last 20. */
  record(note: Explained): void;
  /** Fires when the flow is cancelled: the outcome is CANCELED then. */
  signal: AbortSignal;
  now?: (() => number) | undefined;
  deadlines?: Partial<FlowDeadlines> | undefined;
}

export interface InputWanted {
  signal: AbortSignal;
  codes: boolean;
  /**
   * When the form was sent that the page answers with its question for a code, in milliseconds since 1970. Set if codes of the credential's
   * sources may be typed into this page.
   */
  sentAt?: number | undefined;
}

/** Field values, a choice, a code, or several of them. */
export interface Submitted {
  /** By the id of a field of the last report. */
  fieldValues?: Record<string, string> | undefined;
  /** The id of a choice of the last report. */
  choiceId?: string | undefined;
  /** The questions that the values and the choice answer, as they are in the report. Other questions do not get them. */
  questions?: readonly string[] | undefined;
  /** A code that was pushed, for the field that asks for one. */
  code?: string | undefined;
  /** The code came from a source of the credential. */
  fromSource?: boolean | undefined;
}

/** With the name of the question; see `questionOf`. */
type Asked<T> = T & { question?: string | undefined };

/** What users see of a running flow. Values that were typed are never in it. */
export interface FlowState {
  step: FlowStep;
  /** Empty unless the flow waits for them. */
  fields: Asked<ReadField>[];
  choices: Asked<ReadChoice>[];
  externalActionMessage?: string | undefined;
  /** The site's own error text. */
  websiteError?: string | undefined;
  ssoProvider?: string | undefined;
}

export type FlowErrorCode =
  | 'login_form_not_found'
  | 'navigation_confused'
  | 'domain_not_allowed'
  | 'stuck_in_loop'
  | 'max_attempts_reached'
  | 'website_error'
  | 'network_error'
  | 'element_not_found'
  | 'credentials_invalid'
  | 'mfa_required'
  | 'code_source_failed'
  | 'external_action_required'
  | 'unsupported_auth_method'
  | 'bot_detected'
  | 'captcha_blocked'
  | 'session_expired'
  | 'no_active_flow'
  | 'flow_failed'
  | 'awaiting_input_timeout'
  | 'external_action_timeout'
  | 'max_steps_exceeded'
  | 'browser_error'
  | 'internal_error';

export interface FlowOutcome {
  status: 'SUCCESS' | 'FAILED' | 'EXPIRED' | 'CANCELED';
  errorCode?: FlowErrorCode | undefined;
  /** A sentence for the user. */
  errorMessage?: string | undefined;
  websiteError?: string | undefined;
  /** What went wrong in the flow itself, for the log. Set with internal_error. */
  cause?: unknown;
  /** Set on SUCCESS. */
  postLoginUrl?: string | undefined;
  /** Set on SUCCESS, unless the profile was logged in already and there is nothing to learn. */
  recipe?: Recipe | undefined;
  /** What a person typed, by the key of a credential's value, for save_credentials. Never codes. Secret. */
  typed: Record<string, string>;
  /** The secret of a two-factor login that this flow set up. Set for every status: the site has it already. Secret. */
  totpSecret?: string | undefined;
  /** The newest window with a typed code. */
  totpCounter?: number | undefined;
  /** Codes that were given and that the site accepted. Set on SUCCESS. Secret. */
  acceptedCodes?: readonly string[] | undefined;
  /** What the login needed, for can_reauth. Unset when the flow learned nothing about it. */
  requirements?: Requirements | undefined;
  ssoProvider?: string | undefined;
  /** The well-known identity provider, if a person typed all of `typed` at its hosts. */
  typedProvider?: string | undefined;
  /**
   * Hosts of identity providers that a person confirmed or typed at, with the names of the values that the person typed there. `theSite` has
   * those of them that the person typed at the site too. Set on SUCCESS.
   */
  ssoHosts?: Record<string, string[]> | undefined;
  /** Passkeys to seal for this connection, with their newest sign counts, for every status. Unset when there are none. Secret. */
  passkeys?: Passkey[] | undefined;
}

/** One look at the page and its decision, for `explain`. It contains no typed value. */
export interface Explained {
  at: string;
  state: string;
  url: string;
  title: string;
  kind?: ReadingKind | undefined;
  /** What the flow did, in one sentence. */
  decision: string;
  /** Why the page was read as it was. */
  evidence: string[];
  error?: string | undefined;
  fields: { id: string; type: string; key: string; label: string; required: boolean; filled: boolean }[];
  choices: { id: string; type: string; label: string }[];
  next: { why: string; label: string }[];
  /** The page without values, reduced to the fields needed to read it again. */
  page?: ExplainedPage | undefined;
}

export interface ExplainedPage {
  lang?: string | undefined;
  httpStatus?: number | undefined;
  frames: {
    url: string;
    main: boolean;
    elements: Record<string, string | number | boolean | string[]>[];
    texts: { text: string; tag?: string | undefined; live: boolean }[];
  }[];
}

/** Whether an open browser is still logged in. */
export type Health = 'authenticated' | 'needs_auth' | 'unknown';
