import { setTimeout } from 'node:timers/promises';

/** Resolves after a time; rejects with the signal's reason as soon as the signal fires. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  setTimeout(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
