import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProxy, startSite, words } from './site.mjs';

/**
 * Leads clients that people bring through the same tour of a session of the real service, and prints what works:
 *   npm run test:clients [-- PART OF A NAME ...]
 * What a step did is asked of the page, the session's files and the service, not of the client.
 */
const titles = {
  open: 'open',
  click: 'click',
  type: 'type',
  select: 'select',
  upload: 'upload',
  download: 'download',
  screenshot: 'screenshot',
  pdf: 'PDF',
  tab: 'second tab',
  dialog: 'dialog',
  close: 'close',
};
const files = [
  'puppeteer',
  'playwright',
  'playwright-mcp',
  'chrome-devtools-mcp',
  'agent-browser',
  'stagehand',
  'crawlee',
  'lighthouse',
  'chrome-remote-interface',
  'webdriverio',
  'inspector',
];
const stepMs = 300_000;

const wanted = process.argv.slice(2).map((word) => word.toLowerCase());
const everyDriver = (await Promise.all(files.map((file) => import(`./drivers/${file}.mjs`)))).flatMap(
  (module) => module.default,
);
const drivers = everyDriver.filter(
  ({ name }) => wanted.length === 0 || wanted.some((word) => name.toLowerCase().includes(word)),
);
// A client that fails behind the back of its caller fails its own row only.
process.on('unhandledRejection', (error) => process.stderr.write(`\nnot caught by the client: ${String(error)}\n`));
const dir = await mkdtemp(join(tmpdir(), 'corral-clients-'));
const site = await startSite();
const proxy = await startProxy();
const rows = [];
try {
  // Some clients keep host and port of an address only. They get names for sessions (CORRAL_SESSION_HOSTS).
  for (const hosts of [false, true]) {
    const these = drivers.filter((driver) => (driver.hosts ?? false) === hosts);
    if (these.length === 0) continue;
    const service = await startService(hosts);
    try {
      for (const driver of these) rows.push({ name: driver.name, ...(await lead(driver, service)) });
    } finally {
      await service.stop();
    }
  }
} finally {
  site.close();
  proxy.close();
  await rm(dir, { recursive: true, force: true, maxRetries: 5 });
}
print();
process.exit(rows.some(({ cells }) => Object.values(cells).includes('FAILED')) ? 1 : 0);

async function startService(hosts) {
  const port = await freePort();
  const data = join(dir, hosts ? 'data-hosts' : 'data');
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(process.execPath, ['dist/main.js'], {
    cwd: join(import.meta.dirname, '../..'),
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      CORRAL_PORT: String(port),
      CORRAL_DATA_DIR: data,
      CORRAL_LOG_LEVEL: 'warn',
      CORRAL_WARM_SPARES: 'off',
      CORRAL_PROXY_CHECK_URL: 'off',
      CORRAL_ALLOW_PRIVATE_HOSTS: `${site.host},${proxy.host}`,
      ...(hosts ? { CORRAL_SESSION_HOSTS: `http://*.sessions.test:${port}` } : {}),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(child, 'exit');
  // Interrupted, it takes the service along.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => {
      child.kill();
      void exited.then(() => process.exit(1));
    });
  const answers = () =>
    fetch(`${url}/ready`).then(
      (answer) => answer.ok || undefined,
      () => undefined,
    );
  const stop = async () => {
    child.kill();
    await exited;
  };
  await Promise.race([
    until(answers, 'the service', 600_000),
    exited.then(() => Promise.reject(new Error('The service ended before it was ready.'))),
  ]).catch(async (error) => {
    await stop();
    throw error;
  });
  const key = (await readFile(join(data, 'api-key'), 'utf8')).trim();
  const call = (method, path, body, headers = {}) =>
    fetch(url + path, { method, headers: { authorization: `Bearer ${key}`, ...headers }, ...(body && { body }) });
  return {
    url,
    key,
    call,
    stop,
  };
}

/** Leads one client through all steps. One that fails does not keep it from the next. */
async function lead(driver, service) {
  const run = `tour${rows.length}x${process.pid}`;
  const own = join(dir, run);
  await mkdir(own);
  const note = { local: join(own, 'note.txt'), inSession: '/home/corral/note.txt' };
  await writeFile(note.local, words.note);
  const c = { run, dir: own, words, note, service, proxy, until, url: site.page(run), secondUrl: site.second(run) };
  c.env = { PATH: process.env.PATH, HOME: own };
  c.inHosts = (command) => command;
  const cells = {};
  const notes = [];
  const json = { 'content-type': 'application/json' };
  if (!driver.makesSession) {
    const made = await service.call(
      'POST',
      '/browsers',
      JSON.stringify({ headless: true, timeout_seconds: 3600 }),
      json,
    );
    if (!made.ok) throw new Error(await made.text());
    c.session = await made.json();
    await furnish();
  }
  if (driver.hosts) await nameSession();
  process.stderr.write(`${driver.name}:`);
  for (const step of Object.keys(titles)) {
    cells[step] = await take(step);
    process.stderr.write(` ${titles[step]} ${cells[step]}${step === 'close' ? '\n' : ','}`);
    if (step === 'open' && cells.open === 'FAILED') break;
    if (step === 'open' && driver.makesSession) {
      const [newest] = await (await service.call('GET', '/browsers')).json();
      c.session = newest;
      await furnish();
    }
  }
  if (cells.open === 'FAILED') process.stderr.write('\n');
  await Promise.resolve(driver.end?.(c)).catch(() => {});
  if (c.session) await service.call('DELETE', `/browsers/${c.session.session_id}`);
  return { cells, notes };

  async function take(step) {
    const given = driver.steps[step];
    const work = given.way ?? given;
    if (given.why) notes.push(`${titles[step]}: ${given.why}`);
    if (typeof work !== 'function') return '–';
    try {
      await within(stepMs, (async () => check(step, await work(c)))());
      return given.way ? 'way' : 'ok';
    } catch (error) {
      notes.push(`${titles[step]} FAILED: ${String(error?.stack ?? error).slice(0, 1500)}`);
      process.stderr.write(`\n${notes.at(-1)}\n`);
      return 'FAILED';
    }
  }

  async function check(step, answer) {
    const told = (what) =>
      until(
        () => site.told(run).includes(what) || undefined,
        () => `'${what}'; the page told ${JSON.stringify(site.told(run))}`,
      );
    const file = (path) => service.call('GET', `/browsers/${c.session.session_id}/fs/read_file?path=${path}`);
    switch (step) {
      case 'open':
        return told('opened');
      case 'click':
        return told('clicked');
      case 'type':
        return told(`typed ${words.name}`);
      case 'select':
        return told(`chose ${words.colour}`);
      case 'upload':
        return told(`got note.txt: ${words.note}`);
      case 'download':
        return until(
          async () => (await (await file('/home/corral/Downloads/report.txt')).text()) === words.report || undefined,
          'the file',
        );
      case 'screenshot':
        if (!/^(\x89PNG|\xff\xd8\xff|RIFF)/.test(answer.toString('latin1', 0, 4))) throw new Error('no picture');
        return;
      case 'pdf':
        if (answer.toString('latin1', 0, 5) !== '%PDF-') throw new Error('no PDF');
        return;
      case 'tab':
        return told('second tab');
      case 'dialog':
        return told('answered true');
      case 'close':
        return until(disconnected, 'the end of its connections');
    }
  }

  /** A client that closes leaves no connection; one that made its session ends it. */
  async function disconnected() {
    const answer = await service.call('GET', `/browsers/${c.session.session_id}`);
    if (answer.status === 404) return true;
    const { clients } = await answer.json();
    return (clients.cdp === 0 && clients.webdriver === 0) || undefined;
  }

  /** Puts the note into the session, also at the path that it has on this disk. */
  async function furnish() {
    for (const path of [note.inSession, note.local]) {
      const written = await service.call(
        'PUT',
        `/browsers/${c.session.session_id}/fs/write_file?path=${path}`,
        words.note,
        {
          'content-type': 'application/octet-stream',
        },
      );
      if (!written.ok) throw new Error(await written.text());
    }
  }

  /** The session's name is looked up in a hosts file that only this client sees. */
  async function nameSession() {
    const hosts = join(own, 'hosts');
    const { hostname } = new URL(c.session.base_url);
    await writeFile(hosts, `127.0.0.1 localhost\n127.0.0.1 ${hostname}\n`);
    const alone = process.getuid() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount'];
    const script = 'mount --bind "$0" /etc/hosts && exec "$@"';
    c.inHosts = (command) => ['unshare', ...alone, 'sh', '-c', script, hosts, ...command];
  }
}

function print() {
  const names = Math.max(...rows.map(({ name }) => name.length));
  const line = (name, cells) => console.log([name.padEnd(names), ...cells].join('  '));
  const columns = Object.entries(titles);
  line(
    '',
    columns.map(([, title]) => title),
  );
  for (const { name, cells } of rows)
    line(
      name,
      columns.map(([step, title]) => (cells[step] ?? '').padEnd(title.length)),
    );
  console.log(
    '\nway: by another way than the client offers first; –: the client has no such step. See docs/differences.md.',
  );
  for (const { name, notes } of rows) for (const note of notes) console.log(`${name}, ${note}`);
}

async function until(look, what = 'it', ms = stepMs / 2) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`waited in vain for ${typeof what === 'function' ? what() : what}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

function within(ms, work) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms / 1000} s`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
