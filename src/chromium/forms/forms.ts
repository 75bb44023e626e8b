import { within } from '../../lib/deadline.ts';
import { urlOf } from '../../lib/urls.ts';
import type { Mux } from '../cdp/mux.ts';
import { actor } from './act.ts';
import { attachedPages, pageCommands, type AttachedPage } from './attached-pages.ts';
import { basicAuth } from './basic-auth.ts';
import { usual, type Patience } from './bounds.ts';
import { fingerprints } from './fingerprint.ts';
import { pageFrames } from './frames.ts';
import { pagePasskeys } from './passkeys.ts';
import { references } from './references.ts';
import { forgetting } from './forgetting.ts';
import { newPages } from './new-pages.ts';
import { settle } from './settle.ts';
import { followTraffic, navigation } from './navigation.ts';
import { takeSnapshot } from './snapshot.ts';
import { FormsError, type Forms } from './types.ts';
import { worldCalls } from './world-calls.ts';

const BROWSER_MS = 15_000;
const MOST_SELECTORS = 20;

/** Opens the forms of a browser, for the service itself: other clients do not see that they are there. */
export function openForms(mux: Mux, patience: Patience = usual): Forms {
  const client = mux.attachLocal({ watching: true });
  const pages = attachedPages(client);
  const commands = pageCommands(client, patience);
  const frames = pageFrames(commands, mux.hiddenWorld);
  const calls = worldCalls(commands);
  const refs = references();
  const basic = basicAuth(client, pages);
  const passkeys = pagePasskeys(client, pages, commands);
  const state = fingerprints(commands, frames, calls);
  const tabs = newPages(client);
  const forget = forgetting(commands);
  followTraffic(client, pages);
  const { goTo, again, toFront } = navigation(client, commands);
  const act = actor({ commands, frames, calls, references: refs });

  async function use(pageId: string): Promise<AttachedPage> {
    await ready();
    return pages.get(pageId);
  }

  /** A frame that goes takes its session with it, but the page is still there. */
  async function on<T>(pageId: string, work: (page: AttachedPage) => Promise<T>): Promise<T> {
    const page = await use(pageId);
    return work(page).catch((error: unknown) => {
      const isFrames = error instanceof FormsError && error.fault === 'page_gone' && !page.gone;
      if (!isFrames || client.closeCode !== undefined) throw error;
      throw new FormsError('stale', 'The page has changed since it was read.');
    });
  }

  async function ready(): Promise<void> {
    await within(BROWSER_MS, 'The browser', pages.ready()).catch(() => {
      throw new FormsError(client.closeCode === undefined ? 'frozen' : 'page_gone', 'The browser does not answer.');
    });
  }

  async function find(page: AttachedPage, selectors: readonly string[]): Promise<string | undefined> {
    const bounded = selectors.slice(0, MOST_SELECTORS).map((selector) => selector.slice(0, 1000));
    const worlds = await frames.worlds(page);
    const look = refs.nextLook();
    const found = await Promise.all(
      worlds.map(async (frame) => ({
        frame,
        counts: await calls
          .call(frame, frame.parent ? patience.frame : patience.main, 'find', look, bounded)
          .catch(() => []),
      })),
    );
    for (const place of bounded.keys()) {
      const [only, another] = found.filter(({ counts }) => (counts[place] ?? 0) > 0);
      if (only && !another && only.counts[place] === 1) return refs.add(look, only.frame, place + 1)[place];
    }
    return undefined;
  }

  async function openBlank(): Promise<string> {
    await ready();
    return tabs.open();
  }

  async function close(pageId: string): Promise<void> {
    await ready();
    const { gone } = pages.all().find((page) => page.pageId === pageId) ?? { gone: true };
    await tabs.close(pageId, gone);
  }

  return {
    async pages() {
      await ready();
      return pages.all().map(infoOf);
    },

    async open(url) {
      checkAddress(url);
      const pageId = await openBlank();
      await goTo(await use(pageId), url);
      return pageId;
    },

    async openStranger(url) {
      checkAddress(url);
      await ready();
      const pageId = await tabs.openAlone();
      await goTo(await use(pageId), url);
      return pageId;
    },

    close,

    forget: (pageId, origins, isTheirs) => on(pageId, (page) => forget(page, origins, isTheirs)),

    async navigate(pageId, url) {
      checkAddress(url);
      return goTo(await use(pageId), url);
    },

    reload: async (pageId) => again(await use(pageId)),

    snapshot: (pageId) =>
      on(pageId, (page) => takeSnapshot(page, { frames, calls, references: refs, challengeOf: basic.challengeOf })),

    act: (pageId, action) =>
      on(pageId, async (page) => {
        await toFront(page);
        await act(page, action);
      }),

    settled: (pageId, options) => on(pageId, (page) => settle(page, options, { frames, calls })),

    state: (pageId) => on(pageId, state),

    async stored(origin) {
      checkAddress(origin);
      const pageId = await openBlank();
      try {
        const page = await use(pageId);
        const off = { value: true };
        await commands.send(patience.step, page.sessionId, 'Emulation.setScriptExecutionDisabled', off);
        await goTo(page, new URL('/robots.txt', origin).href); // every site answers, if only that it has none
        return await on(pageId, state);
      } finally {
        await close(pageId);
      }
    },

    async basicAuth(pageId, answer) {
      const page = await use(pageId);
      return basic.answer(page, answer, () => again(page));
    },

    passkeys: {
      async enable(pageId) {
        await ready();
        return passkeys.enable(pageId);
      },
      exported: () => passkeys.exported(),
      async add(pageId, those, allow) {
        await ready();
        return passkeys.add(pageId, those, allow);
      },
    },

    find: (pageId, selectors) => on(pageId, (page) => find(page, selectors)),

    dispose: () => client.close(),
  };
}

const infoOf = ({ pageId, url, title, openerId }: AttachedPage) => ({
  pageId,
  url,
  title,
  ...(openerId !== undefined && { opener: openerId }),
});

function checkAddress(url: string): void {
  if (!/^https?:$/.test(urlOf(url)?.protocol ?? ''))
    throw new FormsError('unfit', 'The address must begin with http:// or https://.');
}
