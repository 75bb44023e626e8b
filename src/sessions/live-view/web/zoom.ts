/**
 * The picture may be larger than the window: the page of a computer is small on a phone. Two fingers enlarge it and move it, in this
 * window only. A mouse moves it by scroll bars.
 */
import { $ } from './elements.ts';
import type { Listen } from './listen.ts';
import type { Size } from './picture-panel.ts';

const LARGEST = 10;
/** Two fingers that move less than this together have tapped. */
const TAP_PX = 12;

export type Zoom = ReturnType<typeof zoomer>;

interface Point {
  readonly x: number;
  readonly y: number;
}

/**
 * `content` is the picture, and `grow` makes it so many times as large as fits. `actualScale` says how many times that is for the
 * page's own size. `settled` is called when fingers have changed the size. Where one finger means nothing else, it moves the picture.
 */
export function zoomer({
  listen,
  content,
  grow,
  actualScale,
  settled = () => {},
  oneFingerMoves,
}: {
  listen: Listen;
  content: HTMLElement;
  grow(scale: number): void;
  actualScale(): number;
  settled?(): void;
  oneFingerMoves: boolean;
}) {
  const pane = $('pane');
  const fingers = new Map<number, Point>();
  let scale = 1;
  let actual = false;
  let pinching = false;
  let travelled = 0; // by two fingers, since the first of them came

  /** The place of the picture at `from` comes to `to`, as far as the picture reaches. */
  function set(next: number, from: Point, to = from): void {
    const before = content.getBoundingClientRect();
    scale = Math.max(1, Math.min(LARGEST, next));
    pane.classList.toggle('enlarged', scale > 1);
    grow(scale);
    const after = content.getBoundingClientRect();
    const moved = (edge: 'left' | 'top', length: 'width' | 'height', axis: 'x' | 'y') =>
      after[edge] + ((from[axis] - before[edge]) / (before[length] || 1)) * after[length] - to[axis];
    pane.scrollBy({ left: moved('left', 'width', 'x'), top: moved('top', 'height', 'y'), behavior: 'instant' });
  }

  /** Of one finger or two. */
  function grip() {
    const [one, other = one] = [...fingers.values()] as [Point, Point?];
    const distance = Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
    return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2, distance };
  }

  function move(event: PointerEvent): void {
    if (!fingers.has(event.pointerId)) return;
    const before = grip();
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const after = grip();
    if (fingers.size === 2) {
      travelled += Math.abs(after.distance - before.distance) + Math.hypot(after.x - before.x, after.y - before.y);
      actual = false;
      $('picture-size').selectedIndex = -1; // neither of its two
      set(scale * (after.distance / before.distance), before, after);
    } else if (fingers.size === 1 && oneFingerMoves && !pinching) set(scale, before, after);
  }

  function leave({ pointerId }: PointerEvent): void {
    if (!fingers.delete(pointerId) || fingers.size > 0) return;
    if (pinching) settled();
    pinching = false;
  }

  // Before the picture's own listeners, which ask whether two fingers are at work.
  const first = { capture: true };
  const down = (event: PointerEvent) => {
    if (event.pointerType !== 'touch') return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size === 1) travelled = 0;
    if (fingers.size === 2) pinching = true;
  };
  listen(pane, 'pointerdown', down, first);
  listen(pane, 'pointermove', move, first);
  for (const name of ['pointerup', 'pointercancel'] as const) listen(pane, name, leave, first);

  const middle = () => {
    const { left, top, width, height } = pane.getBoundingClientRect();
    return { x: left + width / 2, y: top + height / 2 };
  };

  return {
    get scale() {
      return scale;
    },
    /** From the second finger on, until none is left. */
    pinching: () => pinching,
    /** Whether two fingers have moved the picture, and not tapped. Until the next finger comes. */
    moved: () => travelled > TAP_PX,

    /** The page's own size, or as large as fits. */
    show(size: Size): void {
      actual = size === 'actual';
      set(actual ? actualScale() : 1, middle());
      settled();
    },

    /** The window or the page has another size. */
    refit: () => set(actual ? actualScale() : scale, middle()),
  };
}
