import { anyText, number, object } from '../../lib/shape.ts';
import { activePage, type ActivePage } from '../pages/active-page.ts';
import { smallPicture } from '../pages/small-picture.ts';
import type { Mux } from '../cdp/mux.ts';
import { loadingFor } from './target.ts';
import type { Watch } from './watch.ts';

const isPicture = object({ data: anyText });
const isSize = object({
  cssVisualViewport: object({ clientWidth: number(1, 16_384), clientHeight: number(1, 16_384) }),
});

/** The least time between two pictures. */
const APART_MS = 2000;
/** A change is given this long to show, so that one picture has several of them. */
const CALM_MS = 300;
/** How long a picture waits for pages that load. */
const LOADING_MS = 3000;
/** Without any sign of a change, a picture is still taken this often, and captured if it differs from the last. */
const PERIOD_MS = 10_000;
/** Larger pictures are scaled down, in characters of base64: an event may have a million bytes. */
const MOST_BASE64 = 972 * 1024;
/** How long a page may take to show a smaller picture. */
const FRAME_MS = 5000;

/** monitor_screenshot: pictures of the page in front, when something has changed. */
export function screenshots(watch: Watch, mux: Mux) {
  const { emit } = watch;
  let front: ActivePage | undefined;
  let timer: NodeJS.Timeout | undefined;
  let dueAt = Infinity;
  let takenAt = 0;
  let taking = false;
  /** Since when a picture waits for pages that load. */
  let heldSince: number | undefined;
  /** It became due while another was taken. */
  let again = false;
  let last = '';

  function plan(at: number): void {
    if (!front || at >= dueAt) return;
    dueAt = at;
    clearTimeout(timer);
    timer = setTimeout(() => void take(), Math.max(0, at - Date.now())).unref();
  }

  async function take(): Promise<void> {
    dueAt = Infinity;
    if (!front) return;
    if (taking) return void (again = true);
    if (isHeld()) return plan(Date.now() + CALM_MS);
    taking = true;
    takenAt = Date.now();
    try {
      const page = await front.find();
      const png = page && (await shoot(front, page.sessionId));
      takenAt = Date.now();
      if (png !== undefined && png !== last && watch.captures('screenshot')) {
        last = png;
        emit({ type: 'monitor_screenshot', from: 'Page.captureScreenshot', data: { png } });
      }
    } catch {
      // The page closed or hangs; the next picture is of another page, or of this one when it responds.
    } finally {
      taking = false;
      plan(again ? takenAt + APART_MS : Date.now() + PERIOD_MS);
      again = false;
    }
  }

  /** A picture of a page that loads takes processor time from the load, and shows half of the page. */
  function isHeld(): boolean {
    const held = [...watch.targets.all()].some((target) => loadingFor(target) > 0);
    const now = performance.now();
    if (held && now - (heldSince ??= now) < LOADING_MS) return true;
    heldSince = undefined;
    return false;
  }

  async function shoot({ client: hands }: ActivePage, sessionId: string): Promise<string | undefined> {
    const { data } = await hands.ask(
      isPicture,
      'Page.captureScreenshot',
      { format: 'png', optimizeForSpeed: true },
      sessionId,
    );
    if (data.length <= MOST_BASE64) return data;
    const { cssVisualViewport: size } = await hands.ask(isSize, 'Page.getLayoutMetrics', {}, sessionId);
    // The area shrinks with the bytes; noise does not compress better when scaled, hence the margin.
    for (let scale = 0.9 * Math.sqrt(MOST_BASE64 / data.length); scale > 0.05; scale /= 2) {
      const maxWidth = Math.max(1, Math.floor(size.clientWidth * scale));
      const maxHeight = Math.max(1, Math.floor(size.clientHeight * scale));
      const smaller = await smallPicture(hands, sessionId, { format: 'png', maxWidth, maxHeight }, FRAME_MS);
      if (smaller !== undefined && smaller.length <= MOST_BASE64) return smaller;
    }
    return undefined;
  }

  return {
    /** Something may look different. */
    nudge(): void {
      if (front) plan(Math.max(takenAt + APART_MS, Date.now() + CALM_MS));
    },

    start(): void {
      if (front) return;
      front = activePage(mux);
      last = '';
      plan(Math.max(takenAt + APART_MS, Date.now()));
    },

    stop(): void {
      clearTimeout(timer);
      dueAt = Infinity;
      heldSince = undefined;
      front?.close();
      front = undefined;
    },
  };
}
