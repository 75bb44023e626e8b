import { Type, type Static } from 'typebox';
import { named, nullable, oneOf, Timestamp } from '../../api/schema.ts';
import { replayEndings, replayLife, type ReplayEnding } from './state.ts';

export const StartReplay = Type.Object({
  framerate: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 60, description: 'Pictures a second at most; 10 when left out.' }),
  ),
  max_duration_in_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'The time after which the recording ends; an hour when left out, a day at most.',
    }),
  ),
  record_audio: Type.Optional(
    Type.Boolean({ default: false, description: 'Sessions have no sound; true is refused.' }),
  ),
  last_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 300,
      description:
        'Saves the seconds before this request instead of recording from now on. The session must be created with replay_buffer_seconds.',
    }),
  ),
});

export const Replay = named(
  'BrowserReplay',
  Type.Object({
    replay_id: Type.String(),
    started_at: Type.Optional(nullable(Timestamp)),
    finished_at: Type.Optional(nullable(Timestamp)),
    replay_view_url: Type.Optional(Type.String({ description: 'A page with a player.' })),
    status: Type.Optional(oneOf(replayLife.stateNames, { description: 'See docs/lifecycles.md.' })),
    ended_reason: Type.Optional(
      oneOf(Object.keys(replayEndings) as ReplayEnding[], {
        description: 'The reason of the end of the recording; see docs/lifecycles.md.',
      }),
    ),
    size_bytes: Type.Optional(Type.Integer()),
  }),
);

export type StartReplay = Static<typeof StartReplay>;
export type Replay = Static<typeof Replay>;
