import { Type, type Static } from 'typebox';
import { FreeName, named, nullable, oneOf, Paging, Search, SlugName, Timestamp } from '../api/schema.ts';

/** Fields that a session also shows of its profile. */
const facts = {
  id: Type.String(),
  name: Type.Optional(nullable(Type.String())),
  created_at: Timestamp,
  updated_at: Type.Optional(Timestamp),
  last_used_at: Type.Optional(Timestamp),
};

export const SessionProfile = named('BrowserProfileRef', Type.Object(facts));

export const Profile = named(
  'Profile',
  Type.Object({
    ...facts,
    last_save_error: Type.Optional(
      Type.Object(
        { message: Type.String(), at: Timestamp },
        {
          description:
            'The error of the last save, until a save succeeds; the version before is kept. Corral extension.',
        },
      ),
    ),
  }),
);

export const ProfileSelector = named(
  'BrowserProfile',
  Type.Object(
    {
      id: Type.Optional(Type.String({ maxLength: 255 })),
      name: Type.Optional(SlugName),
      save_changes: Type.Optional(
        Type.Boolean({
          default: false,
          description: 'Write the profile back when the session ends by delete or idle timeout.',
        }),
      ),
      force: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            'Save even if another session saves to the same profile; the state of the session that ends last is kept. Corral extension.',
        }),
      ),
    },
    {
      oneOf: [
        { type: 'object', required: ['id'] },
        { type: 'object', required: ['name'] },
      ],
    },
  ),
);

export const CreateProfile = named(
  'ProfileRequest',
  Type.Object({
    name: Type.Optional({
      ...FreeName,
      description: 'Unique in the project. Sessions find it by name if it has only letters, digits, `.`, `_` and `-`.',
    } as typeof FreeName),
  }),
);

export const UpdateProfile = named('ProfileUpdateRequest', Type.Object({ name: FreeName }));

export const ProfileList = Type.Object({
  ...Paging,
  ...Search,
  query: Type.Optional(
    Type.String({ maxLength: 1024, description: 'Case-insensitive part of the name or of the id.' }),
  ),
});

export const ProfileDownload = Type.Object({
  format: oneOf(['tar.zst', 'tar'], { default: 'tar.zst', description: 'tar: the service decompresses it.' }),
});

export const ProfileVersion = named(
  'ProfileVersion',
  Type.Object({
    id: Type.String(),
    created_at: Timestamp,
    size_bytes: Type.Integer({ description: 'Of the archive, compressed.' }),
    session_id: Type.String({ description: 'The session that saved it.' }),
    current: Type.Boolean({ description: 'Sessions start with this version.' }),
  }),
);

export type Profile = Static<typeof Profile>;
export type SessionProfile = Static<typeof SessionProfile>;
export type ProfileSelector = Static<typeof ProfileSelector>;
export type ProfileList = Static<typeof ProfileList>;
export type ProfileVersion = Static<typeof ProfileVersion>;
