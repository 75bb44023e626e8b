import { lifecycle } from '../../lib/lifecycle.ts';

/**
 * `recording` ends with its session, its maximum duration or its size; `processing` ends with ffmpeg; both end with the service, whose
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
export type ReplayEnding =
  | 'stopped'
  | 'max_duration'
  | 'max_size'
  | 'disk_full'
  | 'storage_limit'
  | 'session_ended'
  | 'viewport_changed'
  | 'encoder_failed'
  | 'service_stopped'
  | 'service_restarted'
  | 'node_lost'
  | 'saved';
