import type { Verb } from '../table.ts';

const recursive = ['-r, --recursive', 'directories, with everything in them'] as const;

/** `corral cp`, and `corral browsers fs cp`. */
export const copy: Verb = {
  name: 'cp',
  arguments: ['<from>', '<to>'],
  options: [recursive],
  about: 'Copy a file or a directory to a session (ID:/path) or from it.',
  examples: [
    ['a.txt my-session:/tmp/', 'to a session'],
    ['-r my-session:/tmp/downloads .', 'a directory, from a session'],
  ],
  run: async (call) => (await import('../does/copy.ts')).copy(call),
};

/** `corral browsers fs …` */
export const fs: readonly Verb[] = [
  {
    name: 'ls',
    operation: 'listFiles',
    takes: ['path'],
    columns: ['mode', 'size_bytes', 'mod_time', 'name'],
    examples: [
      ['my-session /tmp', 'a directory'],
      ['my-session /tmp -o jsonl', 'a line of JSON for each'],
    ],
  },
  {
    name: 'stat',
    operation: 'fileInfo',
    takes: ['path'],
    examples: [
      ['my-session /tmp/a.txt', 'size, mode and time'],
      ['my-session /tmp -o json', 'of a directory'],
    ],
  },
  {
    name: 'cat',
    operation: 'readFile',
    takes: ['path'],
    about: 'Print a file.',
    examples: [
      ['my-session /tmp/a.txt', 'on stdout'],
      ['my-session /tmp/a.png > a.png', 'unchanged bytes'],
    ],
    run: async (call) => (await import('../does/copy.ts')).cat(call),
  },
  {
    name: 'write',
    operation: 'writeFile',
    takes: ['path'],
    about: 'Write stdin to a file.',
    examples: [
      ['my-session /tmp/a.txt < a.txt', 'a local file'],
      ['my-session /tmp/run.sh --mode 755 < run.sh', 'with a mode'],
    ],
    run: async (call) => (await import('../does/copy.ts')).write(call),
  },
  copy,
  {
    name: 'mkdir',
    operation: 'createDirectory',
    takes: ['path'],
    done: 'Made.',
    examples: [
      ['my-session /tmp/one/two', 'with its parent directories'],
      ['my-session /tmp/mine --mode 700', 'with a mode'],
    ],
  },
  {
    name: 'rm',
    arguments: ['<id>', '<path>'],
    options: [recursive],
    about: 'Remove a file, or with -r a directory.',
    examples: [
      ['my-session /tmp/a.txt', 'a file'],
      ['my-session -r /tmp/one', 'a directory'],
    ],
    run: async (call) => (await import('../does/copy.ts')).remove(call),
  },
  {
    name: 'mv',
    operation: 'movePath',
    takes: ['src_path', 'dest_path'],
    done: 'Moved.',
    examples: [
      ['my-session /tmp/a.txt /tmp/b.txt', 'rename'],
      ['my-session /tmp/one /home/user/one', 'a directory'],
    ],
  },
  {
    name: 'chmod',
    operation: 'setFilePermissions',
    takes: ['mode', 'path'],
    done: 'Set.',
    examples: [
      ['my-session 755 /tmp/run.sh', 'a mode'],
      ['my-session 600 /tmp/secret --owner user', 'and an owner'],
    ],
  },
  {
    name: 'watch',
    operation: 'startFsWatch',
    takes: ['path'],
    about: 'Print the changes in a directory until interrupted.',
    options: [['--count <number>', 'end after so many events']],
    examples: [
      ['my-session /tmp', 'one directory'],
      ['my-session /home/user --recursive -o json', 'with subdirectories, as lines of JSON'],
    ],
    run: async (call) => (await import('../does/watch.ts')).watch(call),
  },
];
