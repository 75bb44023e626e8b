import { lifecycle } from '../lib/lifecycle.ts';

/**
 * No state lasts for ever: `starting` has the launch deadline, `live` the idle timeout, `stopping` ends with the process, which is
 * killed; and all three end with the service: its next start settles them (reconcile.ts).
 */
export const sessionLife = lifecycle(
  {
    starting: 'Chromium is being launched; clients cannot connect yet.',
    live: 'Clients may attach and leave. Without one for five seconds it stands by, frozen, and wakes for the next.',
    stopping: 'Its clients were closed and Chromium is being stopped; clients can no longer connect.',
    stopped: 'Chromium has exited as it was asked to, and nothing of it is left.',
    failed: 'Chromium never came up, crashed too often, or its service failed or went away. Nothing of it is left.',
  },
  {
    launched: { from: ['starting'], to: 'live' },
    stop_requested: { from: ['starting', 'live'], to: 'stopping' },
    cleaned_up: { from: ['stopping'], to: 'stopped' },
    lost: { from: ['starting', 'live', 'stopping'], to: 'failed' },
  },
);

export type SessionState = keyof typeof sessionLife.states;
export type SessionEvent = keyof typeof sessionLife.events;

/** Why a session ended, for its row and for connected clients. */
export const endings = {
  deleted: 'The session was deleted.',
  idle: 'The session was idle for longer than its timeout_seconds.',
  shutdown: 'The service was stopped.',
  did_not_start: 'The browser did not start.',
  crashed: 'The browser crashed too often to be started again.',
  service_restarted: 'The service that ran this session was restarted.',
  node_lost: 'The node that ran this session sent no heartbeat in time, and was given up by the others.',
  retired: 'Its pool took it out of service.',
  project_closed: 'Its project was archived or deleted.',
  disk_limit: 'The session had more on the disk than it may (CORRAL_SESSION_DISK_MB).',
  disk_full: 'The disk was nearly full, and the session was the largest of the project that had the most on it.',
  fault: 'The service failed in the work of this session.',
} as const;

export type Ending = keyof typeof endings;

/** A request to a session failed because the session had ended, or ended during it. */
export class SessionEnded extends Error {
  override readonly name = 'SessionEnded';
  readonly reason: Ending;
  constructor(reason: Ending) {
    super(endings[reason]);
    this.reason = reason;
  }
}
