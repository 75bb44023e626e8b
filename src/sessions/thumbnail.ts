import type { Engine } from '../chromium/engine.ts';
import { within } from '../lib/deadline.ts';

/** A picture is shown for so long before another is taken, however many look. */
const FRESH_MS = 3000;
/** How long the page may take to show itself, and the browser to answer at all. */
const PICTURE_MS = 2000;
const ANSWER_MS = 4000;

export interface Thumbnail {
  readonly jpeg: Buffer;
  readonly takenAt: Date;
}

/**
 * A small picture of a session, for walls of many. Reading it does not reset the idle timeout, as in front-page.ts: a sleeping session is
 * shown as it was last seen, at the latest before it fell asleep. What it costs is bounded by the time between two pictures.
 */
export function sessionThumbnail({
  engine,
  mayAsk,
  now = Date.now,
}: {
  engine: () => Promise<Pick<Engine, 'thumbnail'>>;
  mayAsk: () => boolean;
  now?: () => number;
}) {
  let seen: Thumbnail | undefined;
  let triedAt = -Infinity;
  let taking: Promise<void> | undefined;
  /** Counts the holders: the picture of one must not be shown to the next. */
  let holder = 0;

  async function take(): Promise<void> {
    const asked = holder;
    const jpeg = await (await engine()).thumbnail(PICTURE_MS);
    if (jpeg && asked === holder) seen = { jpeg, takenAt: new Date(now()) };
  }

  return {
    /** The newest picture; undefined when there is none yet. `ms` is how long it may take to come. */
    async look(ms = ANSWER_MS): Promise<Thumbnail | undefined> {
      const asked = holder;
      if (mayAsk() && !taking && now() - triedAt >= FRESH_MS) {
        triedAt = now();
        taking = take()
          .catch(() => {}) // the browser is being replaced, or the page hangs
          .finally(() => (taking = undefined));
      }
      // A session that fell asleep since answers when it is awake again.
      if (taking && mayAsk()) await within(ms, 'The browser', taking).catch(() => {});
      return asked === holder ? seen : undefined;
    },

    /** The session gets another holder. */
    forget() {
      holder++;
      [seen, triedAt] = [undefined, -Infinity];
    },
  };
}
