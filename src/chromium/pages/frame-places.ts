import { anyText, integer, list, number, object, optional } from '../../lib/shape.ts';
import { isAttached, isEvaluated } from '../cdp/shapes.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { pageCall, pageFunction } from './page-script.ts';

/** A frame of a page, with an isolated world in it. The page's script can neither see that world nor change its scripts. */
interface Place {
  readonly sessionId: string;
  readonly contextId: number;
  /** Where the frame's content begins in the page, in CSS pixels. */
  readonly x: number;
  readonly y: number;
}

/** The page to look at, and the name of the isolated world. */
export interface LookedAt {
  readonly sessionId: string;
  readonly frameId: string;
  readonly world: string;
}

const isWorld = object({ executionContextId: integer(-(2 ** 31), 2 ** 31) });
const isNode = object({ node: object({ frameId: optional(anyText) }) });
const isCorner = list(number(-1e7, 1e7));
/** Chromium itself allows no more frames on a page. */
const MOST_FRAMES = 1000;

/** Runs `work` in the frame with the focus. */
export function atFocus<T>(client: LocalClient, page: LookedAt, work: (place: Place) => Promise<T>): Promise<T> {
  return descend(client, page, () => pageCall('focusedFrameElement'), work);
}

/** Runs `work` in the frame at a point of the page. */
export function atPoint<T>(
  client: LocalClient,
  page: LookedAt,
  { x, y }: { x: number; y: number },
  work: (place: Place) => Promise<T>,
): Promise<T> {
  const expression = (place: Place) => pageCall('frameElementAt', x - place.x, y - place.y);
  return descend(client, page, expression, work);
}

/** Goes from frame to frame, by an expression that answers with a frame's element. A frame may have a process, and so a target, of its own. */
async function descend<T>(
  client: LocalClient,
  page: LookedAt,
  inner: (place: Place) => string,
  work: (place: Place) => Promise<T>,
): Promise<T> {
  let { sessionId, frameId } = page;
  let corner = { x: 0, y: 0 };
  const attached: string[] = [];
  try {
    for (let depth = 0; depth < MOST_FRAMES; depth++) {
      let contextId = await isolatedWorld(client, sessionId, frameId, page.world).catch(() => undefined);
      if (contextId === undefined) {
        const frame = { targetId: frameId, flatten: true };
        ({ sessionId } = await client.ask(isAttached, 'Target.attachToTarget', frame));
        attached.push(sessionId);
        contextId = await isolatedWorld(client, sessionId, frameId, page.world);
      }
      const place = { sessionId, contextId, ...corner };
      const next = await frameOf(client, place, inner(place));
      if (next === undefined) return await work(place);
      ({ frameId, ...corner } = next);
    }
    throw new Error('Frames are nested too deep.');
  } finally {
    for (const sessionId of attached) client.send('Target.detachFromTarget', { sessionId }).catch(() => {});
  }
}

async function isolatedWorld(client: LocalClient, sessionId: string, frameId: string, name: string): Promise<number> {
  const world = { frameId, worldName: name };
  const made = await client.ask(isWorld, 'Page.createIsolatedWorld', world, sessionId);
  return made.executionContextId;
}

/** The frame of the element that the expression answers with, if any, and where its content begins. */
async function frameOf(client: LocalClient, { sessionId, contextId, x, y }: Place, expression: string) {
  const answer = await client.ask(isEvaluated, 'Runtime.evaluate', { expression, contextId }, sessionId);
  const { objectId } = answer.result;
  if (typeof objectId !== 'string') return undefined;
  const { node } = await client.ask(isNode, 'DOM.describeNode', { objectId }, sessionId);
  if (node.frameId === undefined) return undefined;
  const functionDeclaration = `function () { return ${pageFunction('cornerOf')}(this); }`;
  const call = { objectId, functionDeclaration, returnByValue: true };
  const { result } = await client.ask(isEvaluated, 'Runtime.callFunctionOn', call, sessionId);
  const [left = 0, top = 0] = isCorner(result['value']) ? result['value'] : [];
  return { frameId: node.frameId, x: x + left, y: y + top };
}

/** Evaluates an expression there, by value. */
export async function evaluateAt(
  client: LocalClient,
  { sessionId, contextId }: Place,
  expression: string,
): Promise<unknown> {
  const options = { expression, contextId, returnByValue: true, userGesture: true };
  const { result } = await client.ask(isEvaluated, 'Runtime.evaluate', options, sessionId);
  return result['value'];
}
