import type { LocalClient } from './local-client.ts';
import type { Mux } from './mux.ts';

interface TargetInfo {
  targetId: string;
  type: string;
  subtype?: string;
  url: string;
}

/** For a page to say whether it is in front. One that hangs does not say. */
const PATIENCE_MS = 300;

/** The page that somebody in front of the browser would look at, and a session with it. */
export interface ActivePage {
  /** Undefined when there is no page at all. */
  find(): Promise<{ targetId: string; sessionId: string } | undefined>;
  readonly client: LocalClient;
  close(): void;
}

/**
 * In a full browser that is the tab in front. A headless shell has no front: every page is visible, and the newest one with
 * something in it is most likely where work goes on, which is also what the live view shows.
 */
export function activePage(mux: Mux): ActivePage {
  const client = mux.attachLocal();
  /** In the order they came. */
  const pages = new Map<string, { url: string }>();
  const sessions = new Map<string, string>();

  const news = ({ targetInfo }: Record<string, unknown>) => {
    const { targetId, type, subtype, url } = targetInfo as TargetInfo;
    if (type === 'page' && subtype === undefined) pages.set(targetId, { url });
  };
  client.on('Target.targetCreated', news);
  client.on('Target.targetInfoChanged', news);
  client.on('Target.targetDestroyed', ({ targetId }) => {
    pages.delete(targetId as string);
    sessions.delete(targetId as string);
  });
  client.on('Target.detachedFromTarget', ({ sessionId }) => {
    for (const [targetId, known] of sessions) if (known === sessionId) sessions.delete(targetId);
  });
  let ready: Promise<unknown> | undefined;
  /** Asked again after a failure: a browser that stood still may go on. */
  function discovered(): Promise<unknown> {
    ready ??= client.send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] });
    ready.catch(() => (ready = undefined));
    return ready;
  }
  discovered().catch(() => {}); // whoever asks for the page hears of it

  async function attach(targetId: string): Promise<string> {
    const known = sessions.get(targetId);
    if (known !== undefined) return known;
    const attaching = client.send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true });
    const { sessionId } = await attaching;
    sessions.set(targetId, sessionId);
    return sessionId;
  }

  async function isVisible(targetId: string): Promise<boolean> {
    const asked = attach(targetId).then((sessionId) =>
      client.send<{ result: { value?: unknown } }>(
        'Runtime.evaluate',
        { expression: 'document.visibilityState === "visible"', returnByValue: true },
        sessionId,
      ),
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, PATIENCE_MS, undefined)));
    const answer = await Promise.race([asked.catch(() => undefined), late]);
    clearTimeout(timer);
    return answer?.result.value === true;
  }

  return {
    client,

    async find() {
      await discovered();
      for (;;) {
        const all = [...pages.keys()].toReversed();
        const ranked = [
          ...all.filter((id) => !isBlank(pages.get(id)!.url)),
          ...all.filter((id) => isBlank(pages.get(id)!.url)),
        ];
        let chosen = ranked[0];
        if (ranked.length > 1) {
          const visible = await Promise.all(ranked.map(isVisible));
          chosen = ranked.find((_, i) => visible[i]) ?? chosen;
        }
        if (chosen === undefined) return undefined;
        try {
          return { targetId: chosen, sessionId: await attach(chosen) };
        } catch (error) {
          if (pages.has(chosen)) throw error;
        }
      }
    },

    close: () => client.close(),
  };
}

const isBlank = (url: string) => url === '' || url === 'about:blank';
