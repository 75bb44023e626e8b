import type { Verb } from '../table.ts';

export const deploy: Verb = {
  name: 'deploy',
  operation: 'createDeployment',
  arguments: ['[directory]'],
  without: ['file', 'entrypoint_rel_path'],
  options: [
    ['--entrypoint <file>', 'the file that registers the apps, below the directory'],
    ['--no-follow', 'do not wait for the build'],
  ],
  examples: [
    ['. --entrypoint index.ts', 'this directory without node_modules and .git; prints the log of the build'],
    [
      '--source.type github --source.url https://github.com/me/app --source.ref main --source.entrypoint index.ts',
      'a repository',
    ],
  ],
  run: async (call) => (await import('../does/deploy.ts')).deploy(call),
};

export const invoke: Verb = {
  name: 'invoke',
  operation: 'createInvocation',
  takes: ['app_name', 'action_name'],
  without: ['async', 'payload'],
  options: [
    ['-p, --payload <json>', 'the input of the action; @file, or @- for stdin'],
    ['--no-follow', 'do not wait for it, and print its id'],
  ],
  examples: [
    [`my-app greet --payload '{"name":"Ada"}'`, 'its log is printed to stderr, its result to stdout'],
    ['my-app greet --no-follow -o json', 'only start it'],
  ],
  run: async (call) => (await import('../does/invoke.ts')).invoke(call),
};

export const logs: Verb = {
  name: 'logs',
  arguments: ['<app>'],
  options: [
    ['-f, --follow', 'print new lines as they are written'],
    ['--version <version>', 'of the app; latest if not given'],
    ['--since <time>', 'a time, or a duration such as 5m'],
  ],
  examples: [
    ['my-app -f', 'of an app, as it is written'],
    ['INVOCATION --since 5m', 'of an invocation or of a deployment, by its id'],
  ],
  run: async (call) => (await import('../does/app-logs.ts')).appLogs(call),
};

/** `corral apps …` */
export const apps: readonly Verb[] = [
  {
    name: 'list',
    operation: 'listApps',
    columns: ['app_name', 'version', 'deployment', 'region', 'actions'],
    examples: [
      ['', 'with their actions'],
      ['--app-name my-app -o json', 'the versions of one'],
    ],
  },
];

/** `corral deployments …` */
export const deployments: readonly Verb[] = [
  {
    name: 'list',
    operation: 'listDeployments',
    columns: ['id', 'status', 'entrypoint_rel_path', 'created_at', 'status_reason'],
    examples: [
      ['', 'the first page'],
      ['--app-name my-app -o json', 'of one app'],
    ],
  },
  {
    name: 'get',
    operation: 'getDeployment',
    examples: [
      ['depl_1', 'one of them'],
      ['depl_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'follow',
    operation: 'followDeployment',
    examples: [
      ['depl_1', 'its log and its states'],
      ['depl_1 -o json', 'a line of JSON for each event'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteDeployment',
    done: 'Deleted {}.',
    examples: [
      ['depl_1', 'its actions can no longer be invoked'],
      ['depl_1 -o json', 'prints null'],
    ],
  },
];

/** `corral invocations …` */
export const invocations: readonly Verb[] = [
  {
    name: 'list',
    operation: 'listInvocations',
    columns: ['id', 'app_name', 'action_name', 'status', 'started_at', 'finished_at'],
    examples: [
      ['', 'the first page'],
      ['--app-name my-app --status failed -o json', 'failed invocations'],
    ],
  },
  {
    name: 'get',
    operation: 'getInvocation',
    examples: [
      ['inv_1', 'one of them'],
      ['inv_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'follow',
    operation: 'followInvocation',
    examples: [
      ['inv_1', 'its log and its states'],
      ['inv_1 -o json', 'a line of JSON for each event'],
    ],
  },
  {
    name: 'end',
    operation: 'updateInvocation',
    examples: [
      ['inv_1 --status failed', 'cancel it'],
      [`inv_1 --status succeeded --output '"done"'`, 'end it with a result'],
    ],
  },
  {
    name: 'browsers',
    operation: 'listInvocationBrowsers',
    rows: 'browsers',
    columns: ['session_id', 'name', 'state', 'created_at'],
    examples: [
      ['inv_1', 'the sessions that it created'],
      ['inv_1 -o json', 'for a program'],
    ],
  },
  {
    name: 'end-browsers',
    operation: 'deleteInvocationBrowsers',
    done: 'Ended.',
    examples: [
      ['inv_1', 'end the sessions that it created'],
      ['inv_1 -o json', 'prints null'],
    ],
  },
];
