/** The output of a process, as far back as it is kept. Readers count in chunks since the beginning. */
interface Chunk {
  stream: 'stdout' | 'stderr';
  bytes: Buffer;
}

/** The most bytes kept of one process, and of all of them. */
const MOST = 4 * 1024 * 1024;
const MOST_OF_ALL = 64 * 1024 * 1024;

const everyone = new Set<Output>();
let kept = 0;

export class Output {
  /** The number of dropped chunks, and of the bytes in them. */
  first = 0;
  droppedBytes = 0;
  ended = false;
  #chunks: Chunk[] = [];
  #bytes = 0;
  #waiting: (() => void)[] = [];

  constructor() {
    everyone.add(this);
  }

  add(stream: Chunk['stream'], bytes: Buffer) {
    this.#chunks.push({ stream, bytes });
    this.#bytes += bytes.length;
    kept += bytes.length;
    while (this.#bytes > MOST) this.#drop();
    for (const other of everyone) {
      if (kept <= MOST_OF_ALL) break;
      while (kept > MOST_OF_ALL && other.#chunks.length > 0) other.#drop(); // the oldest process first
    }
    this.#wake();
  }

  at(index: number): Chunk | undefined {
    return this.#chunks[index - this.first];
  }

  /** The last bytes, of both streams as they came. */
  tail(most: number): Buffer {
    let [bytes, from] = [0, this.#chunks.length];
    while (from > 0 && bytes < most) bytes += this.#chunks[--from]!.bytes.length;
    const those = this.#chunks.slice(from).map((chunk) => chunk.bytes);
    return Buffer.concat(those).subarray(Math.max(0, bytes - most));
  }

  end() {
    this.ended = true;
    this.#wake();
  }

  /** Resolves when there may be more to read. */
  more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done);
        resolve();
      };
      signal.addEventListener('abort', done, { once: true });
      this.#waiting.push(done);
    });
  }

  forget() {
    while (this.#chunks.length > 0) this.#drop();
    everyone.delete(this);
  }

  #drop() {
    const oldest = this.#chunks.shift();
    if (!oldest) return;
    this.first++;
    this.#bytes -= oldest.bytes.length;
    kept -= oldest.bytes.length;
    this.droppedBytes += oldest.bytes.length;
  }

  #wake() {
    const those = this.#waiting;
    this.#waiting = [];
    for (const resolve of those) resolve();
  }
}
