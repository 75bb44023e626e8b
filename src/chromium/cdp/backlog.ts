const MIB = 1024 * 1024;

export interface BacklogBounds {
  /** A reader with this many unread bytes is too slow. Large messages are counted separately: see `maxLarge`. */
  maxUnread?: number | undefined;
  /** How many bytes of messages above 1 MiB may wait, besides `maxUnread`. A single message may have any size. */
  maxLarge?: number | undefined;
}

/** Distinguishes a reader that is busy with a large message from a reader that does not read. */
export class Backlog {
  readonly #maxUnread: number;
  readonly #maxLarge: number;
  /** Bytes ever sent, and the end offsets of the large messages among them, to know which are unread. */
  #sent = 0;
  #large: { end: number; bytes: number }[] = [];

  constructor({ maxUnread = 64 * MIB, maxLarge = 256 * MIB }: BacklogBounds) {
    this.#maxUnread = maxUnread;
    this.#maxLarge = maxLarge;
  }

  /** Call it before each message, with the number of unread bytes. False: the reader is too slow and is to be dropped. */
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
