import { Type, type Static } from 'typebox';
import { named, nullable, oneOf, Timestamp } from '../api/schema.ts';

const { Integer, String: Text, Optional, Object: Shape } = Type;

/** Every type of event. The triggers of migration 0019 write them. */
export const projectEventTypes = [
  ...['created', 'live', 'standby', 'woken', 'changed', 'leased', 'returned', 'stopping', 'ended'].map(
    (what) => `session.${what}`,
  ),
  ...['created', 'changed', 'counts', 'deleted'].map((what) => `pool.${what}`),
  ...['created', 'changed', 'saved', 'save_failed', 'deleted'].map((what) => `profile.${what}`),
  ...['created', 'changed', 'deleted'].map((what) => `extension.${what}`),
  ...['created', 'changed', 'checked', 'deleted'].map((what) => `proxy.${what}`),
  ...['created', 'changed', 'deleted'].map((what) => `credential.${what}`),
  ...['created', 'changed', 'deleted'].map((what) => `credential_provider.${what}`),
  ...['created', 'changed', 'flow', 'deleted'].map((what) => `auth_connection.${what}`),
  ...['created', 'changed'].map((what) => `deployment.${what}`),
  ...['created', 'changed'].map((what) => `invocation.${what}`),
  ...['created', 'changed'].map((what) => `replay.${what}`),
  ...['created', 'changed', 'deleted'].map((what) => `api_key.${what}`),
  ...['created', 'changed', 'deleted'].map((what) => `project.${what}`),
  'node.joined',
  'node.left',
];

export const ProjectEvent = named(
  'ProjectEvent',
  Shape({
    id: Integer({ description: 'The position in the stream, also the id of its frame. It rises with each event.' }),
    type: oneOf(['stream.opened', 'stream.gap', ...projectEventTypes], {
      description:
        '`stream.opened` is the first event of every stream. `stream.gap` means that earlier events are lost: read the state again.',
    }),
    time: Timestamp,
    project_id: nullable(Text({ description: 'Null for resources of the whole organisation.' })),
    resource_id: Optional(
      Text({ description: 'The id of the changed resource. Left out in events about the stream.' }),
    ),
    data: Type.Record(Text(), Type.Unknown(), {
      description:
        'The fields for lists: name, state, counts. Fields without a value are left out. Read the rest by its id.',
    }),
  }),
);
export type ProjectEvent = Static<typeof ProjectEvent>;

export const EventStreamHeaders = Shape({
  'Last-Event-ID': Optional(
    Text({ maxLength: 32, description: 'Continues after the event with this id. Events are kept for an hour.' }),
  ),
});
