import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const bin = join(import.meta.dirname, '../node_modules/agent-browser/bin/agent-browser.js');

/** Runs one command as a shell does. */
function run(c, ...args) {
  return new Promise((resolve, reject) => {
    const [file, ...words] = c.inHosts([process.execPath, bin, ...c.flags, ...args]);
    const child = spawn(file, words, { cwd: c.dir, env: { ...c.env, ...c.more }, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
    child.once('error', reject);
    child.once('exit', (code) =>
      // The daemon keeps the pipes open: the command's own end counts.
      setImmediate(() => (code === 0 ? resolve(said) : reject(new Error(`${args.join(' ')}: ${said.trim() || code}`)))),
    );
  });
}

const driver = (name, { flags = () => [], env = () => ({}), makesSession = false, hosts = false }) => ({
  name,
  makesSession,
  hosts,
  steps: {
    async open(c) {
      c.flags = flags(c.session);
      c.more = { AGENT_BROWSER_SESSION: c.run, AGENT_BROWSER_DEFAULT_TIMEOUT: '120000', ...env(c) };
      await run(c, 'open', c.url);
    },
    click: (c) => run(c, 'click', '#count'),
    type: (c) => run(c, 'fill', '#name', c.words.name),
    select: (c) => run(c, 'select', '#colour', c.words.colour),
    upload: (c) => run(c, 'upload', '#file', c.note.inSession),
    download: (c) => run(c, 'click', '#report'),
    async screenshot(c) {
      await run(c, 'screenshot', join(c.dir, 'shot.png'));
      return readFile(join(c.dir, 'shot.png'));
    },
    async pdf(c) {
      await run(c, 'pdf', join(c.dir, 'page.pdf'));
      return readFile(join(c.dir, 'page.pdf'));
    },
    tab: (c) => run(c, 'tab', 'new', c.secondUrl),
    async dialog(c) {
      const [, first] = /\[?(t?\d+)\]?.*run=/.exec(await run(c, 'tab', 'list')) ?? [];
      await run(c, 'tab', first ?? 't1');
      const clicked = run(c, 'click', '#ask').catch(() => {}); // it waits until the dialog is gone, or in vain
      await c.until(async () => /open|confirm|Go on/.test(await run(c, 'dialog', 'status')) || undefined);
      await run(c, 'dialog', 'accept');
      await clicked;
    },
    close: (c) => run(c, 'close'),
  },
  end: (c) => c.flags && run(c, 'close').catch(() => {}),
});

export default [
  driver('agent-browser, kernel provider', {
    flags: () => ['-p', 'kernel'],
    env: ({ service }) => ({
      KERNEL_API_KEY: service.key,
      KERNEL_ENDPOINT: service.url,
      KERNEL_HEADLESS: 'true',
      KERNEL_STEALTH: 'false',
    }),
    makesSession: true,
  }),
  driver('agent-browser, --cdp', { flags: ({ cdp_ws_url }) => ['--cdp', cdp_ws_url] }),
  driver('agent-browser, base_url', { flags: ({ base_url }) => ['--cdp', base_url], hosts: true }),
];
