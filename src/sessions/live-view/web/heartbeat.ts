/**
 * Notices a connection that is dead but not closed: the service sends something each second, while a browser waits minutes
 * for a network that is gone.
 */

import { liveViewHeartbeat } from '../beat.ts';

/** Seconds of silence after which it is shown, and after which the connection is given up. A large picture on a slow network takes its time. */
const STALLED = 4;
const GIVEN_UP = 15;

/**
 * Call it before other listeners are added to the socket: they do not receive heartbeats. Calls `stalled` when the connection is
 * silent, `resumed` when it is not any more, and `dead` when it is given up.
 */
export function watchHeartbeat(
  socket: EventTarget,
  signal: AbortSignal,
  { stalled, resumed, dead }: { stalled(): void; resumed(): void; dead(): void },
): void {
  // Ticks instead of time: after a sleep of the computer the first one comes before the messages that wait.
  let silent = 0;
  const timer = setInterval(() => {
    silent += 1;
    if (silent === STALLED) stalled();
    if (silent === GIVEN_UP) dead();
  }, liveViewHeartbeat.everyMs);
  signal.addEventListener('abort', () => clearInterval(timer));
  socket.addEventListener(
    'message',
    (event) => {
      if (silent >= STALLED) resumed();
      silent = 0;
      if ((event as MessageEvent).data === liveViewHeartbeat.text) event.stopImmediatePropagation(); // noVNC would take it for a part of its stream
    },
    { signal },
  );
}
