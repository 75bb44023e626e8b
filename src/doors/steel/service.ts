import { ServiceError } from '../../errors.ts';
import { targetsOf } from '../../sessions/browser/targets.ts';
import type { Hold } from '../../sessions/holds.ts';
import type { SessionService } from '../../sessions/service.ts';
import type { Ending } from '../../sessions/state.ts';
import type { BrowserlessService, Reading } from '../browserless/service.ts';
import { asSteel } from './answer.ts';
import { readContext } from './context.ts';
import { sessionCreating, type Who } from './new-session.ts';
import { refuseOfAction } from './options.ts';
import type { ListQuery, PdfBody, ScrapeBody, ScreenshotBody } from './schema.ts';
import { asDataUrl, pageOf, scrape } from './scrape.ts';

export type SteelService = ReturnType<typeof steelService>;

const PAGE = 100;

/** Who asks for a page, and what counts the answer. */
type OnPage = Who & Pick<Reading, 'room'>;

/** Sessions and single pages in the interface of the other service. It stores no data of its own. */
export function steelService({
  sessions,
  stop,
  pages,
  ...rest
}: Omit<Parameters<typeof sessionCreating>[0], 'sessions'> & {
  sessions: Pick<SessionService, 'create' | 'get' | 'list' | 'idOf' | 'hold' | 'remove' | 'stop'>;
  /** Ends a session on whichever node it is. Never rejects. */
  stop: (id: string, reason: Ending) => Promise<void>;
  pages: Pick<BrowserlessService, 'onPage' | 'screenshot' | 'pdf'>;
}) {
  async function held<T>(projectId: string, idOrName: string, work: (held: Hold) => Promise<T>): Promise<T> {
    const id = await sessions.idOf(projectId, idOrName, false);
    const hold = await sessions.hold(id);
    try {
      return await work(hold);
    } finally {
      hold.release();
    }
  }

  return {
    create: sessionCreating({ ...rest, sessions }),

    async list({ projectId, keyId }: Who, { cursorId, limit, status }: ListQuery) {
      if (cursorId !== undefined) await sessions.idOf(projectId, cursorId, true);
      const { rows, cut } = await sessions.list(projectId, keyId, {
        status: status === undefined ? 'all' : status === 'live' ? 'active' : 'deleted',
        include_deleted: false,
        limit,
        offset: 0,
        ...(cursorId === undefined ? {} : { before: cursorId }),
        ...(status === undefined || status === 'live' ? {} : { failed: status === 'failed' }),
      });
      const page = rows.slice(0, limit).map((session) => asSteel(session));
      return { sessions: page, nextCursor: cut || rows.length > limit ? (page.at(-1)?.id ?? null) : null };
    },

    get: async ({ projectId, keyId }: Who, id: string) => asSteel(await sessions.get(projectId, keyId, id, true)),

    /** Answers the same for a session that has ended: clients send it again when the answer was lost. */
    async release({ projectId }: Who, idOrName: string) {
      const id = await sessions.idOf(projectId, idOrName, true);
      await sessions.remove(projectId, id).catch((error: Error) => {
        if (!(error instanceof ServiceError && error.code === 'session_not_found')) throw error;
      });
      return { success: true, message: 'The session is released.' };
    },

    async releaseAll({ projectId, keyId }: Who) {
      const active: string[] = [];
      for (let before: string | undefined; ; before = active.at(-1)) {
        const { rows, cut } = await sessions.list(projectId, keyId, {
          status: 'active',
          include_deleted: false,
          limit: PAGE,
          offset: 0,
          ...(before === undefined ? {} : { before }),
        });
        active.push(...rows.slice(0, PAGE).map(({ session_id }) => session_id));
        if (!cut && rows.length <= PAGE) break;
      }
      await Promise.all(active.map((id) => stop(id, 'deleted')));
      return { success: true, message: `Released sessions: ${active.length}.` };
    },

    context: ({ projectId }: Who, id: string) => held(projectId, id, ({ engine }) => readContext(engine.mux)),

    async liveDetails({ projectId, keyId }: Who, idOrName: string) {
      const { sessionViewerUrl, websocketUrl } = asSteel(await sessions.get(projectId, keyId, idOrName, false));
      const viewer = { sessionViewerUrl, sessionViewerFullscreenUrl: sessionViewerUrl };
      const targets = await held(projectId, idOrName, ({ engine }) => targetsOf(engine));
      const shown = targets
        .filter(({ type }) => type === 'page')
        .map(({ targetId, url, title }) => ({ id: targetId, url, title, favicon: null, ...viewer }));
      return { ...viewer, wsUrl: websocketUrl, pages: shown };
    },

    async scrape(caller: OnPage, body: ScrapeBody) {
      refuseOfAction(body);
      return pages.onPage({ ...caller, query: {} }, { url: body.url }, (page) => scrape(page, body));
    },

    async screenshot(caller: OnPage, body: ScreenshotBody) {
      refuseOfAction(body);
      const options = { fullPage: body.fullPage ?? false };
      const { data, type } = await pages.screenshot({ ...caller, query: {} }, { ...pageOf(body), options });
      return asDataUrl(type, data);
    },

    async pdf(caller: OnPage, body: PdfBody) {
      refuseOfAction(body);
      return asDataUrl('application/pdf', await pages.pdf({ ...caller, query: {} }, pageOf(body)));
    },
  };
}
