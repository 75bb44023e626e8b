import { atBest, follow, levelOf, type Level } from './cast-levels.ts';

/** `level` is what the display's pictures are to have; the viewer answers a `mark` when it has read all that was sent before. */
export type LevelMessage = { type: 'level'; level: Level } | { type: 'mark' };

const LOOK_MS = 1000;

/**
 * The quality of a display's pictures follows the viewer's connection, by the rules of cast-levels.ts. A display sends when it likes, and
 * the viewer asks it for a quality; so each second the viewer is sent a mark, which waits behind the pictures, and is told of another level.
 * While a mark is on its way, a look says nothing.
 */
export function displayLevel(tell: (message: LevelMessage) => void, unsent: () => number) {
  let standing = atBest;
  let markedAt: number | undefined;
  let delay = 0;

  const timer = setInterval(() => {
    if (markedAt !== undefined) return;
    const before = levelOf(standing);
    standing = follow(standing, { delay, unsent: unsent() });
    if (levelOf(standing) !== before) tell({ type: 'level', level: levelOf(standing) });
    markedAt = performance.now();
    tell({ type: 'mark' });
  }, LOOK_MS);

  return {
    /** The viewer has answered. One that answers without a mark is not heard. */
    answered(): void {
      if (markedAt === undefined) return;
      delay = performance.now() - markedAt;
      markedAt = undefined;
    },
    close: () => clearInterval(timer),
  };
}
