import { Type, type Static } from 'typebox';
import { named, nullable, oneOf, Paging, Search, SlugName, Timestamp } from '../api/schema.ts';

export const Extension = named(
  'Extension',
  Type.Object({
    id: Type.String(),
    name: Type.Optional(nullable(Type.String())),
    created_at: Timestamp,
    size_bytes: Type.Integer(),
    checksum: Type.Optional(
      nullable(Type.String({ minLength: 64, maxLength: 64, description: 'sha-256 of the uploaded bytes, in hex.' })),
    ),
    last_used_at: Type.Optional(nullable(Timestamp)),
  }),
);

export const ExtensionSelector = named(
  'BrowserExtension',
  Type.Object(
    { id: Type.Optional(Type.String({ maxLength: 255 })), name: Type.Optional(SlugName) },
    {
      oneOf: [
        { type: 'object', required: ['id'] },
        { type: 'object', required: ['name'] },
      ],
    },
  ),
);

const file = Type.Unsafe<Uint8Array>({
  type: 'string',
  format: 'binary',
  description: 'A zip of the unpacked extension.',
});

export const UploadExtension = Type.Object({
  file,
  name: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9._-]{1,255}$', description: 'Unique in the project.' })),
});

export const LoadExtensions = Type.Object({
  extensions: Type.Array(Type.Object({ name: SlugName, zip_file: file })),
});

export const ExtensionList = Type.Object({ ...Paging, ...Search });

export const FromChromeStore = Type.Object({
  url: Type.String({ maxLength: 2048, description: 'The page of the extension in the store.' }),
  os: oneOf(['win', 'mac', 'linux'], { default: 'linux' }),
});

export type Extension = Static<typeof Extension>;
export type ExtensionSelector = Static<typeof ExtensionSelector>;
export type ExtensionList = Static<typeof ExtensionList>;
export type FromChromeStore = Static<typeof FromChromeStore>;
