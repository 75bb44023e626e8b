import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parent, tree } from '../../src/chromium/sandbox/process-tree.ts';
import { commandLine, traces, untilNothing } from './leftovers.ts';
import { spawnService } from './process.ts';
import { seededRandom, type Random } from './random.ts';

export const spares = { headless: 1, headful: 1 };
/** Longer than the shortest idle timeout, which is how some sessions end. */
export const patienceMs = 30_000;

export type Life = Awaited<ReturnType<typeof live>>;

/** One run of the service, from its start to its exit. */
export async function live(dataDir: string, hosts: string, settings: Record<string, string> = {}) {
  const service = await spawnService({
    CORRAL_DATA_DIR: dataDir,
    CORRAL_ALLOW_PRIVATE_HOSTS: hosts,
    CORRAL_WARM_SPARES: `headless:${spares.headless},headful:${spares.headful}`,
    CORRAL_MAX_SESSIONS: '24',
    ...settings,
  });
  const key = (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();
  const pid = service.child.pid!;
  const trace = traces(dataDir);
  let over = false;

  const call = async (method: string, path: string, body?: object, signal?: AbortSignal) => {
    const deadline = AbortSignal.timeout(60_000);
    const response = await fetch(service.url + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        connection: 'close', // or each would be a descriptor of the service for a while
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.includes('json') && text !== '';
    return { status: response.status, text, body: json ? JSON.parse(text) : undefined };
  };

  /**
   * The processes of a session, or of another sandbox by the name of its directory. Only ever of those that this service started. They have the
   * directory among their mounts, the guest too, which enters the sandbox from outside. Pages see no mounts: they are children of such.
   */
  function processesOf(id: string): number[] {
    const theirs = new Set(tree(pid).filter((one) => one !== pid && mountsOf(one).includes(`/${id}/`)));
    const tops = [...theirs].filter((one) => !theirs.has(parent(one) ?? 0));
    return [...new Set(tops.flatMap(tree))];
  }

  return {
    url: service.url,
    key,
    call,
    processesOf,
    /** How the process of the service ended, if it did. */
    ended: () => service.child.exitCode ?? service.child.signalCode,
    trace,
    get over() {
      return over;
    },

    /** Waits until all sessions have ended and all spares are available again. */
    async settled() {
      const want = [
        'corral_sessions 0',
        `corral_spares_headless ${spares.headless}`,
        `corral_spares_headful ${spares.headful}`,
      ];
      for (const end = performance.now() + patienceMs; performance.now() < end; await sleep(50)) {
        const { text } = await call('GET', '/metrics');
        if (want.every((line) => text.split('\n').includes(line))) break;
      }
    },

    descriptors: () => trace.descriptorsOf(pid),

    /** After all sessions have ended, only spares may have a directory, a group or a process of the service. */
    beyondSpares(): string[] {
      const most = spares.headless + spares.headful;
      const [directories, groups] = [trace.directories(), trace.cgroups()];
      const names = directories.map((it) => it.split('/').at(-1)!);
      const stray = groups.filter((group) => !names.some((name) => group.endsWith(`-${name}`)));
      return [...(directories.length > most ? directories : []), ...stray];
    },

    async kill() {
      over = true;
      await service.kill('SIGKILL');
    },

    async stop() {
      over = true;
      await service.kill('SIGTERM');
    },

    /** What the service itself calls an error. */
    complaints: () =>
      service
        .output()
        .split('\n')
        .filter((line) => /"level":"?(error|50)/.test(line)),
  };
}

/** Kills a process that is wanted, of a session or of another sandbox. False: there was none. */
export function killing(wanted: (command: string) => boolean) {
  return async (life: Pick<Life, 'processesOf'>, id: string, random: Random): Promise<boolean> => {
    const pids = life.processesOf(id).filter((pid) => wanted(commandLine(pid)));
    if (pids.length > 0) end(pick(random, pids));
    return pids.length > 0;
  };
}

function mountsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

export function isBrowser(command: string): boolean {
  return /^\S*chromium\S*/.test(command) && !command.includes('--type=');
}

export function end(pid: number) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // it was faster
}

export async function late(who: string): Promise<never> {
  await sleep(patienceMs);
  throw new Error(`${who} was not done within ${patienceMs / 1000} s`);
}

/** Kinds of descriptors of which there are more than before. */
export function more(before: Map<string, number>, after: Map<string, number>): string[] {
  return [...after]
    .filter(([kind, count]) => count > (before.get(kind) ?? 0))
    .map(([kind, count]) => `descriptors of ${kind}: ${count}, before ${before.get(kind) ?? 0}`);
}

/** A soak that failed may leave the database server of its own data directory running. */
export async function endDatabase(dataDir: string): Promise<void> {
  const file = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(file.split('\n')[0]);
  if (!pid || !commandLine(pid).includes('postgres')) return;
  process.kill(pid, 'SIGINT');
  await untilNothing(() => traces(dataDir).allProcesses(), 5000);
}

/** Neighbouring seeds of the generator give neighbouring numbers, so they are stirred first. */
export function randomFor(seed: number, number: number): Random {
  let mixed = Math.imul(seed, 0x9e37_79b1) ^ Math.imul(number + 1_000_003, 0x85eb_ca6b);
  for (let round = 0; round < 3; round++) mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b_3c6d) + round;
  return seededRandom((mixed ^ (mixed >>> 16)) >>> 0);
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[random(from.length)]!;
}
