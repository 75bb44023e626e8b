import { setTimeout as delay } from 'node:timers/promises';
import type { AttachedPage, PageCommands } from './attached-pages.ts';
import type { FrameWorld, PageFrames } from './frames.ts';
import type { FormsCalls } from './page-calls.ts';
import type { Referred } from './references.ts';
import { FormsError } from './types.ts';
import type { WorldCalls } from './world-calls.ts';

const MOVING_MS = 40;

export const sentences = {
  stale: 'The element is not in the page any more.',
  disabled: 'The element is disabled.',
  hidden: 'The element is hidden.',
  covered: 'Another element lies on top of it.',
};

interface Point {
  x: number;
  y: number;
}

export interface PointingDeps {
  commands: PageCommands;
  frames: PageFrames;
  calls: WorldCalls;
}

/** The mouse: finds where an element is on the page, and clicks there. */
export function pointing({ commands, frames, calls }: PointingDeps) {
  const { step, reach: reachMs } = commands.patience;

  /** Asks the script about an element. */
  const ask = <N extends 'aim' | 'focused' | 'focus' | 'checkedness'>({ frame, look, index }: Referred, name: N) =>
    calls.call(frame, step, name, ...([look, index] as Parameters<FormsCalls[N]>));

  /** A point in the viewport of the page, from one in the viewport of a frame. */
  async function onPage(frame: FrameWorld, point: Point): Promise<Point & { hit: boolean }> {
    let at = { ...point, hit: true };
    for (let inner = frame; inner.parent; inner = inner.parent) {
      const { objectId, parent } = await frames.ownerOf(inner, step);
      const shift = await calls.onFrame({ objectId, sessionId: parent.sessionId }, step, 'frameShift', at.x, at.y);
      at = { x: at.x + shift.x, y: at.y + shift.y, hit: at.hit && shift.hit };
    }
    return at;
  }

  async function aimAt(target: Referred): Promise<Point | keyof typeof sentences> {
    const { x, y, why } = await ask(target, 'aim');
    if (why !== undefined) return why;
    if (x === undefined || y === undefined) return 'hidden';
    const { hit, ...point } = await onPage(target.frame, { x, y });
    return hit ? point : 'covered';
  }

  /** Moves the mouse there until the element stays under it. */
  async function reach(page: AttachedPage, target: Referred): Promise<Point> {
    const until = performance.now() + reachMs;
    let last: Point | undefined;
    for (;;) {
      const at = await aimAt(target);
      if (typeof at === 'object') {
        if (last && Math.hypot(last.x - at.x, last.y - at.y) < 2) return at;
        await mouse(page, 'mouseMoved', at);
      } else if (at === 'stale' || performance.now() > until) {
        throw new FormsError(at === 'stale' ? 'stale' : 'unreachable', sentences[at]);
      }
      if (performance.now() > until) throw new FormsError('unreachable', 'The element does not stay in its place.');
      if (typeof at !== 'object' || last) await delay(MOVING_MS);
      last = typeof at === 'object' ? at : undefined;
    }
  }

  const mouse = (page: AttachedPage, type: 'mouseMoved' | 'mousePressed' | 'mouseReleased', at: Point) =>
    commands.send(step, page.sessionId, 'Input.dispatchMouseEvent', {
      type,
      ...at,
      button: type === 'mouseMoved' ? 'none' : 'left',
      buttons: type === 'mousePressed' ? 1 : 0,
      clickCount: type === 'mouseMoved' ? 0 : 1,
    });

  async function click(page: AttachedPage, target: Referred): Promise<void> {
    const at = await reach(page, target);
    // Sent together: between the two the page must not find time to put something else under the mouse.
    const sent = [mouse(page, 'mousePressed', at), mouse(page, 'mouseReleased', at)];
    const settled = await Promise.allSettled(sent);
    // A click that closes the page, or takes its frame away, is not answered.
    for (const result of settled)
      if (result.status === 'rejected' && !page.gone && !isGone(result.reason)) throw result.reason as Error;
  }

  return { ask, click };
}

/** The element or its page was removed, such as a page that closes itself. */
export const isGone = (error: unknown) =>
  error instanceof FormsError && (error.fault === 'page_gone' || error.fault === 'stale');
