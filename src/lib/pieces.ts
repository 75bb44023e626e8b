/** Smaller pieces are merged. */
const SMALL = 8 * 1024;

/** Bytes that come in pieces. They take a small multiple of their length in memory, although a sender may write them one by one. */
export class Pieces {
  length = 0;
  #whole: Buffer[] = [];
  #space: Buffer | undefined;
  #used = 0;

  add(piece: Buffer): void {
    this.length += piece.length;
    const large = piece.length > SMALL / 2;
    if (large || this.#used + piece.length > SMALL) this.#close();
    if (large) this.#whole.push(piece);
    if (large || piece.length === 0) return;
    this.#space ??= Buffer.allocUnsafeSlow(SMALL);
    this.#used += piece.copy(this.#space, this.#used);
  }

  /** Returns all bytes as one buffer and empties the list. */
  take(): Buffer {
    this.#close();
    const all = Buffer.concat(this.#whole, this.length);
    this.#whole = [];
    this.length = 0;
    return all;
  }

  /** How many buffers are held. */
  get held(): number {
    return this.#whole.length + (this.#space ? 1 : 0);
  }

  #close(): void {
    if (this.#space) this.#whole.push(this.#space.subarray(0, this.#used));
    this.#space = undefined;
    this.#used = 0;
  }
}
