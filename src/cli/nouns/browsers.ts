import { askJson } from '../client/http.ts';
import { fillPath } from '../client/operations.ts';
import type { Verb } from '../table.ts';
import { word } from '../table.ts';
import { computer } from './computer.ts';
import { fs } from './files.ts';
import { processes } from './processes.ts';
import { replays, telemetry } from './recordings.ts';

const view: Verb = {
  name: 'view',
  operation: 'createBrowserLiveViewLink',
  about: 'A link to the live view. It lets a person watch; with --no-read-only also click and type.',
  options: [['--open', 'open it in the browser of this machine']],
  examples: [
    ['my-session --open', 'watch it now'],
    ['my-session --expires-in-seconds 600', 'a link for ten minutes, for another person'],
  ],
  async run(call) {
    const path = fillPath('/browsers/{id}/live_view_links', [word(call, 0)]);
    const link = await askJson<{ url: string }>(call.target(), { method: 'POST', path, body: call.body });
    call.output.done(link.url, link);
    if (call.options['open']) await (await import('../open-address.ts')).openAddress(link.url);
  },
};

const playwright: Verb = {
  name: 'playwright',
  about: 'run Playwright code next to the browser',
  verbs: [
    {
      name: 'execute',
      operation: 'executePlaywrightCode',
      about: 'Run code with `page`, `context` and `browser` in its scope, and print its result.',
      without: ['code'],
      arguments: ['[code]'],
      options: [['-f, --file <path>', 'the file that has the code; - is stdin']],
      examples: [
        [`my-session "await page.goto('https://example.com'); return page.title()"`, 'print the title'],
        ['my-session --file steps.js -o json', 'code from a file'],
      ],
      run: async (call) => (await import('../does/playwright.ts')).executePlaywright(call),
    },
  ],
};

/** `corral browsers …` */
export const browsers: readonly Verb[] = [
  {
    name: 'create',
    operation: 'createBrowser',
    examples: [
      ['--headless --name my-session', 'and print its addresses'],
      ['--profile.name shop --profile.save-changes -o json', 'with the state of a profile'],
    ],
  },
  {
    name: 'list',
    operation: 'listBrowsers',
    columns: ['session_id', 'name', 'state', 'headless', 'created_at', 'ends_at', 'active_page.url'],
    examples: [
      ['', 'running sessions'],
      ['--status all --all -o json', 'also ended sessions, every page'],
    ],
  },
  {
    name: 'get',
    operation: 'getBrowser',
    examples: [
      ['my-session', 'by name or id'],
      ['my-session -o json', 'for a program'],
    ],
  },
  {
    name: 'update',
    operation: 'updateBrowser',
    examples: [
      ['my-session --name other-name', 'rename it'],
      ['my-session --viewport.width 1280 --viewport.height 800', 'resize it'],
    ],
  },
  {
    name: 'delete',
    operation: 'deleteBrowser',
    done: 'Deleted {}.',
    examples: [
      ['my-session', 'ends it, and saves its profile if it has save_changes'],
      ['my-session -o json', 'prints null'],
    ],
  },
  view,
  {
    name: 'logs',
    operation: 'logsStream',
    about: 'The output of the processes of a session, or a file of it.',
    without: ['follow', 'source'],
    options: [
      ['-f, --follow', 'print new lines as they are written'],
      ['--source <path|supervisor>', 'a file, or the processes of the session (supervisor is the default)'],
    ],
    examples: [
      ['my-session', 'the output of its processes'],
      ['my-session -f --path /tmp/my.log', 'a file, as it grows'],
    ],
    run: async (call) => (await import('../does/logs.ts')).browserLogs(call),
  },
  {
    name: 'curl',
    operation: 'browserCurl',
    takes: ['url'],
    without: ['method', 'headers', 'body'],
    options: [
      ['-X, --method <method>', 'GET unless there is data'],
      ['-H, --header <header...>', '"Name: value", as often as needed'],
      ['-d, --data <text>', 'the body; @file, or @- for stdin'],
    ],
    about: 'Send a request through the session: with the cookies, the fingerprint and the proxy of its browser.',
    examples: [
      ['my-session https://example.com/', 'print the body'],
      [`my-session https://example.com/api -X POST -d '{"a":1}'`, 'send a body'],
    ],
    run: async (call) => (await import('../does/curl.ts')).browserCurl(call),
  },
  {
    name: 'shell',
    arguments: ['<id>', '[command...]'],
    options: [['--as-root', 'as root of the session']],
    about: 'A terminal inside the session. Its exit code is that of the shell.',
    examples: [
      ['my-session', 'a shell'],
      ['my-session -- top -b -n 1', 'another program'],
    ],
    run: async (call) => (await import('../does/shell.ts')).shell(call),
  },
  {
    name: 'run',
    operation: 'createBrowser',
    arguments: ['<script>', '[words...]'],
    options: [['--keep', 'keep the session, and print its id']],
    about: 'Create a session, run a local script with it, and end the session in any case.',
    examples: [
      ['script.ts', 'the script exports a function that is called with { page, context, browser, session }'],
      ['script.ts --headless -- first second', 'with words in process.argv'],
    ],
    run: async (call) => (await import('../does/run-script.ts')).runScript(call),
  },
  {
    name: 'extend',
    operation: 'uploadExtensionsToBrowser',
    arguments: ['<zip...>'],
    without: ['extensions'],
    about: 'Load extensions from local zips into a running session.',
    examples: [
      ['my-session blocker.zip', 'the name is that of the file'],
      ['my-session one.zip two.zip', 'two of them'],
    ],
    run: async (call) => (await import('../does/upload.ts')).loadExtensions(call),
  },
  { name: 'process', about: 'programs inside a session', verbs: processes },
  { name: 'fs', about: 'files of a session', verbs: fs },
  { name: 'computer', about: 'mouse, keyboard, clipboard and screenshots', verbs: computer },
  playwright,
  { name: 'replays', about: 'videos of a session', verbs: replays },
  { name: 'telemetry', about: 'events of a session', verbs: telemetry },
];
