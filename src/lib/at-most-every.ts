/**
 * Calls `work` at most once at a time, and not again until `ms` after its end. Callers in between get the same result. A failure is not
 * kept.
 */
export function atMostEvery<T>(ms: number, work: () => Promise<T>): () => Promise<T> {
  let latest: { result: Promise<T>; until: number } | undefined;
  return () => {
    if (latest && performance.now() < latest.until) return latest.result;
    const now = { result: work(), until: Infinity };
    latest = now;
    now.result.then(
      () => (now.until = performance.now() + ms),
      () => (now.until = 0),
    );
    return now.result;
  };
}
