import type { Readable } from 'node:stream';
import type { Engine } from '../engine.ts';
import { startEncoder, type Confinement } from './encoder.ts';
import { framesOf, type Frames } from './frames.ts';
import { pictures } from './picture-memory.ts';

/** A running recording. */
export interface Recording {
  /** Fragmented MP4, as it is encoded; ends when the video is complete. */
  readonly output: Readable;
  /** Ends the recording. The last picture is repeated, so that the video lasts until now. */
  stop(): void;
  /** Settles once, when the encoder has exited. */
  readonly ended: Promise<{ how: 'stopped' | 'session_ended' | 'encoder_failed'; lastWords: string[] }>;
}

/** Interval at which the last picture is repeated when nothing changes. */
const STILL_MS = 1000;
/** How long it is repeated. More of the same picture is useless, and a session on standby is not disturbed. */
const STILL_FOR_MS = 30_000;
/** How long ffmpeg may take to write the rest. */
const FLUSH_MS = 20_000;
/** How long a recording that is stopped at once waits for its first picture. */
const FIRST_MS = 10_000;
/** ffmpeg writes no video of a single picture. */
const FEWEST = 2;

export async function record(engine: Engine, framerate: number, confinement: Confinement): Promise<Recording> {
  const frames = await framesOf(engine);
  const release = takeMemory(engine, frames);
  const encoder = startEncoder({ pictures: frames.pictures, size: frames.size, framerate }, confinement);
  const everyMs = 1000 / framerate;
  let last: Buffer | undefined;
  let fed = 0;
  let fedAt = 0;
  let changedAt = 0;
  let how: 'stopped' | 'session_ended' | 'encoder_failed' | undefined;
  let finished = false;
  let asking: NodeJS.Timeout | undefined;
  let due: NodeJS.Timeout | undefined;
  let kill: NodeJS.Timeout | undefined;

  frames.start(
    (picture) => {
      last = picture;
      changedAt = performance.now();
      if (how) return finish(); // it was stopped before its first picture
      due ??= setTimeout(feed, Math.max(0, fedAt + everyMs - changedAt));
    },
    () => end('session_ended'),
  );
  const still = setInterval(() => {
    const now = performance.now();
    if (now - fedAt >= STILL_MS && now - changedAt < STILL_FOR_MS) due ??= setTimeout(feed);
  }, STILL_MS);
  const ended = encoder.exited.then(({ failed, lastWords }) => {
    how ??= 'encoder_failed';
    release();
    clearInterval(still);
    clearTimeout(asking);
    clearTimeout(due);
    clearTimeout(kill);
    frames.close();
    return { how: failed && how === 'stopped' ? ('encoder_failed' as const) : how, lastWords };
  });

  /**
   * Feeds the newest picture at the frame rate. The next one is requested after half the interval, so that it arrives in time; an
   * encoder that is behind gets fewer.
   */
  function feed(): void {
    due = undefined;
    if (how || !last) return;
    fedAt = performance.now();
    fed++;
    const taken = encoder.feed(last);
    clearTimeout(asking);
    if (taken) asking = setTimeout(frames.next, everyMs / 2);
    else void encoder.drained().then(() => how ?? frames.next());
  }

  function end(reason: 'stopped' | 'session_ended') {
    if (how === 'stopped' && reason === 'session_ended') return finish(); // no picture will come
    if (how) return;
    how = reason;
    clearInterval(still);
    clearTimeout(asking);
    clearTimeout(due);
    if (last || reason === 'session_ended') finish();
    else kill = setTimeout(finish, FIRST_MS);
  }

  function finish() {
    if (finished) return;
    finished = true;
    // The last picture is repeated, so that it lasts until now.
    for (let more = Math.max(1, FEWEST - fed); last && more > 0; more--) encoder.feed(last);
    encoder.end();
    clearTimeout(kill);
    kill = setTimeout(() => encoder.kill(), FLUSH_MS);
    frames.close();
  }

  return { output: encoder.output, stop: () => end('stopped'), ended };
}

/** A recording holds up to three pictures: the arriving or followed one, the last one, and the one ffmpeg reads. */
function takeMemory({ memory }: Pick<Engine, 'memory'>, { pictures: kind, size, close }: Frames): () => void {
  try {
    return pictures.take(memory, 3 * size.width * size.height * (kind === 'pixels' ? 4 : 1));
  } catch (error) {
    close();
    throw error;
  }
}
