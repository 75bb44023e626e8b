import type { Readable } from 'node:stream';
import type { Pace } from '../../lib/turns.ts';

/**
 * Reads Chromium's messages at a pace. A page can fill the pipe, and the messages of one read take more than a turn of the event loop. `take`
 * returns the part of a chunk that is for the next turn, `end` is called when the stream has ended and everything was taken.
 */
export function pacedReader(
  stream: Readable,
  pace: Pace,
  { take, end }: { take: (chunk: Buffer) => Buffer | undefined; end: () => void },
) {
  let later: Buffer[] | undefined;
  let held = false;
  let ended = false;

  function read(chunk: Buffer): void {
    if (later) return void later.push(chunk); // Node resumes the streams of a process that has exited
    const rest = take(chunk);
    if (rest) void goOn(rest);
  }

  async function goOn(rest: Buffer): Promise<void> {
    later = [rest];
    steer();
    await pace.next();
    const waited = later;
    later = undefined;
    for (const chunk of waited) read(chunk);
    if (later) return;
    if (ended) end();
    else steer();
  }

  function steer(): void {
    if (later || held) stream.pause();
    else stream.resume();
  }

  function over(): void {
    ended = true;
    if (!later) end();
  }

  stream.on('data', read).on('end', over).on('close', over);

  return {
    /** Stops reading until it is called with false. */
    hold(still: boolean): void {
      held = still;
      steer();
    },
  };
}
