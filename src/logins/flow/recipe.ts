import type { ChoiceType, FieldKey, FieldType, MfaType, ReadingKind, StepReason } from '../reading/types.ts';

/**
 * What a successful login did, so that the next one can do the same without reading. It holds no secret: fields are named
 * by the key of the value, never by the value; addresses are without their query, unless the user gave them.
 */
export interface Recipe {
  version: 1;
  /** Where the login began. */
  entryUrl: string;
  steps: RecipeStep[];
  success: RecipeSuccess;
  requirements: Requirements;
  learnedAt: string;
}

/** The actions on one page before it changed. */
export interface RecipeStep {
  /** Origin and path of the page. A step is replayed only where they are the same. */
  page: string;
  kind: ReadingKind;
  fills: RecipeFill[];
  /** The element that was clicked or chosen to continue. Absent when Enter was pressed in the last field. */
  click?: RecipeClick | undefined;
}

export interface RecipeFill {
  key: FieldKey;
  type: FieldType;
  label: string;
  /** Independent ways to find it, best first. Several lists for a code of several boxes. */
  selectors: string[];
  boxes?: string[][] | undefined;
  /** A choice among the options of a select, which is not secret. */
  select?: boolean | undefined;
}

export interface RecipeClick {
  stoodFor: 'submit' | 'choice' | StepReason;
  label: string;
  selectors: string[];
  choice?:
    | {
        type: ChoiceType;
        mfaType?: MfaType | undefined;
        provider?: string | undefined;
        /** The hash of an account's label. */
        account?: string | undefined;
      }
    | undefined;
}

/** What success looked like. */
export interface RecipeSuccess {
  /** Where the login ended. */
  url: string;
  /** Names of cookies and storage keys that the login made or changed. */
  cookies: string[];
  storage: string[];
  /** The page showed a way to log out. */
  signedInSigns: boolean;
  /** What the page was read as by itself, without knowing what had been submitted. */
  kind?: ReadingKind | undefined;
  /** The way out was in a menu that was closed. */
  inMenu?: boolean | undefined;
  /** The page had its way out before the login too, and took so many milliseconds to replace it by the form. */
  formTook?: number | undefined;
  /** The page had what the first step of the login clicks or types into. */
  startShown?: boolean | undefined;
  /** The state of the login address at that time: a form that had disappeared and is back means that the login has expired. */
  entrySays?: 'in' | 'out' | 'nothing' | undefined;
  /** The page had a text such as "not logged in" even then: about something else. */
  over?: boolean | undefined;
  /** Hashes of controls that the pages before the login did not have, and how much the page showed. */
  marks?: string[] | undefined;
  size?: number | undefined;
}

/** The needs of a login, by the values it typed and waited for. */
export interface Requirements {
  /** Keys of values that were typed from a credential or by a person: username, password, tenant, … */
  keys: string[];
  totp: boolean;
  /** Codes that came by another way than from a TOTP secret. */
  codes: ('sms' | 'email' | 'call' | 'other')[];
  /** A push, a link in a mail, a person in the live view. */
  external: boolean;
  passkey: boolean;
  basic: boolean;
}
