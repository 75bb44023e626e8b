import { createHash, randomBytes } from 'node:crypto';
import type { TotpCode } from '../../credentials/totp.ts';
import type { Reading } from '../reading/types.ts';
import type { Allow, FlowBrowser, Passkey } from './browser.ts';
import { isCode } from './codes.ts';
import { pause } from './pause.ts';

/** A third submit of a password may lock the account. */
const mostSubmits = 2;
/** Codes that are generated for one question: the first, and one of the next window in case the first came too late. */
const mostGenerated = 2;
/** Milliseconds. A code that is valid for less is likely to arrive too late. */
const leastLeft = 3000;

/** The passwords, codes and passkeys that the flow has used. Sites lock accounts, so their number is limited. */
export class Factors {
  /** The newest window of one-time codes that a code was typed from. */
  lastCounter: number | undefined;
  /** The secret of a two-factor login that this flow set up. */
  totpSecret?: string | undefined;
  enrolTried = false;
  passkeysEnabled = false;
  /** How often HTTP Basic credentials were sent. */
  basicSent = 0;
  /** Codes that a person, a program or a source gave, and that the site has not refused. */
  #given: string[] = [];
  /** Codes generated since the site last accepted one. */
  #generated = 0;
  /** How often each password was submitted, by a hash that has no meaning outside of this flow. */
  #submits = new Map<string, number>();
  #salt = randomBytes(16);

  constructor(lastCounter: number | undefined) {
    this.lastCounter = lastCounter;
  }

  get hasSubmittedPassword(): boolean {
    return this.#submits.size > 0;
  }

  /** Whether the password was submitted so often that it is not submitted again. */
  isSpent(password: string): boolean {
    return (this.#submits.get(this.#hash(password)) ?? 0) >= mostSubmits;
  }

  countPassword(password: string, by: 1 | -1): void {
    const hash = this.#hash(password);
    const submits = (this.#submits.get(hash) ?? 0) + by;
    if (submits === 0) this.#submits.delete(hash);
    else this.#submits.set(hash, submits);
  }

  #hash(password: string): string {
    return createHash('sha256').update(this.#salt).update(password).digest('base64');
  }

  get mayGenerate(): boolean {
    return this.#generated < mostGenerated;
  }

  /**
   * The next one-time code, of a window without a typed code: sites refuse a code that they have seen, and some lock the account. Waits for
   * the next window when this one is used or almost over. Undefined when there is no code.
   */
  async nextCode(totp: () => Promise<TotpCode | undefined>, now: () => number, signal: AbortSignal) {
    for (;;) {
      // A store that does not answer must not end the login: a person may have the code.
      const code = await totp().catch(() => undefined);
      if (!code) return undefined;
      const left = code.expiresAt.getTime() - now();
      const used = this.lastCounter !== undefined && code.counter <= this.lastCounter;
      if (!used && left >= leastLeft) {
        this.lastCounter = code.counter;
        this.#generated++;
        return code.code;
      }
      // The clock of the code's source may differ a little from this one: ask again soon after.
      await pause(Math.max(left, 0) + 100, signal);
    }
  }

  /** The secret that the site shows for new codes. Its first code is typed now. */
  enrol(totpSecret: string, counter: number): void {
    this.enrolTried = true;
    this.totpSecret = totpSecret;
    this.lastCounter = counter;
  }

  giveCode(code: string): void {
    this.#given.push(code);
  }

  get givenCodes(): readonly string[] {
    return this.#given;
  }

  judge({ kind, fields }: Reading, isAnswer: boolean): void {
    // It asks for another, or for the same once more.
    if (isAnswer && fields.some(isCode)) this.#given.pop();
    // The site did not accept the code of the new secret, so it does not have the secret either.
    if (isAnswer && kind === 'enrol_totp') this.totpSecret = undefined;
    if (!fields.some(isCode)) this.#generated = 0;
  }

  sendBasic(): number {
    return ++this.basicSent;
  }

  async enablePasskeys(browser: FlowBrowser, pageId: string, known: readonly Passkey[], allow: Allow): Promise<void> {
    if (this.passkeysEnabled) return;
    this.passkeysEnabled = true;
    await browser.passkeys.enable(pageId);
    if (known.length > 0) await browser.passkeys.add(pageId, known, allow);
  }
}
