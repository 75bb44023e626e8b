import type { Verb } from '../table.ts';

export const login: Verb = {
  name: 'login',
  arguments: ['[url]'],
  options: [['--name <name>', 'its name; the host of the address if not given']],
  examples: [
    ['https://corral.example.com', 'asks for the key, checks it, and stores both'],
    ['https://corral.example.com --name work < key.txt', 'the key from stdin'],
  ],
  run: async (call) => (await import('../does/contexts.ts')).login(call),
};

export const logout: Verb = {
  name: 'logout',
  arguments: ['[name]'],
  examples: [
    ['', 'the current service'],
    ['work', 'another service'],
  ],
  run: async (call) => (await import('../does/contexts.ts')).logout(call),
};

/** `corral contexts …` */
export const contexts: readonly Verb[] = [
  {
    name: 'list',
    about: 'The stored services. Their keys are not shown.',
    examples: [
      ['', 'and the current one'],
      ['-o json', 'for a program'],
    ],
    run: async (call) => (await import('../does/contexts.ts')).list(call),
  },
  {
    name: 'use',
    arguments: ['<name>'],
    about: 'Use another service from now on; `local` is the service of this machine.',
    examples: [
      ['work', 'a stored service'],
      ['local', 'the service of this machine'],
    ],
    run: async (call) => (await import('../does/contexts.ts')).use(call),
  },
  {
    name: 'show',
    about: 'The service that a command would use, and the reason.',
    examples: [
      ['', 'from the environment, the contexts and this directory'],
      ['--context work -o json', 'with the options of a command'],
    ],
    run: async (call) => (await import('../does/contexts.ts')).show(call),
  },
];
