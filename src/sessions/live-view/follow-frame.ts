import type { Viewport } from '../../chromium/engine.ts';
import type { Log } from '../../lib/log.ts';

/** What a viewer's window does to its session. */
interface Frame {
  /** The window has this size now. */
  fit(size: Viewport): void;
  left(): void;
}

interface Followed {
  change: (size: Viewport) => Promise<unknown>;
  isRecorded: () => boolean;
}

/**
 * The viewport of a session follows the windows of viewers that request it. Of several, it follows the last changed one, and when its
 * viewer leaves, the one changed before it: the others see the whole page at another scale.
 */
export function followFrames(log: Log) {
  const sessions = new WeakMap<object, (followed: Followed) => Frame>();
  return {
    /** A frame of this session, which does nothing until it has a size. */
    join(session: object, followed: Followed): Frame {
      const join = sessions.get(session) ?? framesOf(log);
      sessions.set(session, join);
      return join(followed);
    },
  };
}

/**
 * One change at a time, and then the newest size: a window that is drawn larger has many. While the session is recorded it stays, because a
 * video has one size.
 */
function framesOf(log: Log): (followed: Followed) => Frame {
  /** The sizes of the viewers' windows, the newest last. */
  const sizes = new Map<Followed, Viewport>();
  let wanted = false;
  let busy = false;
  let last: { by: Followed; size: string } | undefined;

  async function goOn(): Promise<void> {
    busy = true;
    while (wanted) {
      wanted = false;
      const [by, { width, height }] = [...sizes].at(-1)!;
      const size = `${width}x${height}`;
      if ((last?.by === by && last.size === size) || by.isRecorded()) continue;
      last = { by, size };
      await by.change({ width, height }).catch((error: unknown) => {
        last = undefined;
        log.debug({ error, size }, 'live_view.not_resized'); // the session ends, or its browser does not answer
      });
    }
    busy = false;
  }
  function follow(): void {
    wanted = sizes.size > 0;
    if (wanted && !busy) void goOn();
  }

  return (followed) => ({
    fit(size) {
      sizes.delete(followed);
      sizes.set(followed, size);
      follow();
    },
    left() {
      if (sizes.delete(followed)) follow();
    },
  });
}
