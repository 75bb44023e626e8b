import type { FlowBrowser, StateFingerprint } from './browser.ts';
import { labelsOf, marksOf, namesAccount, saysOf } from './signs.ts';
import type { Look } from './types.ts';

/** Links and buttons that a page must have beyond those of the login page to count as the application. */
const leastNewControls = 4;

/** What shows that an account is logged in: the site before the login, and the results of earlier confirmations. */
export class Evidence {
  /** The login page, to compare the page after it with. */
  loginPage?: Look | undefined;
  /** Opening the login address ended the login, so it is not opened again. */
  entryHarms = false;
  /** The page after the last login was checked, and whether it still shows the account. */
  checked = false;
  foundLoggedIn = false;
  failedConfirmations = 0;
  /** A person is asked whether the account is logged in, and has said so. */
  asksPerson = false;
  byPerson = false;
  /** The browser has forgotten the site in this flow, and the login began anew. */
  startedAfresh = false;
  /** How long the login page took to show its form, in milliseconds. */
  formTook = 0;
  /** Submitted forms at the time of the last failed confirmation. */
  fillsAtFailure = -1;
  /** Cookies and storage before the first submit. */
  #baseline?: StateFingerprint | undefined;
  /** Controls of pages before the first submit: visitors without a login see them. */
  readonly #strange = new Set<string>();
  /** Ways out that pages showed before anything was submitted. */
  readonly #waysOut = new Set<string>();
  /** Names of accounts that were typed: the page after the login may show them. */
  readonly #identifiers = new Set<string>();

  /** Before a submit: the first one is compared with the page, the cookies and the storage of this moment. */
  async noteLogin(
    look: Look,
    browser: FlowBrowser,
    { id, waitedFor }: { id: string; waitedFor: number },
  ): Promise<void> {
    if (!this.loginPage) this.formTook = waitedFor;
    this.loginPage ??= look;
    this.#baseline ??= await browser.state(id);
  }

  /** A page before the first submit. */
  addBefore({ snapshot, reading }: Look): void {
    if (reading.kind !== 'signed_in') for (const label of labelsOf(snapshot)) this.#strange.add(label);
    else if (reading.wayOut !== undefined) this.#waysOut.add(reading.wayOut);
  }

  /** The page shows an account, and not only by a way out that it had before the login. */
  isIn({ reading }: Pick<Look, 'reading'>): boolean {
    return saysOf(reading) === 'in' && !this.wasThere({ reading });
  }

  /** The way out of the page was there before the login too. */
  wasThere({ reading }: Pick<Look, 'reading'>): boolean {
    return reading.wayOut !== undefined && this.#waysOut.has(reading.wayOut);
  }

  startAfresh(): void {
    this.startedAfresh = true;
    this.loginPage = undefined;
    this.#baseline = undefined;
    this.failedConfirmations = 0;
    this.fillsAtFailure = -1;
  }

  addIdentifier(name: string): void {
    this.#identifiers.add(name);
  }

  /** Names of cookies, and origins of storage, that are new or different since the first submit. */
  changes({ cookies, storage }: StateFingerprint): { cookies: string[]; storage: string[] } {
    const before = new Set(this.#baseline?.cookies.map(cookieKey));
    const stored = new Map(this.#baseline?.storage.map(({ origin, hash }) => [origin, hash]));
    return {
      cookies: [...new Set(cookies.filter((one) => !before.has(cookieKey(one))).map(({ name }) => name))],
      storage: storage
        .filter(({ origin, hash, keys }) => keys > 0 && stored.get(origin) !== hash)
        .map(({ origin }) => origin),
    };
  }

  /** Hashes of the controls that visitors without a login do not see. */
  marks(labels: readonly string[]): string[] {
    return marksOf(labels, this.#strange);
  }

  /** Many controls that the login page does not have, and the name that was typed. A refusal names no account and offers little. */
  showsApplication({ snapshot, reading }: Look): boolean {
    const before = new Set(this.loginPage && textsOf(this.loginPage));
    const fresh = [...new Set(textsOf({ snapshot }))].filter((text) => text !== '' && !before.has(text));
    const controls = new Set(
      snapshot.frames.flatMap(({ elements }) => elements.map(({ accessibleName }) => accessibleName)),
    );
    return (
      reading.fields.length === 0 &&
      reading.error === undefined &&
      fresh.filter((text) => controls.has(text)).length >= leastNewControls &&
      namesAccount(fresh, this.#identifiers)
    );
  }

  hasChanged(after: StateFingerprint): boolean {
    return this.#baseline !== undefined && Object.values(this.changes(after)).some(({ length }) => length > 0);
  }

  check(found = false): void {
    this.checked = true;
    this.foundLoggedIn = found;
  }

  harm(): void {
    this.entryHarms = true;
  }

  /** False when a person was asked before. */
  askPerson(): boolean {
    const isFirst = !this.asksPerson;
    this.asksPerson = true;
    return isFirst;
  }

  believePerson(): void {
    this.byPerson = true;
  }

  fail(fills: number): void {
    this.failedConfirmations++;
    this.fillsAtFailure = fills;
  }
}

const cookieKey = ({ name, domain, path, hash }: StateFingerprint['cookies'][number]) =>
  JSON.stringify([name, domain, path, hash]);

const textsOf = ({ snapshot }: Pick<Look, 'snapshot'>) =>
  snapshot.frames.flatMap(({ elements, texts }) => [
    ...elements.filter(({ visible }) => visible).map(({ accessibleName, href }) => accessibleName || href || ''),
    ...texts.filter(({ visible }) => visible).map(({ text }) => text),
  ]);
