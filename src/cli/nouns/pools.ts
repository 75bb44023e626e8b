import type { Verb } from '../table.ts';

/** `corral pools …` */
export const pools: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createBrowserPool',
    examples: [
      ['--name shop --size 3 --headless', 'three warm browsers'],
      ['--body @pool.json', 'as a file describes it'],
    ],
  },
  {
    name: 'list',
    operation: 'listBrowserPools',
    columns: ['id', 'name', 'available_count', 'acquired_count', 'warming_count', 'waiting_count', 'last_error'],
    examples: [
      ['', 'with how many browsers are free'],
      ['-o json', 'for a program'],
    ],
  },
  {
    name: 'get',
    operation: 'getBrowserPool',
    examples: [
      ['shop', 'by name or id'],
      ['shop -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateBrowserPool',
    examples: [
      ['shop --size 5', 'make it larger'],
      ['shop --start-url https://example.com --discard-all-idle', 'and replace the idle browsers'],
    ],
  },
  {
    name: 'acquire',
    operation: 'acquireBrowser',
    done: 'No browser became free in time.',
    examples: [
      ['shop', 'take a browser, or wait for one'],
      ['shop --acquire-timeout-seconds 5 -o json', 'a shorter wait; prints null if no browser is free'],
    ],
    run: async (call) => (await import('../does/acquire.ts')).acquire(call),
  },
  {
    name: 'release',
    operation: 'releaseBrowser',
    takes: ['session_id'],
    done: 'Released.',
    examples: [
      ['shop SESSION', 'give it back'],
      ['shop SESSION --no-reuse', 'and replace it by a new one'],
    ],
  },
  {
    name: 'flush',
    operation: 'flushBrowserPool',
    done: 'Flushed {}.',
    examples: [
      ['shop', 'replace the idle browsers'],
      ['shop -o json', 'prints null'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteBrowserPool',
    done: 'Deleted {}.',
    examples: [
      ['shop', 'refused while browsers are leased'],
      ['shop --force', 'also end leased browsers'],
    ],
  },
];
