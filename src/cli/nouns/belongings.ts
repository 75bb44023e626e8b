import type { Verb } from '../table.ts';

const file = ['-f, --file <path>', 'the target file; - is stdout'] as const;

/** `corral profiles …` */
export const profiles: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createProfile',
    examples: [
      ['--name shop', 'an empty one'],
      ['--name shop -o json', 'for a program'],
    ],
  },
  {
    name: 'list',
    operation: 'listProfiles',
    columns: ['id', 'name', 'created_at', 'updated_at', 'last_used_at'],
    examples: [
      ['', 'the first page'],
      ['--query shop -o json', 'matching profiles'],
    ],
  },
  {
    name: 'get',
    operation: 'getProfile',
    examples: [
      ['shop', 'by name or id'],
      ['shop -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateProfile',
    examples: [
      ['shop --name store', 'rename it'],
      ['shop --name store -o json', 'for a program'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteProfile',
    done: 'Deleted {}.',
    examples: [
      ['shop', 'with all its versions'],
      ['shop -o json', 'prints null'],
    ],
  },
  {
    name: 'download',
    operation: 'downloadProfile',
    options: [file],
    examples: [
      ['shop', 'to shop.tar.zst'],
      ['shop --file backup.tar.zst', 'to a named file'],
    ],
    run: async (call) => (await import('../does/belongings.ts')).downloadProfile(call),
  },
  {
    name: 'versions',
    operation: 'listProfileVersions',
    columns: ['id', 'created_at', 'size_bytes', 'session_id', 'current'],
    examples: [
      ['shop', 'with the session that saved each'],
      ['shop -o json', 'for a program'],
    ],
  },
  {
    name: 'restore',
    operation: 'restoreProfileVersion',
    examples: [
      ['shop VERSION', 'go back to a version'],
      ['shop VERSION -o json', 'for a program'],
    ],
  },
];

/** `corral extensions …` */
export const extensions: readonly Verb[] = [
  {
    name: 'upload',
    operation: 'uploadExtension',
    without: ['file'],
    arguments: ['<zip>'],
    examples: [
      ['blocker.zip --name blocker', 'a zip of the unpacked extension'],
      ['blocker.zip -o json', 'without a name'],
    ],
    run: async (call) => (await import('../does/upload.ts')).uploadExtension(call),
  },
  {
    name: 'list',
    operation: 'listExtensions',
    columns: ['id', 'name', 'size_bytes', 'created_at', 'last_used_at'],
    examples: [
      ['', 'the first page'],
      ['--all -o json', 'all of them'],
    ],
  },
  {
    name: 'get',
    operation: 'getExtension',
    examples: [
      ['blocker', 'by name or id'],
      ['blocker -o json', 'for a program'],
    ],
  },
  {
    name: 'download',
    operation: 'downloadExtension',
    file: '{}.zip',
    options: [file],
    examples: [
      ['blocker', 'to blocker.zip'],
      ['blocker --file other.zip', 'to a named file'],
    ],
  },
  {
    name: 'store',
    operation: 'getExtensionFromChromeStore',
    takes: ['url'],
    file: 'extension.zip',
    options: [file],
    examples: [
      ['https://chromewebstore.google.com/detail/… --file blocker.zip', 'download one as a zip'],
      ['https://chromewebstore.google.com/detail/… --os linux', 'for a system'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteExtension',
    done: 'Deleted {}.',
    examples: [
      ['blocker', 'by name or id'],
      ['blocker -o json', 'prints null'],
    ],
  },
];

/** `corral proxies …` */
export const proxies: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createProxy',
    examples: [
      [`--type custom --protocol http --config '{"host":"proxy.example.com","port":3128}'`, 'your own'],
      ['--body @proxy.json', 'as a file describes it, with its password'],
    ],
  },
  {
    name: 'list',
    operation: 'listProxies',
    columns: ['id', 'name', 'type', 'protocol', 'status', 'ip_address', 'last_checked'],
    examples: [
      ['', 'the first page'],
      ['--all -o json', 'all of them'],
    ],
  },
  {
    name: 'get',
    operation: 'getProxy',
    examples: [
      ['proxy_1', 'one of them'],
      ['proxy_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateProxy',
    examples: [
      ['proxy_1 --name office', 'rename it'],
      ['proxy_1 --name office -o json', 'for a program'],
    ],
  },
  {
    name: 'check',
    operation: 'checkProxy',
    examples: [
      ['proxy_1', 'whether it works, and its public address'],
      ['proxy_1 --url https://example.com', 'with another address'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteProxy',
    done: 'Deleted {}.',
    examples: [
      ['proxy_1', 'one of them'],
      ['proxy_1 -o json', 'prints null'],
    ],
  },
];
