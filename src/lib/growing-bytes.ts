const FIRST = 64 * 1024;

/** Bytes as one buffer, which grows with what comes, in however small pieces: a buffer for each would take a hundred bytes more. */
export class GrowingBytes {
  #space: Buffer = Buffer.alloc(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(bytes: Buffer): void {
    const size = this.#size + bytes.length;
    if (size > this.#space.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(FIRST, size, 2 * this.#space.length));
      this.#space.copy(larger, 0, 0, this.#size);
      this.#space = larger;
    }
    bytes.copy(this.#space, this.#size);
    this.#size = size;
  }

  /** Not a copy. */
  all(): Buffer {
    return this.#space.subarray(0, this.#size);
  }
}
