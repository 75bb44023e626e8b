import { anyText, integer, object, optional } from '../../lib/shape.ts';
import { isAttached, isEvaluated } from '../cdp/shapes.ts';
import type { LocalClient } from '../cdp/local-client.ts';

/**
 * The clipboard of a headless browser, from outside. CDP has no command for it, and `navigator.clipboard` needs permissions that the page
 * would see. So both directions use what a page's own Ctrl+C and Ctrl+V do, observed from an isolated world: the page's script cannot see
 * that world, nor change what it runs.
 *
 * Not available this way: text that a page writes itself with `navigator.clipboard.writeText` (a "Copy" button). It is in the browser's
 * clipboard, and Ctrl+V in the session pastes it, but it cannot be read from outside.
 */

interface Place {
  readonly sessionId: string;
  readonly contextId: number;
}

const isWorld = object({ executionContextId: integer(-(2 ** 31), 2 ** 31) });
const isNode = object({ node: object({ frameId: optional(anyText) }) });
/** Chromium itself allows no more frames on a page. */
const MOST_FRAMES = 1000;
const WORLD = 'corral-clipboard';
const CONTROL = 2;

/** Copies or cuts the selection, in the page and for the caller: the text that a paste would give. */
export async function copyFrom(client: LocalClient, sessionId: string, frameId: string, cut: boolean): Promise<string> {
  const copied = await atFocus(client, sessionId, frameId, async (place) => {
    await evaluate(client, place, `(${watchCopy.toString()})()`);
    await press(client, sessionId, cut ? 'x' : 'c', cut ? 'cut' : 'copy');
    return evaluate(client, place, 'globalThis.corralCopied?.()');
  });
  return typeof copied === 'string' ? copied : '';
}

/** Puts the text into the browser's clipboard, then presses Ctrl+V: the page sees a paste like any other. */
export async function pasteInto(client: LocalClient, sessionId: string, frameId: string, text: string): Promise<void> {
  const written = await atFocus(client, sessionId, frameId, (place) =>
    evaluate(client, place, `(${writeClipboard.toString()})(${JSON.stringify(text)})`),
  );
  if (written === true) await press(client, sessionId, 'v', 'paste');
  else await client.send('Input.insertText', { text }, sessionId);
}

/** Runs `work` in the frame with the focus, which may have a process, and so a target, of its own. */
async function atFocus<T>(
  client: LocalClient,
  pageSession: string,
  pageFrame: string,
  work: (place: Place) => Promise<T>,
): Promise<T> {
  let [sessionId, frameId] = [pageSession, pageFrame];
  const attached: string[] = [];
  try {
    for (let depth = 0; depth < MOST_FRAMES; depth++) {
      let contextId = await isolatedWorld(client, sessionId, frameId).catch(() => undefined);
      if (contextId === undefined) {
        const frame = { targetId: frameId, flatten: true };
        ({ sessionId } = await client.ask(isAttached, 'Target.attachToTarget', frame));
        attached.push(sessionId);
        contextId = await isolatedWorld(client, sessionId, frameId);
      }
      const place = { sessionId, contextId };
      const inner = await focusedFrame(client, place);
      if (inner === undefined) return await work(place);
      frameId = inner;
    }
    throw new Error('Frames are nested too deep.');
  } finally {
    for (const sessionId of attached) client.send('Target.detachFromTarget', { sessionId }).catch(() => {});
  }
}

async function isolatedWorld(client: LocalClient, sessionId: string, frameId: string): Promise<number> {
  const world = { frameId, worldName: WORLD };
  const made = await client.ask(isWorld, 'Page.createIsolatedWorld', world, sessionId);
  return made.executionContextId;
}

/** The child frame that has the focus, if any. */
async function focusedFrame(client: LocalClient, { sessionId, contextId }: Place): Promise<string | undefined> {
  const expression = `(${focusedFrameElement.toString()})()`;
  const answer = await client.ask(isEvaluated, 'Runtime.evaluate', { expression, contextId }, sessionId);
  const { objectId } = answer.result;
  if (typeof objectId !== 'string') return undefined;
  const { node } = await client.ask(isNode, 'DOM.describeNode', { objectId }, sessionId);
  return node.frameId;
}

async function evaluate(client: LocalClient, { sessionId, contextId }: Place, expression: string): Promise<unknown> {
  const options = { expression, contextId, returnByValue: true, userGesture: true };
  const { result } = await client.ask(isEvaluated, 'Runtime.evaluate', options, sessionId);
  return result['value'];
}

/** Presses a shortcut, with the editing command that a browser with a window would add to it. */
async function press(client: LocalClient, sessionId: string, key: string, command: string): Promise<void> {
  const code = `Key${key.toUpperCase()}`;
  const event = { key, code, windowsVirtualKeyCode: code.charCodeAt(3), modifiers: CONTROL };
  await client.send('Input.dispatchKeyEvent', { ...event, type: 'rawKeyDown', commands: [command] }, sessionId);
  await client.send('Input.dispatchKeyEvent', { ...event, type: 'keyUp' }, sessionId);
}

// The rest runs in the page, as text. `dom` exists for the compiler, which has no browser types here.

/* oxlint-disable typescript/no-explicit-any */

function focusedFrameElement(): unknown {
  const dom: any = globalThis;
  let element = dom.document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return /^i?frame$/i.test(element?.localName) ? element : undefined;
}

/** Defines a function that returns what was copied since: what the page put in, or else the selection. */
function watchCopy(): void {
  const dom: any = globalThis;
  const selected = (): string => {
    let element = dom.document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    if (/^(input|textarea)$/.test(element?.localName) && element.type !== 'password') {
      const { selectionStart: start, selectionEnd: end } = element; // null for inputs that have no text to select
      if (start !== null && start !== end) return element.value.slice(start, end);
    }
    return String(dom.getSelection() ?? '');
  };
  let text = selected();
  const listen = (event: any) => {
    if (event.defaultPrevented) text = event.clipboardData.getData('text/plain');
  };
  dom.addEventListener('copy', listen);
  dom.addEventListener('cut', listen);
  dom.corralCopied = () => {
    dom.removeEventListener('copy', listen);
    dom.removeEventListener('cut', listen);
    delete dom.corralCopied;
    return text;
  };
}

/** Copies a text that is not selected in the page. Needs no permission, and no https. */
function writeClipboard(text: string): boolean {
  const dom: any = globalThis;
  let done = false;
  const write = (event: any) => {
    event.clipboardData.setData('text/plain', text);
    event.preventDefault();
    event.stopImmediatePropagation();
    done = true;
  };
  dom.addEventListener('copy', write, { capture: true, once: true });
  dom.document.execCommand('copy');
  dom.removeEventListener('copy', write, { capture: true });
  return done;
}
