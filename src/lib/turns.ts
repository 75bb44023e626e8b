/** How long a piece of work may hold the event loop, in milliseconds. */
const PIECE_MS = 8;

/**
 * For work that grows with what others send. The function that it makes is called after each small step, and lets others have the
 * event loop when the piece has taken its time.
 */
export function turns(): () => Promise<void> | undefined {
  let began = performance.now();
  return () => {
    if (performance.now() - began < PIECE_MS) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        began = performance.now();
        resolve();
      });
    });
  };
}
