import type { Engine } from '../chromium/engine.ts';
import { newId } from '../lib/ids.ts';
import type { Browsers } from './browsers.ts';
import { spareOptions } from './request.ts';

/** A browser that was launched within this time shows that browsers can be launched. */
const latelyMs = 60_000;
/** A failed trial is not repeated for this long: the endpoint needs no key. */
const failedMs = 10_000;

/** Whether a browser can be launched on this node: one was launched lately, or one is launched now and ended again. */
export function launchTrial(browsers: Pick<Browsers, 'start' | 'remove' | 'startedAt'>, now = () => performance.now()) {
  const closing = new AbortController();
  let underway: Promise<string | undefined> | undefined;
  let failed: { at: number; why: string } | undefined;

  async function attempt(): Promise<string | undefined> {
    const id = newId();
    const whenGone = () => ({ code: 1011, reason: 'The browser went away.' });
    let engine: Engine | undefined;
    try {
      engine = await browsers.start(id, spareOptions('headless'), whenGone, closing.signal);
      return undefined;
    } catch (error) {
      const why = `A browser could not be launched: ${(error as Error).message}`;
      failed = { at: now(), why };
      return why;
    } finally {
      await engine?.close();
      await browsers.remove(id);
    }
  }

  return {
    /** Resolves with the problem, if there is one. Concurrent callers get the same answer. */
    async check(): Promise<string | undefined> {
      const startedAt = browsers.startedAt();
      if (startedAt !== undefined && now() - startedAt < latelyMs) return undefined;
      if (failed && now() - failed.at < failedMs) return failed.why;
      return (underway ??= attempt().finally(() => (underway = undefined)));
    },

    async close(): Promise<void> {
      closing.abort(new Error('The service is being stopped.'));
      await underway;
    },
  };
}
