import type { Arguments, Method, Params } from '../cdp/protocol.ts';
import { copyFrom, pasteInto } from './page-clipboard.ts';
import type { InputMessage, ViewerMessage } from './viewer-messages.ts';
import type { Shown, Viewer } from './viewer.ts';

/** A page that does not answer gets no more movements, and later no input at all, until it does. */
const MAX_UNANSWERED_MOVES = 10;
const MAX_UNANSWERED = 300;
/** The deadline for the page's answer about its clipboard. */
const CLIPBOARD_MS = 3_000;

/** Sends the viewer's mouse, keyboard and clipboard input to the page, in order. */
export function viewerInput(viewer: Viewer): (tab: Shown, message: InputMessage) => void {
  return (tab, message) => {
    if (tab.backlog.length === 0 && !waits(tab, message)) input(tab, message);
    else if (tab.backlog.length < MAX_UNANSWERED) tab.backlog.push(message);
  };

  /**
   * Chromium determines the target of a mouse button asynchronously, so a key that follows at once would reach the element that had the
   * focus before. And what is typed after a paste must not overtake it.
   */
  function waits(tab: Shown, { type }: InputMessage): boolean {
    return tab.clipboardWork > 0 || (tab.presses > 0 && type !== 'mouse' && type !== 'wheel');
  }

  function workOff(tab: Shown): void {
    if (viewer.shown !== tab || viewer.over) return;
    for (let next = tab.backlog[0]; next && !waits(tab, next); next = tab.backlog[0]) {
      tab.backlog.shift();
      input(tab, next);
    }
  }

  function input(tab: Shown, message: InputMessage): void {
    switch (message.type) {
      case 'mouse': {
        const type = ({ move: 'mouseMoved', down: 'mousePressed', up: 'mouseReleased' } as const)[message.event];
        const { x, y, button, buttons, clickCount, modifiers } = message;
        const event = { type, x, y, button, buttons, clickCount, modifiers };
        return void (message.event === 'move' ? move(tab, event) : press(tab, event));
      }
      case 'wheel': {
        const { x, y, deltaX, deltaY, modifiers } = message;
        return void move(tab, { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers });
      }
      case 'key':
        return void dispatch(tab, MAX_UNANSWERED, 'Input.dispatchKeyEvent', keyEvent(message));
      case 'text':
        return void dispatch(tab, MAX_UNANSWERED, 'Input.insertText', { text: message.text });
      case 'compose': {
        const end = message.text.length;
        const composition = { text: message.text, selectionStart: end, selectionEnd: end };
        return void dispatch(tab, MAX_UNANSWERED, 'Input.imeSetComposition', composition);
      }
      case 'paste':
        return void withClipboard(tab, (sessionId) => pasteInto(viewer.client, sessionId, tab.id, message.text));
      case 'copy':
        return void withClipboard(tab, async (sessionId) => {
          const text = await copyFrom(viewer.client, sessionId, tab.id, message.cut);
          if (text !== '') viewer.tell({ type: 'clipboard', text });
        });
    }
  }

  function move(tab: Shown, event: Params<'Input.dispatchMouseEvent'>): Promise<void> {
    return dispatch(tab, MAX_UNANSWERED_MOVES, 'Input.dispatchMouseEvent', event);
  }

  async function press(tab: Shown, event: Params<'Input.dispatchMouseEvent'>): Promise<void> {
    tab.presses += 1;
    await dispatch(tab, MAX_UNANSWERED, 'Input.dispatchMouseEvent', event);
    tab.presses -= 1;
    workOff(tab);
  }

  async function dispatch<M extends Method>(
    tab: Shown,
    most: number,
    method: M,
    ...args: Arguments<M, []>
  ): Promise<void> {
    if (tab.unanswered >= most) return;
    tab.unanswered += 1;
    await viewer.send(tab, method, ...args);
    tab.unanswered -= 1;
  }

  async function withClipboard(tab: Shown, work: (sessionId: string) => Promise<void>): Promise<void> {
    if (tab.sessionId === undefined) return;
    tab.clipboardWork += 1;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = viewer.later(CLIPBOARD_MS, resolve)));
    const working = work(tab.sessionId).catch((error: unknown) =>
      viewer.log.debug({ error }, 'screencast.clipboard_failed'),
    );
    await Promise.race([working, late]);
    if (timer) viewer.forget(timer);
    tab.clipboardWork -= 1;
    workOff(tab);
  }
}

function keyEvent(message: ViewerMessage & { type: 'key' }): Params<'Input.dispatchKeyEvent'> {
  const { event, text, keyCode, location, repeat, key, code, modifiers } = message;
  const common = { key, code, modifiers, windowsVirtualKeyCode: keyCode, location, isKeypad: location === 3 };
  if (event === 'up') return { ...common, type: 'keyUp' };
  if (text === '') return { ...common, type: 'rawKeyDown', autoRepeat: repeat };
  return { ...common, type: 'keyDown', autoRepeat: repeat, text, unmodifiedText: text };
}
