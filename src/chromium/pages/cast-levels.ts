/** JPEG's quality, most pictures a second, and the part of the viewers' size that the pictures have. */
export const LEVELS = {
  high: { quality: 80, rate: Infinity, scale: 1 },
  medium: { quality: 55, rate: 15, scale: 1 },
  low: { quality: 30, rate: 8, scale: 1 },
  /** Only chosen by `follow`: late text is better than unreadable text. */
  least: { quality: 30, rate: 4, scale: 0.5 },
} as const;
export type Level = keyof typeof LEVELS;

const ladder = ['high', 'medium', 'low', 'least'] as const satisfies readonly Level[];
const BOTTOM = ladder.length - 1;

/**
 * A picture that a viewer draws later than this after it was sent has waited in a queue, unless the viewer is far away. The bytes that wait in the
 * service do not show it: the kernel buffers megabytes.
 */
const LATE_MS = 400;
/** No viewer is so far away. */
const MOST_LATE_MS = 3000;
/** This much waits in the service although the viewer reports that it has drawn: it reports before it has read. */
const MOST_UNSENT = 256 * 1024;
/** One late look may be a pause of the viewer's computer. */
const LATE_LOOKS = 2;
const CALM_LOOKS = 3;
const MOST_CALM_LOOKS = 60;

/** What a look of one second at a viewer's connection has found. */
export interface Look {
  /** How long the slowest picture took from being sent to being drawn. Zero if none was sent: the page did not change. */
  readonly delay: number;
  /** Bytes that wait in the service. */
  readonly unsent: number;
}

/** The state of a viewer with a quality that follows its connection. */
export interface Standing {
  readonly rung: number;
  /** Late looks in a row, and calm ones. */
  readonly late: number;
  readonly calm: number;
  /** The calm looks that it takes to try a better level. It doubles when the better one proves too much. */
  readonly patience: number;
  /** The level was raised, and nothing was late since. */
  readonly raised: boolean;
  /** What counts as late for this viewer. */
  readonly lateMs: number;
  /** The delay because of which the level was lowered last. */
  readonly lowered: number | undefined;
}

export const atBest: Standing = {
  rung: 0,
  late: 0,
  calm: 0,
  patience: CALM_LOOKS,
  raised: false,
  lateMs: LATE_MS,
  lowered: undefined,
};

export function levelOf({ rung }: Standing): Level {
  return ladder[rung] ?? 'least';
}

/**
 * The next standing of a viewer. Late pictures lower the level: two looks in a row by one step, a very late picture to the bottom at
 * once. Calm looks raise it by one step, and a page that does not change is calm, so that it becomes sharp. If smaller pictures are as
 * late as larger ones, then the viewer is far away or its computer is slow: it gets the larger ones again, and its delay counts as usual.
 */
export function follow(standing: Standing, { delay, unsent }: Look): Standing {
  const { rung, patience, lateMs, lowered } = standing;
  if (delay > lateMs || unsent > MOST_UNSENT) {
    const late = standing.late + 1;
    const veryLate = delay > 4 * lateMs;
    if (late < LATE_LOOKS && !veryLate) return { ...standing, late, calm: 0 };
    const inVain = lowered !== undefined && delay > 0.8 * lowered && delay * 1.5 <= MOST_LATE_MS;
    if (inVain && unsent <= MOST_UNSENT)
      return { ...standing, rung: Math.max(0, rung - 1), late: 0, calm: 0, lateMs: delay * 1.5, lowered: undefined };
    const raisedTooEarly = standing.raised ? Math.min(MOST_CALM_LOOKS, patience * 2) : patience;
    const next = veryLate ? BOTTOM : Math.min(BOTTOM, rung + 1);
    return { ...standing, rung: next, late: 0, calm: 0, patience: raisedTooEarly, raised: false, lowered: delay };
  }
  if (delay > lateMs / 2) return { ...standing, late: 0, calm: 0 };
  const calm = standing.calm + 1;
  const usual = delay > 0 && delay <= LATE_MS / 2 ? LATE_MS : lateMs; // a viewer that was far away has come near
  if (calm < patience) return { ...standing, late: 0, calm, lateMs: usual };
  const better = { ...standing, late: 0, calm: 0, lateMs: usual, lowered: undefined };
  if (rung > 0) return { ...better, rung: rung - 1, raised: true };
  return { ...better, raised: false, patience: CALM_LOOKS };
}
