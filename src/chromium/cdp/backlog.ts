const MIB = 1024 * 1024;

export interface BacklogBounds {
  /** A reader that has left this much unread is too slow. Large messages are counted apart: see `maxLarge`. */
  maxUnread?: number | undefined;
  /** How much of messages above 1 MiB may wait, besides `maxUnread`. One message of any size may. */
  maxLarge?: number | undefined;
}

/** Tells a reader that is at work on something large from one that does not read. */
export class Backlog {
  readonly #maxUnread: number;
  readonly #maxLarge: number;
  /** Bytes ever sent, and the large messages among them by where they end, to know what of them is unread. */
  #sent = 0;
  #large: { end: number; bytes: number }[] = [];

  constructor({ maxUnread = 64 * MIB, maxLarge = 256 * MIB }: BacklogBounds) {
    this.#maxUnread = maxUnread;
    this.#maxLarge = maxLarge;
  }

  /** To be asked before each message, with what waits already. False: the reader is too slow, drop it. */
  takes(bytes: number, unread: number): boolean {
    if (unread > this.#maxUnread && this.#isTooSlow(unread)) return false;
    this.#sent += bytes;
    if (bytes > MIB) this.#large.push({ end: this.#sent, bytes });
    else if (unread === 0 && this.#large.length > 0) this.#large = [];
    return true;
  }

  #isTooSlow(unread: number): boolean {
    const read = this.#sent - unread;
    this.#large = this.#large.filter(({ end }) => end > read);
    const unreadLarge = this.#large.reduce((sum, { bytes }) => sum + bytes, 0);
    return unread - unreadLarge > this.#maxUnread || (this.#large.length > 1 && unreadLarge > this.#maxLarge);
  }
}
