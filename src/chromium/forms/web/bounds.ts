/** The work of one call in a page: nodes visited, milliseconds for one walk, depth of a tree. */
export const MOST_NODES = 30_000;
export const MOST_MS = 1500;
export const MOST_DEPTH = 400;

/** Returns a function that says whether the time is over. */
export function deadline(ms: number): () => boolean {
  const started = performance.now();
  return () => performance.now() - started > ms;
}
