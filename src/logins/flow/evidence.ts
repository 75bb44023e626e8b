import type { FlowBrowser, StateFingerprint } from './browser.ts';
import { marksOf, namesAccount } from './signs.ts';
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
  /** Submitted forms at the time of the last failed confirmation. */
  fillsAtFailure = -1;
  /** Cookies and storage before the first submit. */
  #baseline?: StateFingerprint | undefined;
  /** Controls of pages before the first submit: visitors without a login see them. */
  readonly #strange = new Set<string>();
  /** Names of accounts that were typed: the page after the login may show them. */
  readonly #identifiers = new Set<string>();

  /** Before a submit: the first one is compared with the page, the cookies and the storage of this moment. */
  async noteLogin(look: Look, browser: FlowBrowser, pageId: string): Promise<void> {
    this.loginPage ??= look;
    this.#baseline ??= await browser.state(pageId);
  }

  addStrange(labels: readonly string[]): void {
    for (const label of labels) this.#strange.add(label);
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
