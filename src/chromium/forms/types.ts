/**
 * What the logins know of a page, and what they can do with it. Everything here comes from a page that may be hostile: texts are
 * bounded, numbers are finite, and the values of fields are never read.
 */

/** CSS pixels, from the top left of the frame's document; for a frame, of the page. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Snapshot {
  readonly url: string;
  readonly title: string;
  readonly lang?: string;
  /** The main frame first, then those that are shown, from top to bottom. At most 20. */
  readonly frames: readonly FrameSnapshot[];
  /** The page asked for HTTP Basic (or Digest) and was answered with nothing, or with something that it refused. */
  readonly basicAuth?: BasicChallenge;
  /** Of the main frame's document. */
  readonly httpStatus?: number;
  /** The document is not complete, or the next one is on its way. */
  readonly loading: boolean;
  /** A request of its scripts, or for one, has no answer yet: also a poll that never gets one. */
  readonly requesting?: boolean;
  /** How much of the page is not in the snapshot, because it has more than fits. */
  readonly leftOut?: LeftOut;
}

export interface LeftOut {
  readonly elements: number;
  readonly texts: number;
}

export interface BasicChallenge {
  readonly origin: string;
  readonly realm?: string;
  /** A user and password have been sent already, and were refused. */
  readonly refused: boolean;
}

export interface FrameSnapshot {
  readonly frameId: string;
  readonly url: string;
  readonly origin: string;
  readonly main: boolean;
  /** Its place on the page. Absent for the main frame. */
  readonly box?: Box;
  /** False for a frame that the page does not show; its elements and texts are invisible then too. */
  readonly visible: boolean;
  /** Form controls, buttons, links, things with a click role, editable text: in the order of the document. At most 400, and 500 of a page. */
  readonly elements: readonly El[];
  /** At most 400, and 500 of a page. A JavaScript dialog that the page showed since the last act is a text with the tag `dialog` and `live`. */
  readonly texts: readonly TextBlock[];
  /** There was more than fits. */
  readonly truncated: boolean;
}

export interface El {
  /** Good for `act`, for as long as the frame's document stays and three newer snapshots have not been taken. */
  readonly ref: string;
  /** In lower case. */
  readonly tag: string;
  /** Of an input or a button, in lower case. */
  readonly type?: string;
  readonly name?: string;
  readonly id?: string;
  readonly autocomplete?: string;
  readonly role?: string;
  /** As assistive technology would name it. */
  readonly accessibleName?: string;
  readonly labels: readonly string[];
  readonly placeholder?: string;
  readonly title?: string;
  /** It has a value. Which one is never read. */
  readonly filled: boolean;
  /** Of a select: at most 100. */
  readonly options?: readonly Option[];
  readonly checked?: boolean;
  readonly inputmode?: string;
  readonly maxlength?: number;
  readonly pattern?: string;
  readonly required: boolean;
  readonly disabled: boolean;
  readonly readonly: boolean;
  /** A person can see it. An input without opacity counts if a click reaches it (one-time codes are often drawn over one). */
  readonly visible: boolean;
  readonly inViewport: boolean;
  /** Another element of its frame lies on top of its centre. Only known in the viewport. */
  readonly covered?: boolean;
  readonly box: Box;
  /** Equal for elements of one form. */
  readonly formKey?: string;
  readonly href?: string;
  /** Text beside or above it that belongs to no other control. At most 200 characters. */
  readonly near: string;
  readonly inDialog: boolean;
  /** Its own classes, and those of pictures in it. At most 200 characters. */
  readonly classes: string;
  readonly expanded?: boolean;
  readonly selected?: boolean;
  readonly pressed?: boolean;
  readonly invalid?: boolean;
  readonly focused?: boolean;
  /** What aria-describedby names. */
  readonly description?: string;
  /** Independent ways to find it again with `find`, the most stable first: CSS, or `label=`, `placeholder=`, `text=`. */
  readonly selectors: readonly string[];
}

interface Option {
  readonly label: string;
  readonly value: string;
  readonly selected: boolean;
}

export interface TextBlock {
  /** At most 300 characters, white space collapsed. */
  readonly text: string;
  readonly box: Box;
  readonly tag?: string;
  readonly role?: string;
  /** Of itself and its nearest three ancestors. At most 200 characters. */
  readonly classes: string;
  readonly id?: string;
  readonly inDialog: boolean;
  /** Announced to assistive technology: role alert or status, or aria-live. */
  readonly live: boolean;
  readonly visible: boolean;
  readonly formKey?: string;
  readonly heading?: boolean;
  /** It is, or is in, the label of a control. */
  readonly label?: boolean;
}

interface PageInfo {
  readonly pageId: string;
  readonly url: string;
  readonly title: string;
  /** The page that opened it, such as the one with the button of an identity provider. */
  readonly opener?: string;
}

/**
 * Whether a value may reach documents of an origin, such as `https://shop.example`; `around`: of documents around the one that it is typed
 * into. It is not asked about opaque origins.
 */
export type Allow = (origin: string, around?: boolean) => boolean;

export type Action =
  /**
   * Clicks into the field and types, if its document and all documents around it are allowed. With `clear` the value is replaced; with
   * `unlessHeld` a field with a value of this length or more keeps it.
   */
  | { kind: 'type'; ref: string; text: string; allow: Allow; clear?: boolean; unlessHeld?: boolean }
  | { kind: 'click'; ref: string }
  /** A click that gives something away, such as the answer of a radio button. Allowed as typing is. */
  | { kind: 'pick'; ref: string; allow: Allow }
  /** An option of a select, by its value. Allowed as typing is. */
  | { kind: 'choose'; ref: string; value: string; allow: Allow }
  | { kind: 'check'; ref: string; on: boolean }
  /** `Enter`, `Tab`, `Escape`, …: on this element, or on what has the focus. */
  | { kind: 'press'; key: string; ref?: string };

/** Cookies and storage as a fingerprint: comparable within one `Forms`, and of no other use. */
export interface StateFingerprint {
  readonly cookies: readonly CookieFingerprint[];
  /** One for each origin of the page's frames. */
  readonly storage: readonly { readonly origin: string; readonly keys: number; readonly hash: string }[];
}

interface CookieFingerprint {
  readonly name: string;
  readonly domain: string;
  readonly path: string;
  readonly hash: string;
  readonly httpOnly: boolean;
  /** It has no date: the browser forgets it when it ends. */
  readonly session: boolean;
}

/** A passkey with its private key: a secret, to be sealed before it is kept. */
export interface Passkey {
  readonly credentialId: string;
  readonly rpId: string;
  readonly privateKey: string;
  readonly signCount: number;
  readonly isResidentCredential: boolean;
  readonly userHandle?: string;
  readonly userName?: string;
  readonly userDisplayName?: string;
}

/** Why something could not be done with a page. */
type FormsFault =
  /** The page is closed, or the browser has exited. */
  | 'page_gone'
  /** The element, or the document it was in, is not there any more: take a new snapshot. */
  | 'stale'
  /** The page did not answer in time. */
  | 'frozen'
  /** The element cannot be clicked or typed into: hidden, covered, disabled, or it gives the focus away. */
  | 'unreachable'
  /** The action does not fit the element, or the address is no address. */
  | 'unfit'
  /** The value is not for the element's document, or not for one around it. `origin` is that document's origin, unless it is opaque. */
  | 'foreign';

export class FormsError extends Error {
  override readonly name = 'FormsError';
  readonly fault: FormsFault;
  readonly origin: string | undefined;

  constructor(fault: FormsFault, message: string, origin?: string) {
    super(message);
    this.fault = fault;
    this.origin = origin;
  }
}

/** The pages of one session's browser, for a login. Every call has a deadline and rejects with a `FormsError`. */
export interface Forms {
  /** The pages of the browser, the oldest first. */
  pages(): Promise<PageInfo[]>;
  /** Opens a page beside the others; resolves when the address has answered, or has failed to. */
  open(url: string): Promise<string>;
  /** The same without anything that the browser remembers: as the site shows it to a visitor that it does not know. */
  openStranger(url: string): Promise<string>;
  /**
   * Removes the cookies of hosts for which `isTheirs` holds, and the storage of these origins, as if the browser had not been there. It is
   * asked about addresses by https. The documents of open pages stay as they are.
   */
  forget(pageId: string, origins: readonly string[], isTheirs: (url: string) => boolean): Promise<void>;
  close(pageId: string): Promise<void>;
  /** Resolves when the document has begun, with its status; or with Chromium's reason, such as net::ERR_NAME_NOT_RESOLVED. */
  navigate(pageId: string, url: string): Promise<Navigated>;
  reload(pageId: string): Promise<Navigated>;
  snapshot(pageId: string): Promise<Snapshot>;
  act(pageId: string, action: Action): Promise<void>;
  /**
   * Resolves when the page is at rest after the last act or navigation, or at the deadline. A page that polls or animates holds it
   * for three seconds at most.
   */
  settled(pageId: string, options: { deadlineMs: number; signal?: AbortSignal }): Promise<void>;
  state(pageId: string): Promise<StateFingerprint>;
  /** The state with the storage of an origin, as it is before scripts of the origin have run. */
  stored(origin: string): Promise<StateFingerprint>;
  /**
   * Answers the challenge of the snapshot's `basicAuth` by loading the page again. Sent to that origin only, if it is allowed, for the
   * page itself, and once.
   */
  basicAuth(pageId: string, answer: BasicAnswer): Promise<Navigated>;
  readonly passkeys: Passkeys;
  /** The first selector that names exactly one element that a person can use. The reference is good for `act`. */
  find(pageId: string, selectors: readonly string[]): Promise<string | undefined>;
  /** Releases the browser: its passkeys and answers are forgotten, its pages stay open. */
  dispose(): void;
}

export interface BasicAnswer {
  readonly username: string;
  readonly password: string;
  readonly allow: Allow;
}

export interface Navigated {
  readonly status?: number;
  readonly error?: string;
}

export interface Passkeys {
  /** From now on the page creates and uses passkeys without a person. */
  enable(pageId: string): Promise<void>;
  /** Those that pages created or used since they were enabled. */
  exported(): Promise<Passkey[]>;
  /**
   * Gives the passkeys to the page, as if they had been created in it. `allow` is asked about the site of each one, by https and by http;
   * those of other sites are left out.
   */
  add(pageId: string, passkeys: readonly Passkey[], allow: Allow): Promise<void>;
}
