/** Fingers on the picture of a headful session, between the screen and noVNC. */
import type { Parts } from './parts.ts';
import type { Zoom } from './zoom.ts';

/** A finger that rested and moves farther than this drags. */
const DRAG_PX = 8;

/** As in a headless view, one finger scrolls and two enlarge. noVNC alone would drag, and zoom in the session. */
export function fingers({
  target,
  listen,
  zoom,
  readOnly,
}: Pick<Parts, 'listen' | 'readOnly'> & { target: HTMLElement; zoom: Zoom }) {
  let last: { x: number; y: number } | undefined;
  let held: { clientX: number; clientY: number; drags: boolean } | undefined; // by a finger that rested before it moved
  const passed = new WeakSet<CustomEvent>();
  for (const name of ['gesturestart', 'gesturemove', 'gestureend'] as const)
    listen(target, name, swipe, { capture: true });

  function swipe(event: CustomEvent<Gesture>): void {
    if (passed.has(event)) return;
    const { type, clientX, clientY } = event.detail;
    if (type === 'longpress' && !readOnly) return hold(event);
    // A pinch of less than 50 pixels is a tap of two fingers for noVNC, which presses the right button.
    const isMove = ['pinch', 'twodrag', 'drag'].includes(type) || (type === 'twotap' && zoom.moved());
    if (!isMove) return;
    event.stopImmediatePropagation();
    if (type !== 'drag' || zoom.pinching()) return;
    const turned = event.type === 'gesturemove' && last && { deltaX: last.x - clientX, deltaY: last.y - clientY };
    last = { x: clientX, y: clientY };
    if (turned) event.target?.dispatchEvent(new WheelEvent('wheel', { clientX, clientY, ...turned }));
  }

  /** A finger that rests and then moves drags. A finger that only rests clicks with the right button; noVNC alone would drag with it. */
  function hold(event: CustomEvent<Gesture>): void {
    event.stopImmediatePropagation();
    const { clientX, clientY } = event.detail;
    if (event.type === 'gesturestart') return void (held = { clientX, clientY, drags: false });
    if (!held) return;
    if (!held.drags && Math.hypot(held.clientX - clientX, held.clientY - clientY) >= DRAG_PX) {
      held.drags = true;
      pass(event, 'gesturestart', 'drag', held);
    }
    if (held.drags) pass(event, event.type, 'drag', { clientX, clientY });
    if (event.type !== 'gestureend') return;
    if (!held.drags) for (const name of ['gesturestart', 'gestureend']) pass(event, name, 'longpress', held);
    held = undefined;
  }

  /** To noVNC, as another gesture. */
  function pass(
    { target: canvas, detail }: CustomEvent<Gesture>,
    name: string,
    type: Gesture['type'],
    { clientX, clientY }: { clientX: number; clientY: number },
  ): void {
    const gesture = new CustomEvent(name, { detail: { ...detail, type, clientX, clientY } });
    passed.add(gesture);
    canvas?.dispatchEvent(gesture);
  }
}
