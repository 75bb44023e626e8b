/** How long a piece of work may hold the event loop, in milliseconds. */
const PIECE_MS = 8;

const waiting: (() => void)[] = [];

function give(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(give);
}

/** Lets others have the event loop. Of all who wait for it, one goes on in each turn: many pieces together would be a long stop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(give);
  });
}

/**
 * For work that grows with what others send. The function that it makes is called after each small step, and lets others have the
 * event loop when the piece has taken its time.
 */
export function turns(): () => Promise<void> | undefined {
  let began = performance.now();
  return () => {
    if (performance.now() - began < PIECE_MS) return undefined;
    return nextTurn().then(() => {
      began = performance.now();
    });
  };
}
