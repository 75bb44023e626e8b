import { finishedWithin } from '../../lib/deadline.ts';
import { object, anyText } from '../../lib/shape.ts';
import { isAttached, isEvaluated, isTargetGone, isTargetNews } from '../cdp/shapes.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';

const isDetached = object({ sessionId: anyText });
/** The most pages that are checked for the one in front. */
const MOST_PAGES = 200;
/** How often attaching is retried because the page closed. */
const MOST_TRIES = 20;
/** The time for the pages to say whether they are in front. A page that hangs does not answer. */
const PATIENCE_MS = 300;
/** The time for one of them to say that it is, when none has: on a busy machine the page in front takes its time. */
const LONGEST_MS = 2000;

/** The page that a person in front of the browser would see, and a CDP session attached to it. */
export interface ActivePage {
  /** Undefined when there is no page. */
  find(): Promise<{ targetId: string; sessionId: string } | undefined>;
  readonly client: LocalClient;
  close(): void;
}

/**
 * In a full browser this is the tab in front. A headless shell has no front: every page is visible, and the newest one with content is
 * most likely the one in use. The live view shows the same one.
 */
export function activePage(mux: Mux): ActivePage {
  const client = mux.attachLocal();
  /** In order of creation. */
  const pages = new Map<string, { url: string }>();
  const sessions = new Map<string, string>();

  for (const event of ['Target.targetCreated', 'Target.targetInfoChanged'] as const) {
    client.on(event, isTargetNews, ({ targetInfo: { targetId, type, subtype, url } }) => {
      const known = pages.has(targetId) || pages.size < MOST_PAGES;
      if (type === 'page' && subtype === undefined && known) pages.set(targetId, { url: url.slice(0, 100) });
    });
  }
  client.on('Target.targetDestroyed', isTargetGone, ({ targetId }) => {
    pages.delete(targetId);
    sessions.delete(targetId);
  });
  client.on('Target.detachedFromTarget', isDetached, ({ sessionId }) => {
    for (const [targetId, known] of sessions) if (known === sessionId) sessions.delete(targetId);
  });
  let ready: Promise<unknown> | undefined;
  /** Retried after a failure: a browser that stalled may continue. */
  function discovered(): Promise<unknown> {
    ready ??= client.send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
    ready.catch(() => (ready = undefined));
    return ready;
  }
  discovered().catch(() => {}); // callers of `find` get the error

  async function attach(targetId: string): Promise<string> {
    const known = sessions.get(targetId);
    if (known !== undefined) return known;
    const { sessionId } = await client.ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
    sessions.set(targetId, sessionId);
    return sessionId;
  }

  async function expectVisible(targetId: string): Promise<void> {
    const question = { expression: 'document.visibilityState === "visible"', returnByValue: true };
    const { result } = await client.ask(isEvaluated, 'Runtime.evaluate', question, await attach(targetId));
    if (result['value'] !== true) throw new Error('This page is not in front.');
  }

  /** Those that have said in time that they are visible. */
  async function visibleOf(targetIds: readonly string[]): Promise<Set<string>> {
    const visible = new Set<string>();
    const asked = targetIds.map((id) => expectVisible(id).then(() => visible.add(id)));
    await soon(PATIENCE_MS, Promise.allSettled(asked));
    if (visible.size === 0) await soon(LONGEST_MS, Promise.any(asked));
    return visible;
  }

  return {
    client,

    async find() {
      await discovered();
      for (let tries = 1; ; tries++) {
        const all = [...pages.keys()].toReversed();
        const ranked = [
          ...all.filter((id) => !isBlank(pages.get(id)!.url)),
          ...all.filter((id) => isBlank(pages.get(id)!.url)),
        ];
        let chosen = ranked[0];
        if (ranked.length > 1) {
          const visible = await visibleOf(ranked);
          chosen = ranked.find((id) => visible.has(id)) ?? chosen;
        }
        if (chosen === undefined) return undefined;
        try {
          return { targetId: chosen, sessionId: await attach(chosen) };
        } catch (error) {
          if (pages.has(chosen) || tries >= MOST_TRIES) throw error;
        }
      }
    },

    close: () => client.close(),
  };
}

/** Resolves when the work is done, has failed, or takes longer than this. */
const soon = (ms: number, work: Promise<unknown>) =>
  finishedWithin(
    ms,
    work.catch(() => {}),
  );

const isBlank = (url: string) => url === '' || url === 'about:blank';
