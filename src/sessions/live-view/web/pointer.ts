/** The viewer's mouse and fingers. Movements and scrolling are sent once a frame, and before any other input. */
import type { ViewerMessageOf } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import { modifiersOf } from './keyboard.ts';
import type { Parts } from './parts.ts';
import type { Screen } from './picture.ts';

type Mouse = ViewerMessageOf<'mouse'>;
type Wheel = ViewerMessageOf<'wheel'>;

const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'] as const;
const DOUBLE_CLICK_MS = 500;
const DOUBLE_CLICK_PX = 5;
const LINE_PX = 33;
/** A finger that moves farther than this scrolls. */
const TAP_PX = 8;

export function pointer({ act, listen, screen, focus }: Parts & { screen: Screen }) {
  const { canvas, at } = screen;
  const field = $('keyboard');
  let move: Mouse | undefined; // the last movement, until the next frame
  let scroll: Wheel | undefined;
  let click = { time: -Infinity, button: -1, x: 0, y: 0, count: 0 };
  let touch: { readonly id: number; readonly x: number; readonly y: number; readonly moved: boolean } | undefined;
  let frameAsked = false;

  function soon(): void {
    if (frameAsked) return;
    frameAsked = true;
    requestAnimationFrame(() => {
      frameAsked = false;
      flush();
    });
  }

  /** Sends pending movements before the next event. */
  function flush(): void {
    if (move) act(move);
    if (scroll) act(scroll);
    move = undefined;
    scroll = undefined;
  }

  function mouse(event: Mouse['event'], source: MouseEvent): Mouse {
    const button = event === 'move' ? heldButton(source.buttons) : (BUTTONS[source.button] ?? 'none');
    const clickCount = event === 'move' ? 0 : click.count;
    return {
      type: 'mouse',
      event,
      ...at(source),
      button,
      buttons: source.buttons,
      clickCount,
      modifiers: modifiersOf(source),
    };
  }

  function countClick(event: MouseEvent): void {
    const again =
      event.timeStamp - click.time < DOUBLE_CLICK_MS &&
      event.button === click.button &&
      Math.hypot(event.clientX - click.x, event.clientY - click.y) < DOUBLE_CLICK_PX;
    const count = again ? Math.min(3, click.count + 1) : 1;
    click = { time: event.timeStamp, button: event.button, x: event.clientX, y: event.clientY, count };
  }

  function addScroll(event: MouseEvent, deltaX: number, deltaY: number): void {
    scroll = {
      type: 'wheel',
      ...at(event),
      deltaX: (scroll?.deltaX ?? 0) + deltaX,
      deltaY: (scroll?.deltaY ?? 0) + deltaY,
      modifiers: modifiersOf(event),
    };
    soon();
  }

  function swipe(event: MouseEvent, from: NonNullable<typeof touch>): void {
    const [deltaX, deltaY] = [from.x - event.clientX, from.y - event.clientY];
    if (!from.moved && Math.hypot(deltaX, deltaY) < TAP_PX) return;
    touch = { id: from.id, x: event.clientX, y: event.clientY, moved: true };
    addScroll(event, deltaX, deltaY);
  }

  function tap(event: MouseEvent): void {
    countClick(event);
    act({ ...mouse('move', event), buttons: 0, button: 'none' });
    act({ ...mouse('down', event), buttons: 1, button: 'left' });
    act({ ...mouse('up', event), buttons: 0, button: 'left' });
  }

  listen(canvas, 'pointerdown', (event) => {
    event.preventDefault();
    field.style.left = `${event.clientX - $('stage').getBoundingClientRect().left}px`; // an input method opens beside it
    field.style.top = `${event.clientY - $('stage').getBoundingClientRect().top}px`;
    focus();
    canvas.setPointerCapture(event.pointerId);
    if (screen.zoom.pinching()) return void (touch = undefined); // and no tap when they leave
    if (event.pointerType === 'touch') {
      touch = { id: event.pointerId, x: event.clientX, y: event.clientY, moved: false };
      return;
    }
    countClick(event);
    flush();
    act(mouse('down', event));
  });
  listen(canvas, 'pointermove', (event) => {
    if (touch?.id === event.pointerId) return swipe(event, touch);
    if (event.pointerType === 'touch') return;
    move = mouse('move', event);
    soon();
  });
  listen(canvas, 'pointerup', (event) => {
    flush();
    if (touch?.id === event.pointerId) {
      const { moved } = touch;
      touch = undefined;
      return moved ? undefined : tap(event);
    }
    if (event.pointerType === 'touch') return;
    act(mouse('up', event));
  });
  listen(canvas, 'pointercancel', () => (touch = undefined));
  listen(canvas, 'mousedown', (event) => event.preventDefault()); // otherwise the text field would lose the focus
  listen(canvas, 'contextmenu', (event) => event.preventDefault());
  listen(
    canvas,
    'wheel',
    (event) => {
      event.preventDefault();
      const unit = [1, LINE_PX, screen.viewport.height][event.deltaMode] ?? 1;
      addScroll(event, event.deltaX * unit, event.deltaY * unit);
    },
    { passive: false },
  );

  return { flush };
}

/** In the order of the bits. */
const HELD = ['left', 'right', 'middle', 'back', 'forward'] as const;

function heldButton(buttons: number): Mouse['button'] {
  return HELD.find((_, bit) => buttons & (1 << bit)) ?? 'none';
}
