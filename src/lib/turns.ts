/** How long a piece of work may hold the event loop, in milliseconds. */
const PIECE_MS = 8;

const waiting: (() => void)[] = [];

function give(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(give);
}

/** Yields to the event loop. One waiting task resumes in each turn, because the pieces of many tasks together would be a long stop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(give);
  });
}

/**
 * For work that grows with its input. Call the returned function after each small step: it yields to the event loop when 8 ms have passed.
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
