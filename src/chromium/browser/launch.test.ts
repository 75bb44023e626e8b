import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, readlinkSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type net from 'node:net';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserYard, cgroupsOf, processesOf, tracesOf, type Wishes } from '../../../test/support/browsers.ts';
import { pipeClient } from '../../../test/support/pipe-client.ts';
import { fitDisplay, startDisplay } from '../display/display.ts';
import { launch, LaunchError, sweep, type Browser } from './launch.ts';
import { signal } from '../sandbox/process-tree.ts';
import { X_SOCKETS } from '../sandbox/mounts.ts';
import { isolationHere } from '../../../test/support/sandbox.ts';

let yard: Awaited<ReturnType<typeof browserYard>>;
beforeAll(async () => void (yard = await browserYard()));
afterAll(() => yard.close());

const isolation = await isolationHere();

const engines: { name: string; wishes: Wishes }[] = [
  { name: 'headless-shell', wishes: {} },
  { name: 'headless', wishes: { needsFullBrowser: true } },
  { name: 'headful', wishes: { headless: false } },
];

describe.each(engines)('$name', ({ name, wishes }) => {
  let browser: Browser & { dir: string };
  let client: ReturnType<typeof pipeClient>;
  const requests: string[] = [];
  beforeAll(async () => {
    browser = await yard.launch(wishes);
    respond(browser.egress, requests);
    client = pipeClient(browser);
  });
  afterAll(() => browser.stop());

  test('opens with exactly one page, which evaluates', async () => {
    expect(browser.kind).toBe(name);
    expect(await client.pages()).toMatchObject([{ url: 'about:blank' }]);
    const page = await client.page();
    expect(await page.evaluate('6 * 7')).toBe(42);
  });

  test.runIf(isolation.sandboxed)('believes to be online, though no route leads out', async () => {
    const page = await client.page();
    expect(await page.evaluate('navigator.onLine')).toBe(true);
  });

  test('sends all network requests, including loopback, to the egress server', async () => {
    const page = await client.page();
    await page.goto('http://localhost:8123/hello');
    expect(await page.evaluate('document.body.textContent')).toBe('by proxy');
    expect(requests).toContain('GET http://localhost:8123/hello HTTP/1.1');
  });

  test('asks nothing of the network that its client did not', () => {
    expect(requests.filter((line) => !line.includes('localhost:8123'))).toEqual([]);
  });

  test("keeps Chromium's own sandbox on: renderers are confined by seccomp and have a pid namespace of their own", async () => {
    const { pids } = await processesOf(browser.dir);
    const renderers = pids.filter((pid) => commandLine(pid).includes('--type=renderer'));
    expect(renderers.length).toBeGreaterThan(0);
    for (const pid of renderers) {
      // Polled: a spare one may just have been started, and gets its filter before it gets a page.
      await expect.poll(() => statusOf(pid, 'Seccomp')).toMatch(/^(2|gone)$/);
      expect(statusOf(pid, 'NoNewPrivs')).toMatch(/^(1|gone)$/);
      expect(link(`/proc/${pid}/ns/pid`)).not.toBe(readlinkSync(`/proc/${browser.init ?? process.pid}/ns/pid`));
    }
    expect(pids.map(commandLine).join(' ')).not.toContain('--no-sandbox');
  });

  test('holds no file descriptor of the service', async () => {
    const { pids } = await processesOf(browser.dir);
    const main = pids.find(
      (pid) => /^\/usr\/\S*chrom\S*$/.test(commandLine(pid).split(' ')[0]!) && !commandLine(pid).includes('--type='),
    );
    const mine = new Set(readdirSync('/proc/self/fd').map((fd) => link(`/proc/self/fd/${fd}`)));
    const shared = readdirSync(`/proc/${main}/fd`)
      .map((fd) => link(`/proc/${main}/fd/${fd}`))
      .filter(
        (target) => target !== '' && target !== '/dev/null' && !target.startsWith('anon_inode') && mine.has(target),
      );
    expect(shared).toEqual([]);
  });

  test('uses no CPU while frozen, and answers when thawed', async () => {
    const page = await client.page();
    await page.evaluate('setInterval(() => { for (let end = Date.now() + 20; Date.now() < end; ); }, 25); 0');
    await browser.freeze();
    const { pids } = await processesOf(browser.dir);
    const before = cpuTicks(pids);
    const answer = page.evaluate('1 + 1');
    await sleep(300);
    expect(cpuTicks(pids)).toBe(before);
    await browser.thaw();
    expect(await answer).toBe(2);
  });

  test('knows its memory', async () => {
    expect(await browser.memory()).toBeGreaterThan(30e6);
  });
});

describe('a headful display', () => {
  test('speaks RFB on its unix socket, fills with the window, and takes another size while the browser runs', async () => {
    const browser = await yard.launch({ headless: false, viewport: { width: 900, height: 600, refreshRate: 25 } });
    const rate = () => {
      const { file, args, options } = browser.inside(['vncconfig', '-display', ':0', '-get', 'FrameRate']);
      return execFileSync(file, args, { ...options, encoding: 'utf8' }).trim();
    };
    expect([browser.refreshRate(), rate()]).toEqual([25, '25']);
    await browser.setRefreshRate(30);
    expect([browser.refreshRate(), rate()]).toEqual([30, '30']);
    await browser.setRefreshRate(undefined);
    expect([browser.refreshRate(), rate()]).toEqual([undefined, '60']);
    expect(await greeting(browser.connectDisplay!)).toMatch(/^RFB 003\.008/);
    const client = pipeClient(browser);
    const page = await client.page();
    // Polled, as below: the page hears of the place of its window after the window manager has placed it.
    await expect
      .poll(() => page.evaluate('[screen.width, screen.height, outerWidth, outerHeight, screenX, screenY]'))
      .toEqual([900, 600, 900, 600, 0, 0]);

    const { windowId } = await page.send('Browser.getWindowForTarget');
    await page.send('Browser.setWindowBounds', { windowId, bounds: { width: 1100, height: 800 } });
    await fitDisplay(browser.connectDisplay!, { width: 1100, height: 800 }, AbortSignal.timeout(30_000));
    await expect
      .poll(() => page.evaluate('[screen.width, screen.height, outerWidth, outerHeight]'))
      .toEqual([1100, 800, 1100, 800]);
    await browser.stop();
  });

  test('is reachable however long the path of the data directory is', async () => {
    const deep = join(yard.sessions, ...Array.from({ length: 6 }, () => 'a-directory-with-a-rather-long-name'), 's');
    const browser = await yard.launch({ headless: false, dir: deep });
    expect(join(deep, 'display/rfb/rfb').length).toBeGreaterThan(200);
    expect(await greeting(browser.connectDisplay!)).toMatch(/^RFB 003\.008/);
    await browser.stop();
    await expect(greeting(browser.connectDisplay!)).rejects.toThrow('The socket is closed.');
  });

  test('shows a kiosk as nothing but the page', async () => {
    const browser = await yard.launch({ headless: false, kiosk_mode: true, viewport: { width: 900, height: 600 } });
    const page = await pipeClient(browser).page();
    await expect.poll(() => page.evaluate('[innerWidth, innerHeight]')).toEqual([900, 600]);
    await browser.stop();
  });
});

describe('a policy', () => {
  test.runIf(isolation.sandboxed)('is in force in its session and in no other', async () => {
    const policy = { URLBlocklist: ['localhost:8124'] };
    const [bound, free] = await Promise.all([yard.launch({ policy }), yard.launch({ needsFullBrowser: true })]);
    const bodies = await Promise.all(
      [bound, free].map(async (browser) => {
        respond(browser.egress, []);
        const page = await pipeClient(browser).page();
        await page.goto('http://localhost:8124/');
        return page.evaluate('document.body.textContent');
      }),
    );
    expect(bodies[0]).toContain('Your organization');
    expect(bodies[1]).toBe('by proxy');
    await Promise.all([bound.stop(), free.stop()]);
  });
});

describe('stealth', () => {
  test.each([{ headless: true }, { headless: false }])(
    'hides what flags can hide ($headless)',
    async ({ headless }) => {
      const browser = await yard.launch({ headless, stealth: true });
      respond(browser.egress, []);
      const page = await pipeClient(browser).page();
      await page.goto('http://localhost:8125/');
      expect(await page.evaluate('navigator.webdriver')).toBe(false);
      expect(await page.evaluate('navigator.userAgent')).not.toContain('Headless');
      expect(await page.evaluate('JSON.stringify(navigator.userAgentData.brands)')).not.toContain('Headless');
      expect(await page.evaluate('typeof chrome')).toBe('object');
      expect(await page.evaluate('navigator.plugins.length > 0')).toBe(true);
      // No page of Chromium's own window: loading one takes as much as the rest of the start (see flags.ts).
      const { pids } = await processesOf(browser.dir);
      expect(pids.map(commandLine).filter((line) => line.includes('--top-chrome-webui'))).toEqual([]);
      await browser.stop();
    },
  );
});

describe('nothing is left', () => {
  /** Every way a browser can end. A new way out is a new line. */
  const exits: Record<string, (browser: Browser, leader: number) => unknown> = {
    stopped: (browser) => browser.stop(),
    'stopped gracefully': (browser) => browser.stop({ graceMs: 5000 }),
    'stopped while frozen': async (browser) => {
      await browser.freeze();
      await browser.stop();
    },
    'stopped twice at once': (browser) => Promise.all([browser.stop(), browser.stop()]),
    'closed over CDP': (browser) =>
      pipeClient(browser)
        .send('Browser.close')
        .catch(() => {}),
    'kill -9 of the outer bwrap': (_, leader) => signal(leader, 'SIGKILL'),
    'kill -9 of process 1': (browser, leader) => signal(browser.init ?? leader, 'SIGKILL'),
    'kill -9 of the whole group': (_, leader) => signal(-leader, 'SIGKILL'),
    'the pipe closed by the service': (browser) => browser.toBrowser.end(),
  };

  /** The X servers of the host, where displays without a sandbox are. */
  const displays = () => (existsSync(X_SOCKETS) ? readdirSync(X_SOCKETS).map((name) => join(X_SOCKETS, name)) : []);

  describe.each([
    { shape: 'headless-shell', wishes: {} },
    { shape: 'headful', wishes: { headless: false } },
    { shape: 'unsandboxed headless-shell', wishes: { isolation: { ...isolation, sandboxed: false } } },
    { shape: 'unsandboxed headful', wishes: { headless: false, isolation: { ...isolation, sandboxed: false } } },
    { shape: 'without cgroups', wishes: { isolation: { ...isolation, cgroups: undefined } } },
  ])('of $shape', ({ shape, wishes }) => {
    test.each(Object.entries(exits))('when %s', async (_, exit) => {
      await open(yard.sessions);
      const before = displays();
      const browser = await yard.launch(wishes);
      const processes = await processesOf(browser.dir);
      expect(processes.pids.length).toBeGreaterThan(2);
      const { uid } = statSync(join(browser.dir, 'home'));
      const sockets = displays().filter((path) => !before.includes(path) && statSync(path).uid === uid);
      expect(sockets).toHaveLength(shape === 'unsandboxed headful' ? 1 : 0);
      await exit(browser, processes.leader);
      await browser.exited;
      expect(processes.alive()).toEqual([]);
      expect(await tracesOf(browser.dir)).toEqual([]);
      expect(sockets.filter((path) => existsSync(path))).toEqual([]);
      expect(browser.egress.listening).toBe(false);
    });
  });

  test.each([
    { how: 'sandboxed', wishes: {} },
    { how: 'headful', wishes: { headless: false } },
    { how: 'frozen', wishes: { frozen: true } },
    { how: 'frozen by signals', wishes: { frozen: true, isolation: { ...isolation, cgroups: undefined } } },
  ])('when the service is killed ($how), once the next one has swept', async ({ wishes }) => {
    const options = { ...yard.options(wishes), ...wishes };
    const service = spawn(
      process.execPath,
      ['test/support/run-ts.mjs', 'test/support/launch-and-wait.ts', JSON.stringify(options)],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    await once(service.stdout, 'data');
    const processes = await processesOf(options.dir);
    service.kill('SIGKILL');
    // A process frozen by a version 1 cgroup exits only when thawed. All others exit with the service, without a sweep.
    const waitsForSweep = 'frozen' in wishes && !('isolation' in wishes) && isolation.cgroup === 'v1';
    expect(await processes.left(waitsForSweep ? 0 : 30_000)).toHaveLength(waitsForSweep ? processes.alive().length : 0);
    await sweep(yard.sessions);
    expect(await processes.left()).toEqual([]);
    expect(cgroupsOf(options.dir)).toEqual([]);
  });

  test('of a launch that is cancelled at any moment', async () => {
    for (const ms of [0, 2, 5, 10, 20, 40, 80, 120]) {
      const options = yard.options();
      const browser = await launch(options, AbortSignal.timeout(ms)).catch(() => undefined);
      await browser?.stop(); // it was faster
      expect(existsSync(options.dir)).toBe(browser !== undefined);
      expect(await tracesOf(options.dir)).toEqual([]);
    }
  });

  test('of a display that ends before its launch waits for it: the service continues', async () => {
    const { dir } = yard.options();
    await mkdir(dir);
    const owner = isolation.owners.claim(dir);
    const unhandled: unknown[] = [];
    const hear = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', hear);
    try {
      const { sandboxed, windowManager: managed } = isolation;
      const display = await startDisplay(dir, { owner, sandboxed, managed }, { width: 800, height: 600 });
      await display.stop();
      await expect(display.up).rejects.toThrow('The display ended.');
      await sleep(0); // rejections are reported when the work at hand is done
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', hear);
      owner.release();
    }
  });

  test('of a browser that never answers; the error quotes its log', async () => {
    const path = join(yard.sessions, 'silent.sh');
    writeFileSync(path, '#!/bin/sh\necho thinking about it >&2\n>"$HOME/said"\nsleep 60\n');
    chmodSync(path, 0o755);
    await open(yard.sessions);
    const options = yard.options({
      isolation: { ...isolation, engines: { headlessShell: { path, version: '1' }, full: undefined } },
    });
    const giveUp = new AbortController();
    const failed = launch(options, giveUp.signal);
    failed.catch(() => {}); // it is looked at below
    await expect.poll(() => existsSync(join(options.dir, 'home/said'))).toBe(true);
    await turn(); // its output is read by then
    giveUp.abort();
    await expect(failed).rejects.toThrow(/cancelled.*thinking about it/s);
    expect(existsSync(options.dir)).toBe(false);
    expect(await tracesOf(options.dir)).toEqual([]);
  });

  test('of a file that is not a browser; the error quotes the log', async () => {
    const engines = { headlessShell: { path: '/usr/lib/chromium/no-such-browser', version: '1' }, full: undefined };
    const options = yard.options({ isolation: { ...isolation, engines } });
    const failed = launch(options, AbortSignal.timeout(30_000));
    await expect(failed).rejects.toThrow(/did not start.*no-such-browser/s);
    await expect(failed).rejects.toBeInstanceOf(LaunchError);
    expect(existsSync(options.dir)).toBe(false);
    expect(await tracesOf(options.dir)).toEqual([]);
  });
});

test('a home that was there is kept when a launch fails', async () => {
  const engines = { headlessShell: { path: '/usr/lib/chromium/no-such-browser', version: '1' }, full: undefined };
  const options = yard.options({ isolation: { ...isolation, engines } });
  await mkdir(join(options.dir, 'home/user-data'), { recursive: true });
  await expect(launch(options, AbortSignal.timeout(30_000))).rejects.toThrow('did not start');
  expect(existsSync(join(options.dir, 'home/user-data'))).toBe(true);
});

test('a profile survives a graceful stop', async () => {
  const first = await yard.launch();
  respond(first.egress, []);
  const page = await pipeClient(first).page();
  await page.goto('http://localhost:8126/');
  // Read again: it is set when the browser has it, and not only the page.
  expect(await page.evaluate('document.cookie = "kept=yes; max-age=1000"; document.cookie')).toBe('kept=yes');
  await first.stop({ graceMs: 30_000 });

  const second = await yard.launch({ dir: first.dir });
  respond(second.egress, []);
  const again = await pipeClient(second).page();
  await again.goto('http://localhost:8126/');
  expect(await again.evaluate('document.cookie')).toBe('kept=yes');
  await second.stop();
});

test.runIf(!isolation.gpu)('a GPU that is not there is refused with a sentence', async () => {
  await expect(launch(yard.options({ gpu: true }), AbortSignal.timeout(1000))).rejects.toMatchObject({
    code: 'gpu_unavailable',
  });
});

/** A proxy that answers everything itself. */
function respond(server: net.Server, requests: string[]) {
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      requests.push(data.toString().split('\r\n')[0]!);
      socket.end(
        'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 8\r\n\r\nby proxy',
      );
    });
  });
}

/** The first bytes of an RFB server. */
async function greeting(connect: () => net.Socket): Promise<string> {
  const socket = connect();
  const [data] = await once(socket, 'data');
  socket.destroy();
  return String(data);
}

/** Without a sandbox the browser's user has to be able to walk to its home. */
async function open(dir: string) {
  chmodSync(dir, 0o755);
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function statusOf(pid: number, field: string): string | undefined {
  try {
    return new RegExp(`^${field}:\\t(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  } catch {
    return 'gone';
  }
}

function cpuTicks(pids: number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
    return sum + Number(fields[11]) + Number(fields[12]);
  }, 0);
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
