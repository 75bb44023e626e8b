import { fromBase64 } from '../../lib/base64.ts';
import { within } from '../../lib/deadline.ts';
import { anyText, object, record, type Check } from '../../lib/shape.ts';
import { turns } from '../../lib/turns.ts';
import type { ActivePage } from '../pages/active-page.ts';
import { passedOn, type Answered, type Method, type Params, type ReadOf } from '../cdp/protocol.ts';
import { isLayout } from '../cdp/shapes.ts';
import type { Rectangle } from './display-client.ts';
import { Impossible, type Button, type Hands } from './hands.ts';
import { characterKey, isAmerican, type Key } from './keys.ts';

/** CDP's bits for pressed buttons. */
const bits: Record<Button, number> = { left: 1, right: 2, middle: 4, back: 8, forward: 16 };
/** CSS pixels that a notch of the wheel scrolls. Chosen, not measured: a notch on a display may scroll a different distance. */
const NOTCH = 120;
/** The deadline for a page to answer an input. */
const PATIENCE_MS = 10_000;
const CONTROL = 2;
const SHIFT = 8;

/** Editing commands that a browser with a window adds to shortcuts. By key, with Control; upper case: with Shift too. */
const commands: Record<string, string> = {
  a: 'selectAll',
  c: 'copy',
  x: 'cut',
  v: 'paste',
  z: 'undo',
  Z: 'redo',
  y: 'redo',
};

/** Shortcuts that a browser handles itself and never passes to a page: without a window they would silently do nothing. */
const windowKeys = /^(t|n|w|T|N|W|Tab|PageUp|PageDown)$/;

const isPicture = object({ data: anyText });

/** Chromium never answers the request for a picture of a page that is moving to another process. The request is repeated after this time. */
const PICTURE_MS = 2000;

/** Asks again and again until one is answered, or the first is late. */
function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const answered = (answer: T) => {
      clearInterval(again);
      resolve(answer);
    };
    const again = setInterval(() => ask().then(answered, () => {}), PICTURE_MS);
    ask().then(answered, (error: Error) => {
      clearInterval(again);
      reject(error);
    });
  });
}

/** Input on the active page of a headless session, by CDP: the page is the screen, and there is nothing around it. */
export function pageHands(active: ActivePage): Hands {
  let at = { x: 0, y: 0 };
  let buttons = 0;
  let modifiers = 0;

  async function session(): Promise<string> {
    const page = await active.find();
    if (!page) throw new Impossible('The session has no page. Open one first.');
    return page.sessionId;
  }

  const send = <M extends Method>(method: M, params: Params<M>, sessionId?: string) =>
    ask(record, method, params, sessionId);

  async function ask<M extends Method, T>(
    is: Check<T> & ReadOf<T, Answered<M>>,
    method: M,
    params: Params<M>,
    sessionId?: string,
  ): Promise<T> {
    const sent = active.client.ask(is, method, ...passedOn(params, sessionId ?? (await session())));
    return within(PATIENCE_MS, () => new Impossible('The page does not answer: it hangs, or a dialog is open.'), sent);
  }

  const mouse = (event: Omit<Params<'Input.dispatchMouseEvent'>, 'x' | 'y'>) =>
    send('Input.dispatchMouseEvent', { ...at, buttons, modifiers, ...event });

  /** Translates a part of the screen to a part of the page, which may be scrolled. */
  async function onPage({ x, y, width, height }: Rectangle) {
    const { cssVisualViewport: seen } = await ask(isLayout, 'Page.getLayoutMetrics', {});
    return { x: x + seen.pageX, y: y + seen.pageY, width, height, scale: 1 };
  }

  async function press(key: Key, down: boolean, sessionId: string) {
    if (key.modifier) modifiers = down ? modifiers | key.modifier : modifiers & ~key.modifier;
    const { key: name, code, keyCode, location } = key;
    const shifted = modifiers & SHIFT && name.length === 1 ? name.toUpperCase() : name;
    if (down && modifiers & CONTROL && windowKeys.test(shifted)) {
      throw new Impossible(`Ctrl+${shifted} is for a browser's window, and a headless session has none.`);
    }
    const writes =
      modifiers & ~SHIFT ? undefined : key.text && (key.text.length === 1 && modifiers & SHIFT ? shifted : key.text);
    const event = {
      key: shifted,
      code,
      windowsVirtualKeyCode: keyCode,
      nativeVirtualKeyCode: keyCode,
      modifiers,
      location: location ?? 0,
      isKeypad: location === 3,
    };
    if (!down) return send('Input.dispatchKeyEvent', { ...event, type: 'keyUp' }, sessionId);
    const command = modifiers & CONTROL ? commands[shifted] : undefined;
    return send(
      'Input.dispatchKeyEvent',
      {
        ...event,
        type: writes === undefined ? 'rawKeyDown' : 'keyDown',
        ...(writes !== undefined && { text: writes, unmodifiedText: writes }),
        ...(command !== undefined && { commands: [command] }),
      },
      sessionId,
    );
  }

  return {
    async screen() {
      const { cssLayoutViewport } = await ask(isLayout, 'Page.getLayoutMetrics', {});
      return { width: cssLayoutViewport.clientWidth, height: cssLayoutViewport.clientHeight };
    },

    pointer: async () => at,

    async move(to) {
      at = to;
      const held = (Object.keys(bits) as Button[]).find((button) => buttons & bits[button]);
      await mouse({ type: 'mouseMoved', button: held ?? 'none' });
    },

    async button(button, down, count) {
      buttons = down ? buttons | bits[button] : buttons & ~bits[button];
      await mouse({ type: down ? 'mousePressed' : 'mouseReleased', button, clickCount: count });
    },

    async wheel(right, down) {
      await mouse({ type: 'mouseWheel', deltaX: right * NOTCH, deltaY: down * NOTCH });
    },

    key: async (key, down) => void (await press(key, down, await session())),

    async write(text) {
      const sessionId = await session();
      const turn = turns();
      let untyped = '';
      const insert = async () => {
        if (untyped !== '') await send('Input.insertText', { text: untyped }, sessionId);
        untyped = '';
      };
      for (const character of text) {
        if (!isAmerican(character)) {
          untyped += character;
          await turn();
          continue;
        }
        await insert();
        const key = characterKey(character);
        await press(key, true, sessionId);
        await press(key, false, sessionId);
      }
      await insert();
    },

    async screenshot(region) {
      const part = region && { clip: await onPage(region) };
      const { data } = await untilAnswered(() =>
        ask(isPicture, 'Page.captureScreenshot', { format: 'png', optimizeForSpeed: true, ...part }),
      );
      return fromBase64(data);
    },

    async showPointer(shown) {
      if (shown) throw new Impossible('hidden must be true: a headless session has no cursor that could be shown.');
    },

    settled: async () => {},
  };
}
