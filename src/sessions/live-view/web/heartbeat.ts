/**
 * Notices a connection that is dead but not closed: the service sends something each second, while a browser waits minutes
 * for a lost network.
 */

import { liveViewHeartbeat } from '../beat.ts';

/** Seconds of silence until it is shown, and until the connection is closed. A large picture takes long on a slow network. */
const STALLED = 4;
const GIVEN_UP = 15;

/**
 * Call it before other listeners are added to the socket: they do not receive heartbeats. Calls `stalled` when the connection is
 * silent, `resumed` when it is not any more, and `dead` when it is closed.
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
