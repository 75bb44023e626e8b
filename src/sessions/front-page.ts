import type { Engine } from '../chromium/engine.ts';
import { within } from '../lib/deadline.ts';

/** The page in front when the browser was last asked. */
interface SeenPage {
  readonly url: string;
  readonly title: string;
  readonly seenAt: Date;
}

/**
 * The page in front of a session's browser. Reading it neither wakes the session nor resets its idle timeout, so that a dashboard may poll it. It
 * is read once more just before standby, while the browser can still answer.
 */
export function sessionFrontPage({ engine, mayAsk }: { engine: () => Promise<Engine>; mayAsk: () => boolean }) {
  let seen: SeenPage | undefined;
  let looking: Promise<void> | undefined;
  /** Counts the holders: a page read for one must not be shown to the next. */
  let holder = 0;

  async function ask(): Promise<void> {
    const asked = holder;
    const page = await (await engine()).frontPage();
    if (asked === holder) seen = page && { ...page, seenAt: new Date() };
  }

  return {
    get seen() {
      return seen;
    },

    /** Asks the browser, once for all concurrent callers. Keeps the last known page when there is no answer in time. */
    async look(ms: number): Promise<void> {
      if (!mayAsk()) return;
      looking ??= ask()
        .catch(() => {})
        .finally(() => (looking = undefined));
      await within(ms, 'The browser', looking).catch(() => {});
    },

    /** The session gets another holder. */
    forget() {
      holder++;
      seen = undefined;
    },
  };
}
