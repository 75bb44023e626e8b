/** A part of the output of one stream. Readers count in bytes since the beginning. */
interface Chunk {
  readonly stream: 'stdout' | 'stderr';
  /** Where it begins. */
  readonly at: number;
  bytes: Buffer;
  /** Has room after `bytes`. */
  space?: Buffer;
}

/** The most bytes kept of one process, and of all of them. */
const MOST = 4 * 1024 * 1024;
const MOST_OF_ALL = 64 * 1024 * 1024;
/** The memory of a chunk besides its bytes. */
const CHUNK_COST = 512;
/** The most bytes of a chunk that is joined: MOST_PIECE of protocol.ts, of which only types are loaded here. */
const MOST_JOINED = 64 * 1024;

const everyone = new Set<Output>();
let kept = 0;

export class Output {
  /** The number of bytes at the beginning that are not kept. */
  droppedBytes = 0;
  ended = false;
  #chunks: Chunk[] = [];
  #end = 0;
  #cost = 0;
  #waiting: (() => void)[] = [];

  constructor() {
    everyone.add(this);
  }

  add(stream: Chunk['stream'], bytes: Buffer) {
    let cost = bytes.length;
    if (!appended(this.#chunks.at(-1), stream, bytes)) {
      this.#chunks.push({ stream, bytes, at: this.#end });
      cost += CHUNK_COST;
    }
    this.#end += bytes.length;
    this.#cost += cost;
    kept += cost;
    while (this.#cost > MOST) this.#drop();
    for (const other of everyone) {
      if (kept <= MOST_OF_ALL) break;
      while (kept > MOST_OF_ALL && other.#chunks.length > 0) other.#drop(); // the oldest process first
    }
    this.#wake();
  }

  /** The output of one stream from a position on that is kept; undefined at the end. */
  from(position: number): Pick<Chunk, 'stream' | 'bytes'> | undefined {
    if (position >= this.#end) return undefined;
    let [low, high] = [0, this.#chunks.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#chunks[middle]!.at <= position) low = middle;
      else high = middle - 1;
    }
    const { stream, bytes, at } = this.#chunks[low]!;
    return { stream, bytes: bytes.subarray(position - at) };
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
    this.#cost -= oldest.bytes.length + CHUNK_COST;
    kept -= oldest.bytes.length + CHUNK_COST;
    this.droppedBytes += oldest.bytes.length;
  }

  #wake() {
    const those = this.#waiting;
    this.#waiting = [];
    for (const resolve of those) resolve();
  }
}

/** Joins small pieces of a stream: a process may write a byte at a time. */
function appended(last: Chunk | undefined, stream: Chunk['stream'], bytes: Buffer): boolean {
  if (last?.stream !== stream) return false;
  const { length } = last.bytes;
  const joined = length + bytes.length;
  if (joined > MOST_JOINED) return false;
  if (!last.space || joined > last.space.length) {
    const space = Buffer.allocUnsafeSlow(Math.min(2 * joined, MOST_JOINED));
    last.bytes.copy(space);
    last.space = space;
  }
  bytes.copy(last.space, length);
  last.bytes = last.space.subarray(0, joined);
  return true;
}
