import type { Verb } from '../table.ts';

export const login: Verb = {
  name: 'login',
  arguments: ['[url]'],
  options: [['--name <name>', 'what to call it; the host of the address if not given']],
  examples: [
    ['https://corral.example.com', 'asks for the key, tries it, and keeps both'],
    ['https://corral.example.com --name work < key.txt', 'the key from stdin'],
  ],
  run: async (call) => (await import('../does/contexts.ts')).login(call),
};

export const logout: Verb = {
  name: 'logout',
  arguments: ['[name]'],
  examples: [
    ['', 'the one that is used'],
    ['work', 'another one'],
  ],
  run: async (call) => (await import('../does/contexts.ts')).logout(call),
};

/** `corral contexts …` */
export const contexts: readonly Verb[] = [
  {
    name: 'list',
    about: 'The services that are kept. Their keys are not shown.',
    examples: [
      ['', 'and which of them is used'],
      ['-o json', 'for a program'],
    ],
    run: async (call) => (await import('../does/contexts.ts')).list(call),
  },
  {
    name: 'use',
    arguments: ['<name>'],
    about: 'Use another one from now on; `local` is the service of this machine.',
    examples: [
      ['work', 'one that is kept'],
      ['local', 'the one of this machine'],
    ],
    run: async (call) => (await import('../does/contexts.ts')).use(call),
  },
  {
    name: 'show',
    about: 'Which service a command would use now, and why.',
    examples: [
      ['', 'by the environment, the contexts and this directory'],
      ['--context work -o json', 'with what a command names'],
    ],
    run: async (call) => (await import('../does/contexts.ts')).show(call),
  },
];
