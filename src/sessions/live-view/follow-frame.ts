import type { Viewport } from '../../chromium/engine.ts';
import type { Log } from '../../lib/log.ts';

/**
 * The viewport of a session follows the window of a viewer. One change at a time, and then the newest size: a window that is drawn larger
 * has many. While the session is recorded it stays, because a video has one size.
 */
export function followFrame({
  change,
  isRecorded,
  log,
}: {
  change: (size: Viewport) => Promise<unknown>;
  isRecorded: () => boolean;
  log: Log;
}): (size: Viewport) => void {
  let wanted: Viewport | undefined;
  let busy = false;
  let last = '';

  async function goOn(): Promise<void> {
    busy = true;
    while (wanted) {
      const { width, height } = wanted;
      wanted = undefined;
      const size = `${width}x${height}`;
      if (size === last || isRecorded()) continue;
      last = size;
      await change({ width, height }).catch((error: unknown) => {
        last = '';
        log.debug({ error, size }, 'live_view.not_resized'); // the session ends, or its browser does not answer
      });
    }
    busy = false;
  }

  return (size) => {
    wanted = size;
    if (!busy) void goOn();
  };
}
