import { object } from '../../lib/shape.ts';
import type { EventData } from '../../lib/telemetry-events.ts';
import { urlOf } from '../../lib/urls.ts';
import { webFile } from '../../lib/web-files.ts';
import { isCaptchaLook, type CaptchaKind } from './captcha-look.ts';
import { cleanUrl, cutText } from './redact.ts';
import { rootOf, type Target } from './target.ts';
import type { Watch } from './watch.ts';

/** A widget in a page, from its appearance until its outcome is known. */
interface Widget {
  kind: CaptchaKind;
  page: Target;
  /** The target and the frame of the document that holds the widget, and with it the field for its answer. */
  holder: Target;
  holderFrameId: string;
  frameId: string;
  host: string;
  path: string;
  seenAt: number;
  /** When solving began. Widgets that begin by themselves begin when they appear; others when they get the focus. */
  begunAt: number | undefined;
  /** It was there before the capture began: an answer that it already has was not observed. */
  old: boolean;
  over: boolean;
  /** Whether solving begins without a person. */
  begins: boolean;
}

/** How long a widget that is being solved may take. */
const PATIENCE_MS = 120_000;
/** How long a widget that is not touched is looked at. */
const UNTOUCHED_MS = 30 * 60_000;
const MOST_WIDGETS = 50;
/** Characters of an address that are looked at. Those of widgets have 2000. An address of 1 MB takes several milliseconds. */
const LONGEST_ADDRESS = 8192;

const isSeen = object({ result: object({ value: isCaptchaLook }) });
const isContext = object({ executionContextId: (value): value is number => typeof value === 'number' });

type Result = EventData<'captcha_solve_result'>;

let script: string | undefined;

/** An expression for the isolated world of the document around a widget. */
function lookFor(kind: CaptchaKind): string {
  script ??= webFile('chromium/telemetry/web/captcha.js').toString();
  return `${script}.lookFor(${JSON.stringify(kind)})`;
}

/** Which widget an address of a frame belongs to; undefined: none. */
export function widgetAt(url: string): { kind: CaptchaKind; begins: boolean } | undefined {
  const address = urlOf(url.slice(0, LONGEST_ADDRESS));
  if (!address) return undefined;
  const { hostname, pathname } = address;
  const isAt = (domain: string) => hostname === domain || hostname.endsWith(`.${domain}`);
  if (isAt('hcaptcha.com') && pathname.includes('/captcha/')) {
    // A second frame holds the tasks. It is there from the start, but not shown.
    return address.hash.includes('frame=challenge') ? undefined : { kind: 'hcaptcha', begins: false };
  }
  if ((isAt('google.com') || isAt('recaptcha.net')) && /^\/recaptcha\/(api2|enterprise)\/anchor$/.test(pathname))
    return { kind: 'recaptcha_v2', begins: false };
  if (hostname === 'challenges.cloudflare.com' && pathname.includes('/turnstile/'))
    return { kind: 'turnstile', begins: true };
  if (isAt('geetest.com') && pathname.includes('captcha')) return { kind: 'geetest', begins: false };
  return undefined;
}

/**
 * captcha_solve_result, of widgets that are recognised by the address of their frame. Success is an answer in the widget's field, which
 * the widget itself puts there. Failures are messages of a widget to the page around it, or a widget that was not loaded.
 */
export function captchaEvents(
  watch: Pick<Watch, 'client' | 'emit' | 'world' | 'captures'>,
  { patienceMs = PATIENCE_MS } = {},
) {
  const { client, emit, world } = watch;
  const widgets = new Map<string, Widget>();

  /** The outcome of a widget that is over. */
  function conclude(widget: Widget, status: Result['status'], more: Partial<Result> = {}): void {
    if (widget.over) return;
    drop(widget);
    report(widget, status, more);
  }

  function report(widget: Widget, status: Result['status'], more: Partial<Result> = {}): void {
    emit({
      type: 'captcha_solve_result',
      target: widget.page,
      data: {
        captcha_type: widget.kind,
        status,
        duration_ms: Date.now() - (widget.begunAt ?? widget.seenAt),
        website_host: widget.host,
        website_path: widget.path,
        ...more,
      },
    });
  }

  function drop(widget: Widget): void {
    widget.over = true;
    if (widgets.get(widget.frameId) === widget) widgets.delete(widget.frameId);
  }

  /** Looks at the widget's field until its outcome is known. */
  async function follow(widget: Widget): Promise<void> {
    const { holder, holderFrameId: frameId, kind } = widget;
    const { sessionId } = holder;
    for (let looks = 0; !widget.over && watch.captures('captcha'); looks++) {
      const where = { frameId, worldName: world };
      const { executionContextId } = await client.ask(isContext, 'Page.createIsolatedWorld', where, sessionId);
      const look = {
        expression: lookFor(kind),
        contextId: executionContextId,
        awaitPromise: true,
        returnByValue: true,
      };
      const seen = (await client.ask(isSeen, 'Runtime.evaluate', look, sessionId)).result.value;
      const { solved, focused, version, outcome } = seen;
      if (widget.over) return;
      if (solved && looks === 0 && widget.old) return drop(widget);
      if (focused) widget.begunAt ??= Date.now();
      if (kind === 'recaptcha_v2' && version === 'v3') widget.kind = 'recaptcha_v3';
      if (outcome) {
        const { status, code } = outcome;
        report(widget, status, status === 'failure' ? { error_code: cutText(code, 64) } : {});
        // The widget stays, and can be solved again.
        widget.begunAt = widget.begins ? Date.now() : undefined;
        widget.seenAt = Date.now();
        continue;
      }
      if (solved) return conclude(widget, 'success');
      if (widget.begunAt !== undefined && Date.now() - widget.begunAt > patienceMs) return conclude(widget, 'timeout');
      if (Date.now() - widget.seenAt > UNTOUCHED_MS) return drop(widget);
    }
  }

  /** The widget was removed, and its outcome was not seen. */
  function lost(widget: Widget, nextUrl?: string): void {
    // A page may navigate within its site because the widget was solved: that is not known.
    const submits = nextUrl !== undefined && hostOf(nextUrl) === widget.host;
    if (widget.begunAt === undefined || submits) return drop(widget);
    conclude(widget, 'abandoned');
  }

  return {
    /** A frame shows another document. `holder` is the target of the document around it. */
    framed(frame: { id: string; url: string }, holder: Target | undefined, holderFrameId: string | undefined): void {
      const before = widgets.get(frame.id);
      if (frame.url.startsWith('chrome-error:')) {
        if (before) conclude(before, 'failure', { error_code: 'widget_not_loaded' });
        return;
      }
      const found = watch.captures('captcha') ? widgetAt(frame.url) : undefined;
      if (before && before.kind.slice(0, 9) !== found?.kind.slice(0, 9)) lost(before);
      if (!found || !holder || holderFrameId === undefined || widgets.has(frame.id) || widgets.size >= MOST_WIDGETS)
        return;
      const page = rootOf(holder);
      const now = Date.now();
      const widget: Widget = {
        kind: found.kind,
        page,
        holder,
        holderFrameId,
        frameId: frame.id,
        ...placeOf(page.url),
        seenAt: now,
        begunAt: found.begins ? now : undefined,
        begins: found.begins,
        old: !page.fresh && page.navSeq === 0,
        over: false,
      };
      widgets.set(frame.id, widget);
      // The document was unloaded, or the page hangs. Another event reports its end.
      follow(widget).catch(() => {});
    },

    /** The main frame of a page shows another document. */
    navigated(page: Target, url: string): void {
      for (const widget of widgets.values()) if (widget.page === page) lost(widget, url);
    },

    frameGone(frameId: string): void {
      const widget = widgets.get(frameId);
      if (widget) lost(widget);
    },

    gone(target: Target): void {
      for (const widget of widgets.values()) if (widget.page === target) lost(widget);
    },

    close(): void {
      for (const widget of widgets.values()) drop(widget);
    },
  };
}

function placeOf(url: string): { host: string; path: string } {
  const { hostname = '', pathname = '' } = urlOf(url.slice(0, LONGEST_ADDRESS)) ?? {};
  return { host: cutText(hostname, 256), path: cutText(cleanUrl(pathname), 1024) };
}

const hostOf = (url: string) => placeOf(url).host;
