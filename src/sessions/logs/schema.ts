import { Type, type Static } from 'typebox';
import { named, oneOf, Timestamp } from '../../api/schema.ts';

export const LogQuery = Type.Object({
  source: oneOf(['path', 'supervisor'], { description: 'A file of the session, or one of its processes.' }),
  follow: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'Send only new lines of a file. Without it, the whole file is sent and the stream ends.',
    }),
  ),
  path: Type.Optional(Type.String({ maxLength: 4096, description: 'With source=path: as the session sees it.' })),
  supervisor_process: Type.Optional(
    Type.String({
      maxLength: 100,
      description:
        'With source=supervisor: chromium, xvnc, recorder, console (while telemetry captures it), and of an ended session processes. The last two are Corral extensions.',
    }),
  ),
});

export const LogEvent = named(
  'LogEvent',
  Type.Object({ event: oneOf(['log']), timestamp: Timestamp, message: Type.String() }),
);

export type LogQuery = Static<typeof LogQuery>;
