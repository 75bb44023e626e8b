export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The interval between points of a movement, as a mouse reports them. */
const STEP_MS = 10;

/** The default duration of a movement: longer for longer distances, but not in proportion. */
export function naturalMs(from: Point, to: Point): number {
  const distance = Math.hypot(to.x - from.x, to.y - from.y);
  return Math.round(Math.min(900, 80 + 90 * Math.log2(1 + distance / 12)));
}

/**
 * The path of a hand: a Bézier curve that bends a little to one side, slow at both ends. Whole pixels, the last one exactly the target,
 * `STEP_MS` apart.
 */
export function smoothWay(from: Point, to: Point, durationMs: number, random: () => number = Math.random): Point[] {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const bend = () => (random() - 0.5) * 0.3;
  const side = random() < 0.5 ? 1 : -1;
  const control = (along: number): Point => {
    const off = side * (0.03 + 0.8 * Math.abs(bend())); // never a straight line
    return { x: from.x + dx * along - dy * off, y: from.y + dy * along + dx * off };
  };
  const [first, second] = [control(0.25 + bend() / 2), control(0.75 + bend() / 2)];
  const steps = Math.max(1, Math.round(durationMs / STEP_MS));
  return Array.from({ length: steps }, (_, i) => {
    if (i === steps - 1) return to;
    const t = ease((i + 1) / steps);
    return { x: bezier(t, from.x, first.x, second.x, to.x), y: bezier(t, from.y, first.y, second.y, to.y) };
  });
}

/** A straight path in so many steps, the last one exactly the target. */
export function straightWay(from: Point, to: Point, steps: number): Point[] {
  return Array.from({ length: steps }, (_, i) => ({
    x: Math.round(from.x + ((to.x - from.x) * (i + 1)) / steps),
    y: Math.round(from.y + ((to.y - from.y) * (i + 1)) / steps),
  }));
}

export const stepMs = STEP_MS;

const ease = (t: number) => t * t * (3 - 2 * t);

function bezier(t: number, a: number, b: number, c: number, d: number): number {
  const s = 1 - t;
  return Math.round(s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d);
}
