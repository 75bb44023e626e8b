import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cgroupName, launch, type Browser, type LaunchOptions } from '../../src/chromium/browser/launch.ts';
import { startTime, tree } from '../../src/chromium/sandbox/process-tree.ts';

const plain = { headless: true, stealth: false, kiosk_mode: false, gpu: false, viewport: { width: 1000, height: 700 } };
export type Wishes = Partial<LaunchOptions>;

/** A sessions directory of its own, the browsers launched in it, and how to look for what they left. */
export async function browserYard(name = 'corral-test-') {
  const sessions = await mkdtemp(join(tmpdir(), name));
  const browsers: Browser[] = [];
  let count = 0;

  const options = (wishes: Wishes = {}): LaunchOptions => ({ ...plain, dir: join(sessions, `s${++count}`), ...wishes });

  return {
    sessions,
    options,

    async launch(wishes: Wishes = {}): Promise<Browser & { dir: string }> {
      const wanted = options(wishes);
      const browser = await launch(wanted, AbortSignal.timeout(60_000));
      browsers.push(browser);
      return { ...browser, dir: wanted.dir };
    },

    async close() {
      await Promise.all(browsers.map((browser) => browser.stop()));
      await rm(sessions, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Remembers the processes of a session, to ask later which of them are still there. */
export async function processesOf(dir: string) {
  const lines = (await readFile(join(dir, 'process'), 'utf8')).trimEnd().split('\n');
  const leaders = lines.map((line) => Number(line.split(' ')[0])); // of the display, if there is one, and of the session
  const leader = leaders.at(-1);
  const born = new Map(leaders.flatMap(tree).map((pid) => [pid, startTime(pid)]));
  const alive = () =>
    [...born].filter(([pid, startedAt]) => startTime(pid) === startedAt && !isZombie(pid)).map(([pid]) => pid);
  return {
    leader: leader!,
    pids: [...born.keys()],
    alive,
    /** Waits for the processes to exit; returns those that still run. */
    async left(ms = 30_000) {
      for (const end = Date.now() + ms; alive().length > 0 && Date.now() < end;) await sleep(10);
      return alive();
    },
  };
}

/** Everything a session may leave behind on the machine, by its directory: mounts, cgroups, files other than its home. */
export async function tracesOf(dir: string): Promise<string[]> {
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter((line) => line.includes(dir));
  const files = (await readdir(dir).catch(() => [])).filter((name) => name !== 'home'); // it may go while we look
  return [...mounts, ...files, ...cgroupsOf(dir)];
}

export function cgroupsOf(dir: string): string[] {
  const name = cgroupName(dir);
  const root = '/sys/fs/cgroup';
  if (!existsSync(root)) return [];
  return ['.', ...readdirSync(root)].flatMap((hierarchy) => {
    const group = join(root, hierarchy, 'corral');
    return existsSync(group) ? readdirSync(group).filter((found) => found === name) : [];
  });
}

function isZombie(pid: number): boolean {
  return !tree(pid).includes(pid);
}
