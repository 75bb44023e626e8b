/** Shows both ends of a connection that the other one is there. */
export interface Heartbeat {
  /** A text message for the far end: scripts of a page do not see pings. */
  text: string;
  everyMs: number;
  /** A far end that was silent for this many beats is dropped. Beats instead of time: this process may have been stopped in between. */
  dropAfter: number;
}

interface Beaten {
  /** Whether nothing can be heard because nothing is read. */
  paused(): boolean;
  beat(text: Buffer): void;
  drop(): void;
}

export function startHeartbeat({ text, everyMs, dropAfter }: Heartbeat, { paused, beat, drop }: Beaten) {
  const message = Buffer.from(text);
  let silent = 0;
  const timer = setInterval(() => {
    silent = paused() ? 0 : silent + 1;
    if (silent > dropAfter) drop();
    else beat(message);
  }, everyMs);
  return {
    heard: () => void (silent = 0),
    stop: () => clearInterval(timer),
  };
}
