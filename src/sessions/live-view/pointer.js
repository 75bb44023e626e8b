/** The viewer's mouse and fingers. Movements and scrolling are sent once a frame, and before whatever follows them. */
import { modifiersOf } from './keyboard.js';

const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'];
const DOUBLE_CLICK_MS = 500;
const DOUBLE_CLICK_PX = 5;
const LINE_PX = 33;
/** A finger that moves farther than this scrolls. */
const TAP_PX = 8;

export function pointer({ $, act, listen, screen, focus }) {
  const { canvas, at } = screen;
  const field = $('keyboard');
  let move; // the last movement, until the next frame
  let scroll;
  let click = { time: -Infinity, button: '', x: 0, y: 0, count: 0 };
  let touch;
  let frameAsked = false;

  function soon() {
    if (frameAsked) return;
    frameAsked = true;
    requestAnimationFrame(() => {
      frameAsked = false;
      flush();
    });
  }

  /** Sends pending movements before the next event. */
  function flush() {
    if (move) act(move);
    if (scroll) act(scroll);
    move = undefined;
    scroll = undefined;
  }

  function mouse(event, source) {
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

  function countClick(event) {
    const again =
      event.timeStamp - click.time < DOUBLE_CLICK_MS &&
      event.button === click.button &&
      Math.hypot(event.clientX - click.x, event.clientY - click.y) < DOUBLE_CLICK_PX;
    const count = again ? Math.min(3, click.count + 1) : 1;
    click = { time: event.timeStamp, button: event.button, x: event.clientX, y: event.clientY, count };
  }

  function addScroll(event, deltaX, deltaY) {
    scroll ??= { type: 'wheel', deltaX: 0, deltaY: 0 };
    scroll = { ...scroll, ...at(event), modifiers: modifiersOf(event) };
    scroll.deltaX += deltaX;
    scroll.deltaY += deltaY;
    soon();
  }

  function swipe(event) {
    const [deltaX, deltaY] = [touch.x - event.clientX, touch.y - event.clientY];
    if (!touch.moved && Math.hypot(deltaX, deltaY) < TAP_PX) return;
    touch = { id: touch.id, x: event.clientX, y: event.clientY, moved: true };
    addScroll(event, deltaX, deltaY);
  }

  function tap(event) {
    const { moved } = touch;
    touch = undefined;
    if (moved) return;
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
    if (touch?.id === event.pointerId) return swipe(event);
    if (event.pointerType === 'touch') return;
    move = mouse('move', event);
    soon();
  });
  listen(canvas, 'pointerup', (event) => {
    flush();
    if (touch?.id === event.pointerId) return tap(event);
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

function heldButton(buttons) {
  return ['left', 'right', 'middle', 'back', 'forward'].find((_, bit) => buttons & (1 << bit)) ?? 'none';
}
