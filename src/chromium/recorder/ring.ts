import type { Engine } from '../engine.ts';
import type { Confinement } from './encoder.ts';
import { fragmentReader, setTime, type Fragment, type Head } from './fragments.ts';
import { buffers } from './picture-memory.ts';
import { record, type Recording } from './recorder.ts';

/** The last seconds of a session, kept in memory. */
export interface Ring {
  /** A playable file of the last seconds. The ring keeps its content. Undefined when there is nothing yet. */
  save(seconds: number): Promise<{ file: Buffer; startedAt: Date } | undefined>;
  close(): void;
}

const FRAMERATE = 10;
const MOST_BYTES = 32 * 1024 * 1024;
const AGAIN_MS = 1000;
/** An encoder writes one in two seconds; each start of an encoder begins another. */
const MOST_FRAGMENTS = 2000;

/** A fragment with the head of its encoder's output. */
interface Kept {
  readonly head: Head;
  readonly fragment: Fragment;
  /** When it begins. */
  readonly at: number;
}

/** The head is counted with each of its fragments: it is small, unless the encoder was taken over. */
const sizeOf = ({ head, fragment }: Pick<Kept, 'head' | 'fragment'>) => head.bytes.length + fragment.bytes.length;

/** `engine` resolves with the current browser, also after a crash; it rejects when the session has ended. */
export function keepRing(
  options: { seconds: number; engine: () => Promise<Engine>; confinement: Confinement },
  encode: typeof record = record,
  memory = buffers,
): Ring {
  const { seconds, engine, confinement } = options;
  let kept: Kept[] = [];
  let bytes = 0;
  let recording: Recording | undefined;
  let again: NodeJS.Timeout | undefined;
  let closed = false;
  let release: (() => void) | undefined;
  let saving: Promise<unknown> = Promise.resolve();
  void start();

  async function start(): Promise<void> {
    let source: Engine;
    try {
      source = await engine();
    } catch {
      closed = true; // the session has ended
      return;
    }
    if (closed) return;
    try {
      const started = await encode(source, FRAMERATE, confinement);
      recording = started;
      started.output.on('data', reader(source, Date.now()));
      void started.ended.then(({ how }) => {
        if (recording === started) recording = undefined;
        if (how !== 'stopped') startAgain();
      });
      if (closed) started.stop();
    } catch {
      startAgain();
    }
  }

  function startAgain() {
    if (!closed) again = setTimeout(() => void start(), AGAIN_MS);
  }

  function reader(source: Engine, startedAt: number) {
    let head: Head;
    return fragmentReader(
      // Encoders of one session write the same head, which is kept once.
      (its) => (head = kept.find((one) => one.head.bytes.equals(its.bytes))?.head ?? its),
      (fragment) => keep(source, head, fragment, startedAt + (fragment.time / head.timescale) * 1000),
    );
  }

  /** Drops fragments that ended before the kept time. A fragment lasts until the next one begins. */
  function keep(source: Engine, head: Head, fragment: Fragment, at: number) {
    if (closed) return; // an encoder writes its last pictures as it is stopped
    const now = Date.now();
    kept.push({ head, fragment, at: Math.min(at, now) });
    bytes += sizeOf({ head, fragment });
    const since = now - (seconds + 2) * 1000;
    const tooMuch = () => bytes > MOST_BYTES || kept.length > MOST_FRAGMENTS || (kept[1] && kept[1].at < since);
    while (tooMuch() || !fits(source)) bytes -= sizeOf(kept.shift()!);
  }

  /** Counts the bytes for the node. A buffer without memory drops its oldest seconds. */
  function fits(source: Engine): boolean {
    release?.();
    release = undefined;
    if (bytes === 0 || closed) return true;
    try {
      release = memory.take(source.memory, bytes);
      return true;
    } catch {
      return false;
    }
  }

  async function save(last: number) {
    // The encoder writes its remaining pictures when it ends. The next encoder starts at once.
    const ending = recording;
    recording = undefined;
    ending?.stop();
    const over = ending?.ended;
    if (ending) void start();
    await over;
    if (closed) return undefined;
    const inOrder = kept.toSorted((a, b) => a.at - b.at); // an encoder may end after the next one has written
    const head = inOrder.at(-1)?.head;
    if (!head) return undefined;
    const since = Date.now() - last * 1000;
    // A fragment of another size would be another video.
    const playable = inOrder.filter((one) => one.head === head || one.head.bytes.equals(head.bytes));
    const first = Math.max(
      0,
      playable.findLastIndex(({ at }) => at <= since),
    );
    const chosen = playable.slice(first);
    const from = chosen[0]!.at;
    const file = Buffer.concat([head.bytes, ...chosen.map(({ fragment }) => fragment.bytes)]);
    let position = head.bytes.length;
    for (const { fragment, at } of chosen) {
      setTime(file.subarray(position), fragment, Math.round(((at - from) / 1000) * head.timescale));
      position += fragment.bytes.length;
    }
    return { file, startedAt: new Date(from) };
  }

  return {
    save(last) {
      const saved = saving.then(() => save(last));
      saving = saved.catch(() => {});
      return saved;
    },
    close() {
      closed = true;
      clearTimeout(again);
      recording?.stop();
      kept = [];
      bytes = 0;
      release?.();
    },
  };
}
