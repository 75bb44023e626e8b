import { atBest, follow, levelOf } from './cast-levels.ts';
import type { LevelMessage } from './viewer-protocol.ts';

const LOOK_MS = 1000;

/**
 * The quality of a display's pictures follows the viewer's connection, by the rules of cast-levels.ts. The display decides when it sends, and
 * the viewer requests the quality. So each second the viewer gets a mark, which waits behind the pictures, and a message if the level changes.
 * Until the mark is answered, nothing is measured.
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
    /** The viewer has answered. Answers without a mark are ignored. */
    answered(): void {
      if (markedAt === undefined) return;
      delay = performance.now() - markedAt;
      markedAt = undefined;
    },
    close: () => clearInterval(timer),
  };
}
