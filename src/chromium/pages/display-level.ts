import { atBest, follow, levelOf } from './cast-levels.ts';
import type { LevelMessage } from './viewer-protocol.ts';

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
