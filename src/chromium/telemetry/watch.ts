import type { EventCategory, TelemetryCategory } from '../../lib/telemetry.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';
import type { Params, Method } from '../cdp/protocol.ts';
import { captchaEvents } from './captcha.ts';
import { consoleEvents } from './console.ts';
import { autoAttach, domainsFor, isObserved, type Domain } from './domains.ts';
import { interactionEvents } from './interaction.ts';
import { networkEvents } from './network.ts';
import { pageEvents } from './page.ts';
import { screenshots } from './screenshot.ts';
import {
  isAttachedTo,
  isDetachedFrom,
  isDialog,
  isFired,
  isFrameGone,
  isFrameTree,
  isNavigated,
  isNavigatedWithin,
  type FrameTree,
} from './shapes.ts';
import { isDocument, MOST_FRAMES, rootOf, type Target, type Tell } from './target.ts';
import type { Capture } from '../../lib/telemetry.ts';

/** What the parts of the collector share while they watch one browser. */
export interface Watch {
  readonly client: LocalClient;
  readonly targets: { get(sessionId: string | undefined): Target | undefined; all(): Iterable<Target> };
  readonly tell: Tell;
  /** The isolated world for the collector's scripts. */
  readonly world: string;
  captures(category: EventCategory): boolean;
}

export interface BrowserWatch {
  /**
   * Captures these categories from now on. Rejects if the browser does not answer; pages that do not answer are not waited for.
   */
  change(capture: Capture): Promise<void>;
  close(): void;
}

/** What Chromium keeps of responses for the collector, in the page's process. */
const bodyBuffers = {
  maxTotalBufferSize: 16 * 1024 * 1024,
  maxResourceBufferSize: 3 * 1024 * 1024,
  maxPostDataSize: 256 * 1024,
};
/** How long a change waits for pages to confirm it. A page that hangs takes it up when it goes on. */
const PAGES_MS = 1000;
/** More targets than a browser can run. */
const MOST_TARGETS = 5000;

/** Watches one browser, until it is closed. */
export function watchBrowser(mux: Mux, tell: Tell): BrowserWatch {
  const client = mux.attachLocal({ watching: true });
  let capture: Capture = new Set<TelemetryCategory>();
  let over = false;
  /** False while Chromium attaches the targets that were there before. */
  let started = false;
  const bySession = new Map<string, Target>();
  const enabled = new Map<Target, Set<Domain>>();

  const watch: Watch = {
    client,
    tell(told) {
      if (over) return;
      tell(told);
      if (told.category !== 'screenshot') pictures.nudge();
    },
    world: mux.hiddenWorld,
    captures: (category) => !over && capture.has(category as TelemetryCategory),
    targets: {
      get: (sessionId) => (sessionId === undefined ? undefined : bySession.get(sessionId)),
      all: () => bySession.values(),
    },
  };
  consoleEvents(watch);
  const network = networkEvents(watch);
  const page = pageEvents(watch);
  const interaction = interactionEvents(watch);
  const captcha = captchaEvents(watch);
  const pictures = screenshots(watch, mux);

  /** Commands to targets are not awaited one by one: Chromium keeps their order, and a target may hang or go at any time. */
  function order<M extends Method>(target: Target, method: M, params: Params<M>): Promise<unknown> {
    return client.send(method, ...([params, target.sessionId] as never)).catch(() => undefined);
  }

  // ---- targets

  client.on('Target.attachedToTarget', isAttachedTo, ({ sessionId, targetInfo, waitingForDebugger }, from) => {
    const parent = from === undefined ? undefined : bySession.get(from);
    const { targetId, type, title, url, openerId, parentFrameId } = targetInfo;
    const isKnown = [...bySession.values()].some((target) => target.targetId === targetId);
    const target: Target = {
      sessionId,
      targetId,
      type,
      title,
      url,
      parent,
      openerId,
      parentFrameId,
      fresh: waitingForDebugger || started,
      navSeq: 0,
      frames: new Map(isDocumentType(type) ? [[targetId, { url, loaderId: undefined, parentId: parentFrameId }]] : []),
      contexts: new Map(),
      consoleIsLive: waitingForDebugger,
      gone: false,
    };
    if (isKnown || bySession.size >= MOST_TARGETS) {
      if (waitingForDebugger) void order(target, 'Runtime.runIfWaitingForDebugger', {});
      return void client.send('Target.detachFromTarget', { sessionId }, from).catch(() => {});
    }
    bySession.set(sessionId, target);
    page.attached(target);
    pictures.nudge();
    if (type === 'iframe') captcha.framed({ id: targetId, url }, parent, parentFrameId);
    void equip(target);
    if (waitingForDebugger) void order(target, 'Runtime.runIfWaitingForDebugger', {});
  });

  client.on('Target.detachedFromTarget', isDetachedFrom, ({ sessionId }) => {
    const target = bySession.get(sessionId);
    if (!target) return;
    for (const child of bySession.values()) if (child.parent === target) leave(child);
    leave(target);
  });

  function leave(target: Target): void {
    target.gone = true;
    bySession.delete(target.sessionId);
    enabled.delete(target);
    network.gone(target);
    page.gone(target);
    interaction.gone(target);
    captcha.gone(target);
  }

  /** Enables what the categories need and disables the rest. Resolves when the target has confirmed it. */
  function equip(target: Target): Promise<unknown> {
    const wanted = domainsFor(capture, target.type);
    const had = enabled.get(target) ?? new Set<Domain>();
    enabled.set(target, wanted);
    const orders: Promise<unknown>[] = [];
    const give = <M extends Method>(method: M, params: Params<M>) => orders.push(order(target, method, params));
    const turn = (domain: Domain, on: () => void, off: () => void) => {
      if (wanted.has(domain) && !had.has(domain)) on();
      else if (!wanted.has(domain) && had.has(domain)) off();
    };
    turn(
      'page',
      () => {
        give('Page.enable', {});
        if (!target.fresh) orders.push(learnFrames(target).catch(() => undefined));
      },
      () => give('Page.disable', {}),
    );
    turn(
      'network',
      () => give('Network.enable', bodyBuffers),
      () => give('Network.disable', {}),
    );
    turn(
      'timeline',
      () => give('PerformanceTimeline.enable', { eventTypes: ['layout-shift', 'largest-contentful-paint'] }),
      () => give('PerformanceTimeline.enable', { eventTypes: [] }),
    );
    turn(
      'runtime',
      // Chromium repeats what the console said so far, before it answers.
      () =>
        orders.push(
          order(target, 'Runtime.enable', {}).then(() => {
            target.consoleIsLive = enabled.get(target)?.has('runtime') ?? false;
          }),
        ),
      () => {
        target.consoleIsLive = false;
        target.contexts.clear();
        give('Runtime.disable', {});
      },
    );
    turn(
      'script',
      () => orders.push(interaction.start(target)),
      () => orders.push(interaction.stop(target)),
    );
    const attach = autoAttach(capture, 'inside');
    if (wanted.has('children')) give('Target.setAutoAttach', attach);
    else if (had.has('children')) give('Target.setAutoAttach', { ...attach, autoAttach: false });
    return Promise.all(orders);
  }

  async function learnFrames(target: Target): Promise<void> {
    const { frameTree } = await client.ask(isFrameTree, 'Page.getFrameTree', {}, target.sessionId);
    const learn = ({ frame, childFrames }: FrameTree) => {
      // A navigation that was told meanwhile is newer.
      if (target.frames.get(frame.id)?.loaderId === undefined) {
        keepFrame(target, frame);
        if (frame.parentId !== undefined) captcha.framed(frame, target, frame.parentId);
      }
      for (const child of childFrames ?? []) learn(child);
    };
    learn(frameTree);
  }

  // ---- frames

  function keepFrame(target: Target, frame: { id: string; parentId?: string; loaderId: string; url: string }): void {
    if (target.frames.size >= MOST_FRAMES && !target.frames.has(frame.id)) return;
    const { url, loaderId, parentId } = frame;
    target.frames.set(frame.id, { url, loaderId, parentId });
    if (frame.id === target.targetId) target.url = url;
  }

  client.on('Page.frameNavigated', isNavigated, ({ frame }, sessionId) => {
    const target = bySession.get(sessionId ?? '');
    if (!target) return;
    if (frame.id === target.targetId && !target.parent) {
      target.navSeq += 1;
      target.frames.clear();
      keepFrame(target, frame);
      network.navigated(target, frame.loaderId);
      captcha.navigated(target, frame.url);
    } else {
      keepFrame(target, frame);
      const isRoot = frame.id === target.targetId;
      captcha.framed(frame, isRoot ? target.parent : target, isRoot ? target.parentFrameId : frame.parentId);
    }
    pictures.nudge();
    page.navigated(target, { frame });
  });
  client.on('Page.navigatedWithinDocument', isNavigatedWithin, ({ frameId, url }, sessionId) => {
    const target = bySession.get(sessionId ?? '');
    const frame = target?.frames.get(frameId);
    if (!frame) return;
    frame.url = url;
    if (frameId === target!.targetId) target!.url = url;
  });
  client.on('Page.frameDetached', isFrameGone, ({ frameId, reason }, sessionId) => {
    bySession.get(sessionId ?? '')?.frames.delete(frameId);
    if (reason === 'remove') captcha.frameGone(frameId); // not when it moves to another process
  });
  client.on('Page.loadEventFired', isFired, () => pictures.nudge());

  /**
   * A headless shell closes dialogs at once, unless a client has enabled Page: then the page waits for that client's answer. The
   * collector's Page is not to hold up a page, so it answers as the shell does when no other client would.
   */
  client.on('Page.javascriptDialogOpening', isDialog, ({ type, hasBrowserHandler }, sessionId) => {
    const target = bySession.get(sessionId ?? '');
    if (!target || hasBrowserHandler) return;
    const root = rootOf(target);
    const family = [...bySession.values()].filter((other) => rootOf(other) === root).map(({ targetId }) => targetId);
    if (mux.answersDialogs(family)) return;
    void order(target, 'Page.handleJavaScriptDialog', { accept: type === 'beforeunload' });
  });

  return {
    async change(next) {
      const before = capture;
      capture = next;
      if (before.has('network') && !next.has('network')) network.forget();
      if (before.has('captcha') && !next.has('captcha')) captcha.close();
      if (next.has('screenshot')) pictures.start();
      else pictures.stop();
      const known = [...bySession.values()];
      const pages = known.map(equip);
      // An answer that never comes ends this by the client's deadline.
      await client.send('Target.setAutoAttach', autoAttach(next, 'browser'));
      started = isObserved(next);
      const fresh = [...bySession.values()].filter((target) => !known.includes(target)).map(equip);
      await settledWithin(PAGES_MS, [...pages, ...fresh]);
    },

    close() {
      over = true;
      network.close();
      page.close();
      captcha.close();
      pictures.stop();
      client.close();
    },
  };
}

const isDocumentType = (type: string) => isDocument({ type } as Target);

function settledWithin(ms: number, work: Promise<unknown>[]): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
  return Promise.race([Promise.allSettled(work), late]).finally(() => clearTimeout(timer));
}
