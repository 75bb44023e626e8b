import type { LocalClient } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';
import type { captchaEvents } from './captcha.ts';
import { order } from './equip.ts';
import type { networkEvents } from './network.ts';
import type { pageEvents } from './page.ts';
import { cleanUrl } from './redact.ts';
import { isFrameTree, isNavigated, type FrameTree } from '../cdp/frame-shapes.ts';
import { isDialog, isFrameGone, isNavigatedWithin, isOfFrame, isStarting } from './shapes.ts';
import { MOST_FRAMES, rootOf, type Target } from './target.ts';

interface FrameDeps {
  client: LocalClient;
  mux: Mux;
  bySession: ReadonlyMap<string, Target>;
  network: ReturnType<typeof networkEvents>;
  page: ReturnType<typeof pageEvents>;
  captcha: ReturnType<typeof captchaEvents>;
}

/** Keeps the frames of each target up to date, and passes their news on to the parts that need them. */
export function followFrames({ client, mux, bySession, network, page, captcha }: FrameDeps) {
  function keepFrame(target: Target, frame: { id: string; parentId?: string; loaderId: string; url: string }): void {
    if (target.frames.size >= MOST_FRAMES && !target.frames.has(frame.id)) return;
    const { loaderId, parentId } = frame;
    const url = cleanUrl(frame.url);
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
    page.navigated(target, { frame });
  });
  /** The page itself, if the frame is its main frame. */
  const pageOf = (sessionId: string | undefined, frameId: string) => {
    const target = bySession.get(sessionId ?? '');
    return target?.targetId === frameId && !target.parent ? target : undefined;
  };
  client.on('Page.frameStartedNavigating', isStarting, ({ frameId, navigationType }, sessionId) => {
    const page = pageOf(sessionId, frameId);
    if (page && !/sameDocument$/i.test(navigationType)) network.leaving(page);
  });
  client.on('Page.frameStartedLoading', isOfFrame, ({ frameId }, sessionId) => {
    const page = pageOf(sessionId, frameId);
    if (page) page.loadingSince = performance.now();
  });
  client.on('Page.frameStoppedLoading', isOfFrame, ({ frameId }, sessionId) => {
    const page = pageOf(sessionId, frameId);
    if (!page) return;
    page.loadingSince = undefined;
    network.loaded(page);
  });
  client.on('Page.navigatedWithinDocument', isNavigatedWithin, ({ frameId, url }, sessionId) => {
    const target = bySession.get(sessionId ?? '');
    const frame = target?.frames.get(frameId);
    if (!frame) return;
    frame.url = cleanUrl(url);
    if (frameId === target!.targetId) target!.url = frame.url;
  });
  client.on('Page.frameDetached', isFrameGone, ({ frameId, reason }, sessionId) => {
    bySession.get(sessionId ?? '')?.frames.delete(frameId);
    if (reason === 'remove') captcha.frameGone(frameId); // not when it moves to another process
  });

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
    void order(client, target, 'Page.handleJavaScriptDialog', { accept: type === 'beforeunload' });
  });

  return {
    /** Asks a target that was there before for its frames. */
    async learn(target: Target): Promise<void> {
      const { frameTree } = await client.ask(isFrameTree, 'Page.getFrameTree', {}, target.sessionId);
      const learn = ({ frame, childFrames }: FrameTree) => {
        // A navigation reported since then is newer.
        if (target.frames.get(frame.id)?.loaderId === undefined) {
          keepFrame(target, frame);
          if (frame.parentId !== undefined) captcha.framed(frame, target, frame.parentId);
        }
        for (const child of childFrames ?? []) learn(child);
      };
      learn(frameTree);
    },
  };
}
