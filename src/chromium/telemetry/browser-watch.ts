import { finishedWithin } from '../../lib/deadline.ts';
import { needsBrowser, type Capture, type TelemetryCategory } from '../../lib/telemetry.ts';
import { turns } from '../../lib/turns.ts';
import type { Mux } from '../cdp/mux.ts';
import { captchaEvents } from './captcha.ts';
import { consoleEvents } from './console.ts';
import { autoAttach } from './domains.ts';
import { equipment, order } from './equip.ts';
import { followFrames } from './frames.ts';
import { interactionEvents } from './interaction.ts';
import { networkEvents } from './network.ts';
import { pageEvents } from './page.ts';
import { cleanUrl, cutText } from './redact.ts';
import { screenshots } from './screenshot.ts';
import { isNavigated } from '../cdp/frame-shapes.ts';
import { isAttachedTo } from '../cdp/shapes.ts';
import { isDetachedFrom, isFired } from './shapes.ts';
import { isDocument, MOST_DEPTH, rootOf, type Draft, type Target, type Emit } from './target.ts';
import type { Watch } from './watch.ts';

export interface BrowserWatch {
  /**
   * Captures these categories from now on. Rejects if the browser does not answer; pages that do not answer are not waited for.
   */
  change(capture: Capture): Promise<void>;
  close(): void;
}

/** How long a change waits for pages to confirm it. A page that hangs confirms the change when it runs again. */
const PAGES_MS = 1000;
/** More targets than a browser can run. */
const MOST_TARGETS = 5000;
const MOST_TITLE = 1024;

/** Watches one browser, until it is closed. */
export function watchBrowser(mux: Mux, { emit, draft }: { emit: Emit; draft: Draft }): BrowserWatch {
  const client = mux.attachLocal({ watching: true });
  let capture: Capture = new Set<TelemetryCategory>();
  let over = false;
  /** False while Chromium attaches the targets that were there before. */
  let isStarted = false;
  const bySession = new Map<string, Target>();

  const watch: Watch = {
    client,
    emit(event) {
      if (over) return;
      emit(event);
      if (event.type !== 'monitor_screenshot') pictures.nudge();
    },
    draft: (event) => (over ? () => {} : draft(event)),
    world: mux.hiddenWorld,
    captures: (category) => !over && capture.has(category as TelemetryCategory),
    targets: {
      get: (sessionId) => (sessionId === undefined ? undefined : bySession.get(sessionId)),
      all: () => bySession.values(),
    },
  };
  consoleEvents(watch);
  const network = networkEvents(watch, mux.proxy);
  const page = pageEvents(watch);
  const interaction = interactionEvents(watch);
  const captcha = captchaEvents(watch);
  const pictures = screenshots(watch, mux);

  const frames = followFrames({ client, mux, bySession, network, page, captcha });
  const { equip, gone } = equipment({ client, interaction, learnFrames: (target) => frames.learn(target) });
  client.on('Page.frameNavigated', isNavigated, () => pictures.nudge());
  client.on('Page.loadEventFired', isFired, () => pictures.nudge());

  // ---- targets

  client.on('Target.attachedToTarget', isAttachedTo, ({ sessionId, targetInfo, waitingForDebugger }, from) => {
    const parent = from === undefined ? undefined : bySession.get(from);
    const { targetId, type, title, openerId, parentFrameId } = targetInfo;
    const url = cleanUrl(targetInfo.url);
    const isKnown = [...bySession.values()].some((target) => target.targetId === targetId);
    const target: Target = {
      sessionId,
      targetId,
      type,
      title: cutText(title, MOST_TITLE),
      url,
      parent,
      root: parent && rootOf(parent),
      depth: parent ? parent.depth + 1 : 0,
      openerId,
      parentFrameId,
      fresh: waitingForDebugger || (isStarted && from === undefined),
      navSeq: 0,
      frames: new Map(isDocumentType(type) ? [[targetId, { url, loaderId: undefined, parentId: parentFrameId }]] : []),
      contexts: new Map(),
      loadingSince: undefined,
      consoleIsLive: waitingForDebugger,
      gone: false,
    };
    if (isKnown || bySession.size >= MOST_TARGETS || target.depth > MOST_DEPTH) {
      if (waitingForDebugger) void order(client, target, 'Runtime.runIfWaitingForDebugger');
      return void client.send('Target.detachFromTarget', { sessionId }, from).catch(() => {});
    }
    bySession.set(sessionId, target);
    page.attached(target);
    pictures.nudge();
    if (type === 'iframe') captcha.framed({ id: targetId, url: targetInfo.url }, parent, parentFrameId);
    void equip(target, capture);
    if (waitingForDebugger) void order(client, target, 'Runtime.runIfWaitingForDebugger');
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
    gone(target);
    network.gone(target);
    page.gone(target);
    interaction.gone(target);
    captcha.gone(target);
  }

  /** A browser may have thousands of targets, and each gets some commands, so other work has its turn in between. */
  async function equipAll(all: Iterable<Target>, next: Capture): Promise<Promise<unknown>[]> {
    const turn = turns();
    const equipped: Promise<unknown>[] = [];
    for (const target of all) {
      if (!target.gone) equipped.push(equip(target, next));
      const later = turn();
      if (later) await later;
    }
    return equipped;
  }

  return {
    async change(next) {
      const before = capture;
      capture = next;
      if (before.has('network') && !next.has('network')) network.forget();
      if (before.has('captcha') && !next.has('captcha')) captcha.close();
      if (next.has('screenshot')) pictures.start();
      else pictures.stop();
      const known = new Set(bySession.values());
      const pages = await equipAll(known, next);
      // An answer that never comes ends this by the client's deadline.
      await client.send('Target.setAutoAttach', autoAttach(next, 'browser'));
      isStarted = needsBrowser(next);
      const fresh = await equipAll(
        [...bySession.values()].filter((target) => !known.has(target)),
        next,
      );
      await finishedWithin(PAGES_MS, Promise.allSettled([...pages, ...fresh]));
    },

    close() {
      network.close(); // reports the responses that wait for their body
      over = true;
      page.close();
      captcha.close();
      pictures.stop();
      client.close();
    },
  };
}

const isDocumentType = (type: string) => isDocument({ type } as Target);
