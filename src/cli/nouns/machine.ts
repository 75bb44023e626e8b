import { word, type Verb } from '../table.ts';

/** The operator's commands import the service. That is why each is imported when it is called. */
export const consoleLink: Verb = {
  name: 'console',
  examples: [
    ['', 'for the whole organisation'],
    ['--project shop', 'bound to one project'],
  ],
  run: async ({ output, options }) =>
    (await import('../operator/console.ts')).makeConsoleLink(output, options['project'] as string | undefined),
};

export const nodes: Verb = {
  name: 'nodes',
  examples: [
    ['', 'with their load and last sign of life'],
    ['-o json', 'for a program'],
  ],
  run: async ({ output }) => (await import('../operator/nodes.ts')).listNodes(output),
};

export const secrets: readonly Verb[] = [
  {
    name: 'rotate',
    about: 'Create a new service key and encrypt all secrets with it. The service may be running.',
    examples: [
      ['', 'on the data directory of this machine'],
      ['-o json', 'the result as JSON'],
    ],
    run: async ({ output }) => (await import('../operator/secrets.ts')).rotateSecrets(output),
  },
];

export const backup: Verb = {
  name: 'backup',
  arguments: ['<directory>'],
  examples: [
    ['/mnt/backups/monday', 'while the service runs or is stopped'],
    ['"/mnt/backups/$(date +%F)" -o json', 'every day, by a timer'],
  ],
  run: async (call) => (await import('../operator/backup.ts')).backUp(call.output, word(call, 0)),
};

export const doctor: Verb = {
  name: 'doctor',
  examples: [
    ['', 'changes nothing'],
    ['-o json', 'the findings for a program'],
  ],
  async run({ output }) {
    process.argv = [...process.argv.slice(0, 2), ...(output.format === 'table' ? [] : ['--json'])];
    await script('doctor.mjs');
  },
};

export const start: Verb = {
  name: 'start',
  options: [['--as-is', 'do not install missing system packages']],
  examples: [
    ['', 'in the directory ./data, at port 3000'],
    ['--as-is', 'with the parts that this machine has'],
  ],
  async run({ options }) {
    process.argv = [...process.argv.slice(0, 2), ...(options['as-is'] ? ['--as-is'] : [])];
    await script('start.mjs');
  },
};

/** What also runs without a build is a script of the package. */
async function script(name: string): Promise<void> {
  await import(new URL(`../../../scripts/${name}`, import.meta.url).href);
}
