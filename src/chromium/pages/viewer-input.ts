import type { Arguments, Method, Params } from '../cdp/protocol.ts';
import type { LookedAt } from './frame-places.ts';
import { copyFrom, pasteInto } from './page-clipboard.ts';
import { clickForMenu } from './page-menu.ts';
import type { InputMessage, ViewerMessageOf } from './viewer-protocol.ts';
import type { Shown, Viewer } from './viewer.ts';

/** A page that does not answer gets no more movements, and later no input, until it does. */
const MAX_UNANSWERED_MOVES = 10;
const MAX_UNANSWERED = 300;
/** Of the texts that wait for a page that does not answer. */
const MAX_WAITING_TEXT = 2 * 1024 * 1024;
/** The deadline for the page's answer about its clipboard, its popup or its menu. */
const PAGE_WORK_MS = 3_000;

/** Sends the viewer's mouse, keyboard and clipboard input to the page, in order. `onDone` is called when a click or a key has arrived. */
export function viewerInput(viewer: Viewer, world: string, onDone: (tab: Shown) => void) {
  function take(tab: Shown, message: InputMessage): void {
    if (tab.backlog.length === 0 && !waits(tab, message)) input(tab, message);
    else if (tab.backlog.length < MAX_UNANSWERED && hasRoom(tab, message)) tab.backlog.push(message);
  }

  function hasRoom(tab: Shown, message: InputMessage): boolean {
    const length = textLength(message);
    return length === 0 || tab.backlog.reduce((sum, waiting) => sum + textLength(waiting), length) <= MAX_WAITING_TEXT;
  }

  /**
   * Chromium determines the target of a mouse button asynchronously, so a key that follows immediately would reach the element with the
   * previous focus. And text that is typed after a paste must not overtake it.
   */
  function waits(tab: Shown, { type }: InputMessage): boolean {
    return tab.pageWork > 0 || (tab.presses > 0 && type !== 'mouse' && type !== 'wheel');
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
        if (message.event === 'move') return void move(tab, event);
        if (message.event === 'down' && button === 'right') return void rightClick(tab, event);
        return void press(tab, event);
      }
      case 'wheel': {
        const { x, y, deltaX, deltaY, modifiers } = message;
        return void move(tab, { type: 'mouseWheel', x, y, deltaX, deltaY, modifiers });
      }
      case 'key':
        return void key(tab, message);
      case 'text':
        return void dispatch(tab, MAX_UNANSWERED, 'Input.insertText', { text: message.text }).then(() => onDone(tab));
      case 'compose': {
        const end = message.text.length;
        const composition = { text: message.text, selectionStart: end, selectionEnd: end };
        return void dispatch(tab, MAX_UNANSWERED, 'Input.imeSetComposition', composition);
      }
      case 'paste':
        return void exclusive(tab, (page) => pasteInto(viewer.client, page, message.text));
      case 'copy':
        return void exclusive(tab, async (page) => {
          const text = await copyFrom(viewer.client, page, message.cut);
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
    onDone(tab);
  }

  async function key(tab: Shown, message: ViewerMessageOf<'key'>): Promise<void> {
    await dispatch(tab, MAX_UNANSWERED, 'Input.dispatchKeyEvent', keyEvent(message));
    if (message.event === 'up') onDone(tab);
  }

  /** A headless browser has no menu: the viewer draws one, unless the page prevents it. */
  function rightClick(tab: Shown, event: Params<'Input.dispatchMouseEvent'>): Promise<void> {
    let clicked = false;
    const click = async () => {
      clicked = true;
      await dispatch(tab, MAX_UNANSWERED, 'Input.dispatchMouseEvent', event);
    };
    return exclusive(tab, async (page) => {
      try {
        const menu = await clickForMenu(viewer.client, page, event, click);
        if (menu) viewer.tell({ type: 'menu', x: event.x, y: event.y, ...menu });
      } finally {
        if (!clicked) await click();
      }
      onDone(tab);
    });
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

  /** Runs work on the page, and holds back the viewer's input until it is done or late. */
  async function exclusive(tab: Shown, work: (page: LookedAt) => Promise<unknown>): Promise<void> {
    if (tab.sessionId === undefined) return;
    tab.pageWork += 1;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = viewer.later(PAGE_WORK_MS, resolve)));
    const working = work({ sessionId: tab.sessionId, frameId: tab.id, world }).catch((error: unknown) =>
      viewer.log.debug({ error }, 'screencast.page_work_failed'),
    );
    await Promise.race([working, late]);
    if (timer) viewer.forget(timer);
    tab.pageWork -= 1;
    workOff(tab);
  }

  return { take, exclusive };
}

function textLength(message: InputMessage): number {
  return 'text' in message ? message.text.length : 0;
}

function keyEvent(message: ViewerMessageOf<'key'>): Params<'Input.dispatchKeyEvent'> {
  const { event, text, keyCode, location, repeat, key, code, modifiers } = message;
  const common = { key, code, modifiers, windowsVirtualKeyCode: keyCode, location, isKeypad: location === 3 };
  if (event === 'up') return { ...common, type: 'keyUp' };
  if (text === '') return { ...common, type: 'rawKeyDown', autoRepeat: repeat };
  return { ...common, type: 'keyDown', autoRepeat: repeat, text, unmodifiedText: text };
}
