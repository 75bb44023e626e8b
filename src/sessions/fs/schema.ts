import { eventTypes } from '../../chromium/guest/protocol.ts';
import { Type, type Static } from 'typebox';
import { named, oneOf, Timestamp } from '../../api/schema.ts';

/** A path inside the session. It cannot reach another session. */
const Path = Type.String({ pattern: '^/.*', maxLength: 4096 });
const Mode = Type.String({ pattern: '^[0-7]{3,4}$', description: 'As chmod takes it: 644.' });

export const AtPath = Type.Object({ path: Path });
export const WriteFile = Type.Object({ path: Path, mode: Type.Optional(Mode) });
export const PathRequest = named('PathRequest', Type.Object({ path: Path }, { additionalProperties: false }));
export const CreateDirectory = named(
  'CreateDirectoryRequest',
  Type.Object({ path: Path, mode: Type.Optional(Mode) }, { additionalProperties: false }),
);
export const MovePath = named(
  'MovePathRequest',
  Type.Object({ src_path: Path, dest_path: Path }, { additionalProperties: false }),
);
export const SetPermissions = named(
  'SetFilePermissionsRequest',
  Type.Object(
    {
      path: Path,
      mode: Mode,
      owner: Type.Optional(Type.String({ maxLength: 64, description: 'A name or a uid.' })),
      group: Type.Optional(Type.String({ maxLength: 64, description: 'A name or a gid.' })),
    },
    { additionalProperties: false },
  ),
);

export const FileInfo = named(
  'FileInfo',
  Type.Object({
    name: Type.String(),
    path: Type.String(),
    size_bytes: Type.Integer({ description: '0 for directories.' }),
    is_dir: Type.Boolean(),
    mod_time: Timestamp,
    mode: Type.String({ description: 'drwxr-xr-x' }),
  }),
);

const File = Type.Unsafe<unknown>({ type: 'string', format: 'binary' });
export const UploadFiles = Type.Object({
  files: Type.Array(Type.Object({ file: File, dest_path: Path }), {
    description: 'files[0][file], files[0][dest_path], and so on, in any order.',
  }),
});
export const UploadZip = Type.Object({ zip_file: File, dest_path: Path });

export const DownloadZstd = Type.Object({
  path: Path,
  compression_level: Type.Optional(oneOf(['fastest', 'default', 'better', 'best'], { default: 'default' })),
});
export const UploadZstd = Type.Object({
  archive: File,
  dest_path: Path,
  strip_components: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 999,
      default: 0,
      description: 'The number of leading directories to remove from each name.',
    }),
  ),
});

export const StartWatch = named(
  'StartFsWatchRequest',
  Type.Object(
    {
      path: Type.String({ pattern: '^/.*', maxLength: 4096, description: 'A directory.' }),
      recursive: Type.Optional(Type.Boolean({ default: false, description: 'Include subdirectories, also new ones.' })),
    },
    { additionalProperties: false },
  ),
);
export const StartedWatch = named('StartFsWatchResult', Type.Object({ watch_id: Type.String() }));

export const FileEvent = named(
  'FileSystemEvent',
  Type.Object({
    type: oneOf(eventTypes, {
      description:
        'RENAME has the old path; CREATE with the new path follows. OVERFLOW: events were not read in time, and `dropped` events are missing.',
    }),
    path: Type.String(),
    name: Type.Optional(Type.String()),
    is_dir: Type.Optional(Type.Boolean()),
    cookie: Type.Optional(Type.Integer({ description: 'A RENAME and its CREATE have the same number.' })),
    dropped: Type.Optional(Type.Integer()),
  }),
);

export type FileInfo = Static<typeof FileInfo>;
export type FileEvent = Static<typeof FileEvent>;
