import { setTimeout as sleep } from 'node:timers/promises';

const firstMs = 250;
const longestMs = 10_000;

/** Repeats work that fails, with growing pauses, until it succeeds. `failed` receives each error. Undefined: it returned `stop`. */
export async function retried<T>(
  work: () => Promise<T>,
  failed: (error: Error) => 'stop' | 'again',
  pauses = { firstMs, longestMs },
): Promise<T | undefined> {
  for (let pauseMs = pauses.firstMs; ; pauseMs = Math.min(pauseMs * 2, pauses.longestMs)) {
    try {
      return await work();
    } catch (error) {
      if (failed(error as Error) === 'stop') return undefined;
      await sleep(pauseMs);
    }
  }
}
