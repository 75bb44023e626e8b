import type { Verb } from '../table.ts';

/** `corral projects …` */
export const projects: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createProject',
    takes: ['name'],
    examples: [
      ['shop', 'a project'],
      ['shop -o json', 'for a program'],
    ],
  },
  {
    name: 'list',
    operation: 'listProjects',
    columns: ['id', 'name', 'status', 'created_at'],
    examples: [
      ['', 'the first page'],
      ['--all -o json', 'all of them'],
    ],
  },
  {
    name: 'get',
    operation: 'getProject',
    examples: [
      ['proj_1', 'one of them'],
      ['proj_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateProject',
    examples: [
      ['proj_1 --name store', 'rename it'],
      ['proj_1 --status archived', 'no new sessions in it'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteProject',
    done: 'Deleted {}.',
    examples: [
      ['proj_1', 'an empty project'],
      ['proj_1 -o json', 'prints null'],
    ],
  },
  {
    name: 'limits',
    about: 'the limits of a project',
    verbs: [
      {
        name: 'get',
        operation: 'getProjectLimits',
        examples: [
          ['proj_1', 'null means no limit of its own'],
          ['proj_1 -o json', 'for a program'],
        ],
      },
      {
        name: 'set',
        operation: 'updateProjectLimits',
        examples: [
          ['proj_1 --max-concurrent-sessions 5', 'one limit'],
          [`proj_1 --body '{"max_concurrent_sessions":null}'`, 'remove the limit'],
        ],
      },
    ],
  },
];

/** `corral keys …` */
export const keys: readonly Verb[] = [
  {
    name: 'create',
    options: [
      ['--name <name>', 'its name (required)'],
      ['--project <project>', 'id or name of the only project that it may use'],
      ['--days <number>', 'days until it expires'],
    ],
    about: 'Create a key and print it once.',
    examples: [
      ['--name laptop', 'for the whole organisation'],
      ['--name ci --project shop --days 30', 'for one project, and a month'],
    ],
    run: async (call) => (await import('../does/keys.ts')).create(call),
  },
  {
    name: 'list',
    options: [['--all', 'include revoked keys']],
    about: 'The keys, masked.',
    examples: [
      ['', 'valid keys'],
      ['--all -o json', 'also revoked keys'],
    ],
    run: async (call) => (await import('../does/keys.ts')).list(call),
  },
  {
    name: 'revoke',
    arguments: ['<id>'],
    about: 'Revoke a key immediately, on every node.',
    examples: [
      ['key_1', '`corral keys list` has the ids'],
      ['key_1 -o json', 'prints null'],
    ],
    run: async (call) => (await import('../does/keys.ts')).revoke(call),
  },
  {
    name: 'get',
    operation: 'getApiKey',
    examples: [
      ['key_1', 'one of them, masked'],
      ['key_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateApiKey',
    examples: [
      ['key_1 --name phone', 'rename it'],
      ['key_1 --name phone -o json', 'for a program'],
    ],
  },
  {
    name: 'rotate',
    operation: 'rotateApiKey',
    examples: [
      ['key_1', 'a new key in its place'],
      ['key_1 --expire-in-days 7', 'the old key works for another week'],
    ],
  },
];

export const events: Verb = {
  name: 'events',
  operation: 'streamEvents',
  options: [
    ['--since <id>', 'start after this event; the service keeps events for an hour'],
    ['--count <number>', 'end after so many events'],
  ],
  examples: [
    ['', 'of the project of the key, from now on'],
    ['--project shop --since 4711 -o json', 'of another project, one line of JSON for each'],
  ],
  run: async (call) => (await import('../does/events.ts')).follow(call),
};

/** `corral audit …` */
export const audit: readonly Verb[] = [
  {
    name: 'list',
    operation: 'listAuditLogs',
    without: ['start', 'end'],
    options: [
      ['--all', 'every page'],
      ['--start <time>', 'a day ago if not given'],
      ['--end <time>', 'now if not given'],
    ],
    examples: [
      ['', 'of the last day'],
      ['--start 2026-01-01T00:00:00Z --method DELETE -o jsonl', 'since a time, of one kind'],
    ],
    run: async (call) => (await import('../does/audit.ts')).list(call),
  },
  {
    name: 'export',
    operation: 'exportAuditLogs',
    without: ['start', 'end', 'cursor', 'format', 'limit'],
    options: [
      ['--start <time>', 'a day ago if not given'],
      ['--end <time>', 'now if not given'],
      ['-f, --file <path>', 'the target file; - is stdout'],
    ],
    examples: [
      ['--file audit.jsonl', 'of the last day'],
      ['--start 2026-01-01T00:00:00Z > audit.jsonl', 'since a time'],
    ],
    run: async (call) => (await import('../does/audit.ts')).exportAll(call),
  },
];

export const about: Verb = {
  name: 'about',
  operation: 'getAbout',
  examples: [
    ['', 'with an organisation-wide key'],
    ['-o json', 'all of it for a program'],
  ],
  run: async (call) => (await import('../does/about.ts')).about(call),
};
