import { lifecycle } from '../../lib/lifecycle.ts';

/**
 * `recording` ends with its session, its maximum duration or its size; `processing` ends with ffmpeg; both end with the service: its
 * next start settles them.
 */
export const replayLife = lifecycle(
  {
    recording: 'The video is being made; GET answers 202.',
    processing: 'It was stopped, and the file is put into its last form; GET answers 202.',
    available: 'It can be watched, until CORRAL_REPLAY_DAYS are over.',
    failed: 'There is no video: nothing could be recorded, or its node was lost.',
  },
  {
    stopped: { from: ['recording'], to: 'processing' },
    finished: { from: ['recording', 'processing'], to: 'available' },
    lost: { from: ['recording', 'processing'], to: 'failed' },
    found_again: { from: ['failed'], to: 'processing' },
  },
);

export type ReplayState = keyof typeof replayLife.states;
export type ReplayEvent = keyof typeof replayLife.events;

/** Why a recording ended. */
export const replayEndings = {
  stopped: 'A client stopped it.',
  max_duration: 'It reached its max_duration_in_seconds.',
  max_size: 'The file reached its largest size.',
  disk_full: 'The disk was full.',
  storage_limit: 'The project had reached the bound of its replays.',
  session_ended: 'Its session ended.',
  viewport_changed: 'The size of the viewport changed. The recording continues in a new replay.',
  encoder_failed: 'ffmpeg failed.',
  service_stopped: 'The service was stopped.',
  service_restarted: 'The service that recorded it was restarted.',
  node_lost: 'The node that recorded it was lost.',
  saved: 'It is the last seconds of a session with replay_buffer_seconds.',
} as const;

export type ReplayEnding = keyof typeof replayEndings;
