import type { Snapshot } from './snapshot.ts';

/** What the caller knows besides the page. */
export interface ReadContext {
  /** The domain of the connection: decides which links open its own login. */
  domain: string;
  /** The page just before the submit: shows which error texts are new. */
  before?: Snapshot;
  /** The kind of value submitted on the page before: decides the meaning of an error text. */
  submitted?: readonly SubmittedPart[];
}

export type SubmittedPart = FieldType | 'choice';

/** What a page is, in the one word that decides what a flow does next. */
export type ReadingKind =
  | 'login' // asks for an identifier, a password or both
  | 'code' // asks for a one-time code
  | 'choice' // asks to choose: second factor, account, sign-in method
  | 'external' // waits for something outside the page: a mail, a push on a phone, a hardware key
  | 'interstitial' // in the way between login and application; `next` leads past it
  | 'captcha'
  | 'passkey' // offers a passkey and nothing else
  | 'locked' // the account is locked or disabled
  | 'maintenance' // the site does not serve logins now
  | 'basic' // the browser asks for HTTP Basic credentials
  | 'enrol_totp' // shows a new TOTP secret and asks for its first code
  | 'change_password' // demands a new password and offers no way past
  | 'signed_in'
  | 'entry' // no login form, but a way to one
  | 'blank' // nothing visible yet
  | 'unknown';

export type FieldType = 'identifier' | 'password' | 'code' | 'totp_code' | 'totp_secret' | 'text';

/** The type words of the older `discovered_fields` array. */
export type LegacyFieldType = 'text' | 'email' | 'password' | 'tel' | 'number' | 'url' | 'code' | 'totp';

export type FieldKey =
  | 'username'
  | 'email'
  | 'phone'
  | 'password'
  | 'new_password'
  | 'current_password'
  | 'code'
  | 'pin'
  | 'server'
  | 'tenant'
  | 'database'
  | 'account_type'
  | 'customer_number'
  | 'security_answer'
  | 'captcha'
  | 'text';

export interface ReadField {
  /** Stable for the same page: made of the kind of field and its place among its kind. */
  id: string;
  ref: string;
  /** The origin of the document that it is in. */
  origin?: string;
  /** The boxes of a code that takes one character each, in order. `ref` is the first. */
  refs?: string[];
  type: FieldType;
  /** The name of the value in a credential. */
  key: FieldKey;
  label: string;
  required: boolean;
  /** The page has a value in it already; a flow need not type an optional field that is filled. */
  filled: boolean;
  /** Of a select or a group of radio buttons. */
  options?: FieldOption[];
  selectors: string[];
  legacyType: LegacyFieldType;
  hint?: string;
  placeholder?: string;
  /** How the code reaches the person, where the page says it. */
  mfaType?: MfaType;
}

/** `ref` is set where choosing the option means clicking it (radio buttons). */
export interface FieldOption {
  label: string;
  value: string;
  selected: boolean;
  ref?: string;
}

export type ChoiceType =
  'mfa_method' | 'sso_provider' | 'sign_in_method' | 'auth_method' | 'identifier_method' | 'account' | 'other';

export type MfaType = 'sms' | 'call' | 'email' | 'totp' | 'push' | 'password' | 'switch';

export interface ReadChoice {
  id: string;
  ref: string;
  /** The origin of the document that it is in. */
  origin?: string;
  type: ChoiceType;
  label: string;
  description?: string;
  /** The SSO provider, in the words of the API: google, microsoft, github, …, or the name on the button. */
  provider?: string;
  mfaType?: MfaType;
  /** Where a code goes, as the page shows it: `•••• 42`, `a***@example.com`. */
  target?: string;
  selectors: string[];
}

export type StepReason = 'entry' | 'dismiss' | 'tab' | 'skip' | 'accept' | 'menu' | 'stay_signed_in';

/** One click that continues the login without a person. */
export interface Step {
  ref: string;
  why: StepReason;
  label: string;
  selectors: string[];
  /** `check` for a box that must be ticked before the next step; a click otherwise. */
  act: 'click' | 'check';
}

export type PageErrorKind = 'credentials' | 'code' | 'locked' | 'captcha' | 'rate' | 'other';

export interface PageError {
  text: string;
  kind: PageErrorKind;
  /** The text was not on the page before the submit. */
  fresh: boolean;
}

export interface Reading {
  kind: ReadingKind;
  fields: ReadField[];
  choices: ReadChoice[];
  submit?: { ref: string; label: string; selectors: string[] };
  /** The "remember me" box that belongs to the form, and whether it is ticked. */
  remember?: { ref: string; checked: boolean };
  /**
   * What to click to get on without a person, in order of preference. On a page with fields these come before the fields: a
   * banner to dismiss, terms to tick, a tab that shows the password form. A step that changes nothing is not tried twice.
   */
  next: Step[];
  error?: PageError;
  externalMessage?: string;
  /** What leads out of the account on a page of kind `signed_in`. */
  wayOut?: string;
  /** The new secret of a TOTP enrolment as the page shows it. It is a secret: never log it, never put it in `evidence`. */
  totpSecret?: string;
  /** One sentence for each decision. Holds labels and texts of the page, no value of a field. */
  evidence: string[];
}
