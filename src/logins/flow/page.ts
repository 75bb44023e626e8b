import type { OpenCredential } from '../../credentials/service.ts';
import { FormsError, type FlowBrowser } from './browser.ts';
import { sizeOf } from './signs.ts';
import type { Look } from './types.ts';

/** The page that the flow works in, its last reading, and the addresses that may have the login form. */
export class FlowPage {
  id = '';
  look?: Look | undefined;
  /** The part of the credential that may be typed on the page of the last look. */
  credential?: OpenCredential | undefined;
  /** Waits for a page that shows nothing of use so far. */
  blankWaits = 0;
  /** When the flow came to this address. */
  arrivedAt = 0;
  /** When the flow began to wait for something of use at this address; undefined while it does not. */
  waitingSince?: number | undefined;
  /** The page had other content than at the look before. */
  changing = false;
  /** Usual addresses of login pages were tried. */
  guessed = false;
  /** The first address that answered, and those that did not. */
  answered?: string | undefined;
  unanswered: readonly { url: string; error: string }[] = [];
  /** Addresses that were not tried yet. */
  addresses: readonly string[] = [];
  /** Pages that existed before the last act. The flow follows a newer page that this page opened. */
  #known = new Set<string>();
  /** The flow itself acted last, and not a person in the live view, which may open pages of other sites. */
  #acted = false;
  #lastNote = '';

  tryAddresses(addresses: string[], guessed = false): void {
    this.addresses = addresses;
    this.guessed ||= guessed;
  }

  /** Goes to the next address that answers. False when none does. */
  async enter(browser: FlowBrowser): Promise<boolean> {
    for (let [url, ...rest] = this.addresses; url !== undefined; [url, ...rest] = this.addresses) {
      this.addresses = rest;
      const error = await this.goTo(browser, url);
      if (error === undefined) {
        this.answered ??= url;
        return true;
      }
      this.unanswered = [...this.unanswered, { url, error }];
    }
    return false;
  }

  async goTo(browser: FlowBrowser, url: string): Promise<string | undefined> {
    this.arrivedAt = Date.now();
    const { error } = await browser.navigate(this.id, url);
    this.blankWaits = 0;
    this.waitingSince = undefined;
    return error;
  }

  /** Takes the first page of the browser. Other tabs of the profile may still be opening. */
  async open(browser: FlowBrowser): Promise<void> {
    const [first] = await browser.pages();
    this.id = first?.pageId ?? (await browser.open('about:blank'));
    await this.rememberPages(browser);
    this.followOwnWindows();
  }

  /** Before an act: the act did not open the pages that exist now. */
  async rememberPages(browser: FlowBrowser): Promise<void> {
    this.#known = new Set((await browser.pages()).map(({ pageId }) => pageId));
    this.#acted = true;
  }

  /** Until the next act, the flow follows only windows that name this page as their opener. */
  followOwnWindows(): void {
    this.#acted = false;
  }

  /**
   * Identity providers often use a window of their own and close it at the end. The flow moves to a window that its page has opened since
   * the last act, and to the newest page that is left when its page is closed.
   */
  async follow(browser: FlowBrowser): Promise<void> {
    const pages = await browser.pages();
    const fresh = pages.filter(({ pageId }) => !this.#known.has(pageId));
    const opened =
      fresh.findLast(({ opener }) => opener === this.id) ??
      // A link with noopener opens a page without an opener.
      (this.#acted ? fresh.findLast(({ opener, url }) => opener === undefined && /^https?:/.test(url)) : undefined);
    if (opened) {
      this.#known.add(opened.pageId);
      this.id = opened.pageId;
      return;
    }
    if (pages.some(({ pageId }) => pageId === this.id)) return;
    const left = pages.at(-1);
    if (!left) throw new FormsError('page_gone', 'Every page of the browser is closed.');
    this.id = left.pageId;
  }

  show(look: Look): void {
    const { look: before } = this;
    this.changing = before?.snapshot.url === look.snapshot.url && sizeOf(before.snapshot) !== sizeOf(look.snapshot);
    this.look = look;
  }

  allow(credential: OpenCredential | undefined): void {
    this.credential = credential;
  }

  /** The page does not show what it will show. */
  waitFrom(now: number): number {
    return (this.waitingSince ??= now);
  }

  /** How long a page that was waited for has been open, in milliseconds. */
  get waitedFor(): number {
    return this.waitingSince === undefined ? 0 : Date.now() - this.arrivedAt;
  }

  /** A new page instead of this one: nothing is left of what the scripts of this one remember. */
  async replace(browser: FlowBrowser, url: string): Promise<void> {
    const old = this.id;
    this.arrivedAt = Date.now();
    this.id = await browser.open(url);
    this.blankWaits = 0;
    this.waitingSince = undefined;
    await browser.close(old);
    await this.rememberPages(browser);
    this.followOwnWindows();
  }

  waitForContent(now: number): number {
    this.waitFrom(now);
    return ++this.blankWaits;
  }

  /** Whether a record differs from the one before. A page that changes while the flow waits for a person must not fill the records. */
  isNew(note: string): boolean {
    const isNew = note !== this.#lastNote;
    this.#lastNote = note;
    return isNew;
  }
}
