import type { Verb } from '../table.ts';

/** `corral browsers process …` */
export const processes: readonly Verb[] = [
  {
    name: 'exec',
    operation: 'processExec',
    arguments: ['<command...>'],
    without: ['command', 'args'],
    about: 'Run a program and wait for it. Prints its output and exits with its exit code.',
    examples: [
      ['my-session -- ls -la /tmp', 'the command follows --'],
      [`my-session --cwd /tmp -- sh -c 'echo $PWD'`, 'a shell command'],
    ],
    run: async (call) => (await import('../does/process.ts')).exec(call),
  },
  {
    name: 'spawn',
    operation: 'processSpawn',
    arguments: ['<command...>'],
    without: ['command', 'args'],
    about: 'Start a program and leave it running.',
    examples: [
      ['my-session -- sleep 60', 'and print its process id'],
      ['my-session --allocate-tty -- bash', 'on a terminal, to attach to'],
    ],
    run: async (call) => (await import('../does/process.ts')).spawn(call),
  },
  {
    name: 'status',
    operation: 'processStatus',
    examples: [
      ['my-session proc_1', 'its state and resource usage'],
      ['my-session proc_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'output',
    operation: 'processStdoutStream',
    about: 'The output of a process, from its start until it ends.',
    examples: [
      ['my-session proc_1', 'exits with its exit code'],
      ['my-session proc_1 -o json', 'a line of JSON for each piece'],
    ],
    run: async (call) => (await import('../does/process.ts')).output(call),
  },
  {
    name: 'write',
    operation: 'processStdin',
    without: ['data_b64'],
    arguments: ['[text]'],
    about: 'Write a text, or stdin, to the standard input of a process.',
    examples: [
      [`my-session proc_1 'hello'`, 'a text, without a line end'],
      ['my-session proc_1 --eof', 'from stdin, and close it'],
    ],
    run: async (call) => (await import('../does/process.ts')).write(call),
  },
  {
    name: 'resize',
    operation: 'processResize',
    takes: ['rows', 'cols'],
    done: 'Resized.',
    examples: [
      ['my-session proc_1 24 80', 'rows and columns'],
      ['my-session proc_1 50 200 -o json', 'for a program'],
    ],
  },
  {
    name: 'kill',
    operation: 'processKill',
    done: 'Sent.',
    examples: [
      ['my-session proc_1', 'TERM'],
      ['my-session proc_1 --signal KILL', 'another signal'],
    ],
  },
  {
    name: 'attach',
    arguments: ['<id>', '<process-id>'],
    about: 'Attach this terminal to a process that was spawned with --allocate-tty.',
    examples: [
      ['my-session proc_1', 'its output from the start, and your input'],
      ['my-session proc_1 < commands.txt', 'input from a file'],
    ],
    run: async (call) => (await import('../does/shell.ts')).attach(call),
  },
];
