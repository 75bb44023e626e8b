import { CdpError } from '../../chromium/cdp/local-client.ts';
import { errors } from '../../errors.ts';
import { urlOf } from '../../lib/urls.ts';
import type { Hold } from '../../sessions/holds.ts';
import { execute } from '../../sessions/playwright/service.ts';
import type { RateLimit } from '../../sessions/rate-limit.ts';
import type { SessionService } from '../../sessions/service.ts';
import * as acts from './acts.ts';
import { programOf, readOutcome } from './program.ts';
import { openPage, type ReadPage } from './page.ts';
import type { Common, FunctionBody, PdfBody, Query, ScrapeBody, ScreenshotBody } from './schema.ts';

/** The caller, the time limit, and whether the client is still connected. */
export interface Asking {
  projectId: string;
  keyId: string;
  query: Pick<Query, 'timeout' | 'stealth' | 'trackingId'>;
  hungUp: AbortSignal;
}

/** One that reads from a page. */
export type Reading = Asking & Pick<ReadPage, 'room'>;

type BrowserVersion = Hold['engine']['browser']['version'];

const DEFAULT_MS = 60_000;

export type BrowserlessService = ReturnType<typeof browserlessService>;

/** One session for each request, which ends with it. */
export function browserlessService({
  sessions,
  limit,
}: {
  sessions: Pick<SessionService, 'create' | 'hold' | 'remove'>;
  limit: RateLimit;
}) {
  let version: BrowserVersion | undefined;

  async function inSession<T>(
    { projectId, keyId, query, hungUp }: Asking,
    work: (held: Hold, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (limit) await limit.take();
    const { timeout = DEFAULT_MS, stealth, trackingId } = query;
    const request = {
      headless: true,
      ...(stealth === undefined ? {} : { stealth }),
      ...(trackingId === undefined ? {} : { tags: { tracking_id: trackingId } }),
    };
    const late = AbortSignal.timeout(timeout);
    const signal = AbortSignal.any([hungUp, late]);
    const { session_id: id } = await sessions.create(projectId, keyId, request, signal).catch((error: Error) => {
      throw whyOver() ?? error;
    });
    function whyOver() {
      if (hungUp.aborted) return hungUp.reason as Error;
      return late.aborted ? errors.page_timed_out({ what: 'The request', ms: timeout }) : undefined;
    }
    try {
      const held = await sessions.hold(id);
      try {
        return await work(held, signal);
      } finally {
        held.release();
      }
    } catch (error) {
      if (error instanceof CdpError) throw whyOver() ?? errors.page_not_loaded({ detail: error.message.slice(0, 300) });
      throw whyOver() ?? error;
    } finally {
      await sessions.remove(projectId, id).catch(() => {}); // it has ended already
    }
  }

  const onPage = <T>(asking: Reading, body: Common, work: (page: ReadPage) => Promise<T>): Promise<T> => {
    refuseSource(body);
    return inSession(asking, async ({ engine }, signal) => {
      const page = await openPage(engine.mux, signal);
      try {
        return await work({ ...page, room: asking.room });
      } finally {
        page.close();
      }
    });
  };

  return {
    onPage,
    content: (asking: Reading, body: Common) => onPage(asking, body, (page) => acts.content(page, body)),
    screenshot: (asking: Reading, body: ScreenshotBody) => onPage(asking, body, (page) => acts.screenshot(page, body)),
    pdf: (asking: Reading, body: PdfBody) => onPage(asking, body, (page) => acts.pdf(page, body)),
    scrape: (asking: Reading, body: ScrapeBody) => onPage(asking, body, (page) => acts.scrape(page, body)),

    /** Runs the code beside the browser, inside the session. */
    run: (asking: Asking, body: FunctionBody) =>
      inSession(asking, async (held, signal) => {
        const timeout_sec = Math.ceil((asking.query.timeout ?? DEFAULT_MS) / 1000);
        return execute(held, { code: programOf(body), timeout_sec }, signal, readOutcome);
      }),

    /** The version of the browsers, read from the first browser that answers. It does not change while the service runs. */
    async version(asking: Asking): Promise<BrowserVersion> {
      return (version ??= await inSession(asking, async ({ engine }) => engine.browser.version));
    },
  };
}

function refuseSource({ url, html }: Common): void {
  if ((url === undefined) === (html === undefined))
    throw errors.invalid_input({ detail: 'Send url or html, and not both.' });
  if (url !== undefined && !urlOf(url))
    throw errors.invalid_input({ detail: 'url is not an address; it begins with https:// or http://.' });
}
