import type { Engine } from '../engine.ts';
import type { Confinement } from './encoder.ts';
import { atTime, fragmentReader, type Fragment, type Head } from './fragments.ts';
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

/** The output of one encoder: one head, and fragments on one clock. */
interface Run {
  head: Head | undefined;
  readonly startedAt: number;
  readonly fragments: Fragment[];
}

/** `engine` resolves with the current browser, also after a crash; it rejects when the session has ended. */
export function keepRing(
  options: { seconds: number; engine: () => Promise<Engine>; confinement: Confinement },
  encode: typeof record = record,
  memory = buffers,
): Ring {
  const { seconds, engine, confinement } = options;
  let runs: Run[] = [];
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
      const run: Run = { head: undefined, startedAt: Date.now(), fragments: [] };
      runs.push(run);
      const read = fragmentReader(
        (head) => (run.head = head),
        (fragment) => (run.fragments.push(fragment), forget(source)),
      );
      started.output.on('data', read);
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

  const wallTime = (run: Run, { time }: Fragment) => run.startedAt + (time / run.head!.timescale) * 1000;

  /** Drops fragments that ended before the kept time. A fragment lasts until the next one begins. */
  function forget(source: Engine) {
    const since = Date.now() - (seconds + 2) * 1000;
    for (const run of runs) {
      while (run.fragments.length > 1 && wallTime(run, run.fragments[1]!) < since) run.fragments.shift();
    }
    const bytes = () => runs.reduce((sum, { fragments }) => sum + fragments.reduce((s, f) => s + f.bytes.length, 0), 0);
    while (bytes() > MOST_BYTES || !fits(source, bytes()))
      (runs.find(({ fragments }) => fragments.length > 0) ?? runs[0])!.fragments.shift();
    const current = runs.at(-1);
    runs = runs.filter(
      (run) => run === current || (run.fragments.length > 0 && wallTime(run, run.fragments.at(-1)!) >= since),
    );
  }

  /** Counts the bytes for the node. A buffer that finds no memory gives up its oldest seconds. */
  function fits(source: Engine, bytes: number): boolean {
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
    const newest = runs.findLast(({ head, fragments }) => head && fragments.length > 0);
    if (!newest?.head) return undefined;
    const { head } = newest;
    const since = Date.now() - last * 1000;
    const kept = runs
      .filter((run) => run.head?.bytes.equals(head.bytes)) // a run of another size would be another video
      .flatMap((run) => run.fragments.map((fragment) => ({ fragment, at: wallTime(run, fragment) })));
    const first = Math.max(
      0,
      kept.findLastIndex(({ at }) => at <= since),
    );
    const chosen = kept.slice(first);
    const from = chosen[0]!.at;
    const parts = chosen.map(({ fragment, at }) => atTime(fragment, Math.round(((at - from) / 1000) * head.timescale)));
    return { file: Buffer.concat([head.bytes, ...parts]), startedAt: new Date(from) };
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
      runs = [];
      release?.();
    },
  };
}
