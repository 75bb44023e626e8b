import { readFileSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { signal, startTime, tree } from '../../src/chromium/sandbox/process-tree.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

const { cgroups } = await requireSandbox();

const PIDS = 200;
const MEMORY_MB = 400;
/** What this run's processes are known by among all of the machine. */
const MARK = 100_000 + process.pid;
/** As perl calls it. */
const MEMFD_CREATE = process.arch === 'arm64' ? 279 : 319;
const PATIENCE = { timeout: 90_000, interval: 200 };

/**
 * A session takes all it can of what a machine has. Bombs are bounded by themselves, a little above what they may have, so
 * that a machine on which they succeed survives them. Where there are control groups they hold the bounds; where there are none (an
 * ordinary user without delegation) rlimits and a watch on memory do.
 */
describe('a session that takes all it can', { timeout: 300_000 }, () => {
  let service: Service;
  let mine: string;
  let neighbour: string;

  beforeAll(async () => {
    service = await startService({
      CORRAL_SESSION_PIDS: String(PIDS),
      CORRAL_SESSION_MEMORY_MB: String(MEMORY_MB),
      CORRAL_MAX_SESSIONS: '4',
    });
    [mine, neighbour] = [await create(), await create()];
  });
  afterAll(() => service?.close());

  async function create(): Promise<string> {
    const { status, body } = await service.call('POST', '/browsers', { headless: true, timeout_seconds: 600 });
    expect(status).toBe(200);
    return body.session_id;
  }
  const run = (session: string, script: string) =>
    service.call('POST', `/browsers/${session}/process/exec`, {
      command: 'sh',
      args: ['-c', script],
      timeout_sec: 120,
    });
  async function start(session: string, script: string): Promise<string> {
    const { status, body } = await service.call('POST', `/browsers/${session}/process/spawn`, {
      command: 'sh',
      args: ['-c', script],
    });
    expect(status).toBe(200);
    return body.process_id;
  }
  const says = async (session: string, script: string): Promise<string> => {
    const { status, body } = await run(session, script);
    expect(status, JSON.stringify(body)).toBe(200);
    return Buffer.from(body.stdout_b64, 'base64').toString().trim();
  };
  const end = (session: string, process: string) =>
    service.call('POST', `/browsers/${session}/process/${process}/kill`, { signal: 'KILL' });

  /** The service, its database and another session's browser and processes do what they are asked. */
  async function othersWorkOn(): Promise<void> {
    expect((await service.call('GET', '/ready')).status).toBe(200);
    expect((await service.call('GET', '/browsers')).body).toHaveLength(2);
    const page = await service.call('POST', `/browsers/${neighbour}/playwright/execute`, { code: 'return 6 * 7' });
    expect(page.body).toMatchObject({ success: true, result: 42 });
    expect(await says(neighbour, 'echo here')).toBe('here');
  }

  /** Host pids of the processes of sessions, by what their command line says. */
  function pidsOf(words: string): number[] {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && commandLine(pid).includes(words));
  }

  /** Kills what a bomb left. The dead count until they are buried, and until then the session cannot start anything. */
  async function clear(words: string): Promise<void> {
    const left = new Map(pidsOf(words).map((pid) => [pid, startTime(pid) ?? 'gone']));
    for (const pid of left.keys()) signal(pid, 'SIGKILL');
    const unburied = () => [...left].filter(([pid, startedAt]) => startTime(pid) === startedAt).length;
    await expect.poll(unburied, PATIENCE).toBe(0);
  }

  test('is killed first by the kernel when memory runs out, and has no core dumps', async () => {
    const own = Number(readFileSync('/proc/self/oom_score_adj', 'utf8'));
    expect(Number(await says(mine, 'cat /proc/self/oom_score_adj'))).toBeGreaterThan(own);
    const sessions = tree(process.pid).filter((pid) => /--user-data-dir|zygote|type=/.test(commandLine(pid)));
    expect(sessions.length).toBeGreaterThan(3);
    for (const pid of sessions) expect(scoreOf(pid), commandLine(pid)).toBeGreaterThan(own);
    expect(await says(mine, 'ulimit -Hc')).toBe('0');
  });

  test('gets so many processes and no more', async () => {
    const bomb = await start(mine, `i=0; while [ $i -lt 300 ]; do sleep ${MARK}1 & i=$((i+1)); done; echo all; wait`);
    await expect.poll(async () => (await status(mine, bomb)).state, PATIENCE).toBe('exited'); // a shell that cannot fork gives up
    const bombs = pidsOf(`sleep\x00${MARK}1`).length;
    expect(bombs).toBeGreaterThan(20);
    expect(bombs).toBeLessThan(PIDS);
    await othersWorkOn();
    await end(mine, bomb);
    await clear(`sleep\x00${MARK}1`);
  });

  test('gets so many threads and no more', async () => {
    const node = (await says(mine, 'command -v node || echo /opt/corral/bin/node')) || 'node';
    const threads = `const fs = require('node:fs'); for (let i = 0; i < 300; i++) fs.stat('/', () => {}); setTimeout(() => console.log(fs.readdirSync('/proc/self/task').length), 2000)`;
    const few = Number(await says(mine, `UV_THREADPOOL_SIZE=10 ${node} -e "${threads}"`));
    expect(few).toBeGreaterThan(10);
    const many = await says(mine, `UV_THREADPOOL_SIZE=300 ${node} -e "${threads}" || echo refused`);
    expect(many).toBe('refused'); // it ends itself when it cannot have them
    await othersWorkOn();
  });

  test('gets so much memory and no more, and sees why its process ended', async () => {
    // Grows to 600 MB and keeps it: no process reads the pipe it writes to.
    const hog = await start(
      mine,
      `mkfifo "$HOME/pipe"; (sleep ${MARK}2 <"$HOME/pipe" &) ; head -c 600m /dev/zero | tail -c 600m >"$HOME/pipe"; exit $?`,
    );
    await expect.poll(async () => (await status(mine, hog)).exit_code, PATIENCE).toBe(137);
    await othersWorkOn();
    await expect.poll(() => events(mine), PATIENCE).toMatch(/memory/i);
    await clear(`sleep\x00${MARK}2`);
  });

  // Each keeps 600 MB in memory that belongs to no process, where it may have 400.
  test.each([
    ['a memfd that is written and never mapped', 1],
    ['many memfds that many processes have open', 20],
  ])('gets no more of it by %s', async (_what, count) => {
    const own = await create();
    const each = Math.ceil(600 / count);
    const write = `$f = syscall(${MEMFD_CREATE}, my $name = "x", 0); open F, ">&=", $f; for (1..${each}) { syswrite(F, "x" x 1048576) or exit 1 }`;
    const perl = `$0 = "hidden-${MARK}"; for $n (1..${count - 1}) { last unless fork } ${write} sleep 600`;
    await start(own, `exec perl -e '${perl}' hidden-${MARK}`);
    const kept = () => pidsOf(`hidden-${MARK}`).reduce((sum, pid) => sum + memfds(pid), 0) / 2 ** 20;
    await expect.poll(() => starved(own), PATIENCE).toBe(true);
    await expect.poll(kept, PATIENCE).toBeLessThan(MEMORY_MB);
    await clear(`hidden-${MARK}`);
    await service.call('DELETE', `/browsers/${own}`);
    await othersWorkOn();
  });

  test('gets no more of it by files in its /tmp', async () => {
    const own = await create();
    await start(own, `dd if=/dev/zero of=/tmp/x bs=1M count=600 status=none && exec sleep ${MARK}4`);
    await expect.poll(() => starved(own), PATIENCE).toBe(true);
    await expect.poll(() => [...pidsOf(`sleep ${MARK}4`), ...pidsOf(`sleep\x00${MARK}4`)], PATIENCE).toEqual([]);
    await service.call('DELETE', `/browsers/${own}`);
    await othersWorkOn();
  });

  test('has little room for files in its /run/user', async () => {
    const said = await says(
      mine,
      'dd if=/dev/zero of=/run/user/x bs=1M count=600 2>&1; du -m /run/user/x; rm /run/user/x',
    );
    expect(said).toContain('No space left on device');
    expect(Number(/^(\d+)\t/m.exec(said)![1])).toBeLessThanOrEqual(64);
  });

  test('has an equal share of the processor, with any number of busy processes', async () => {
    const loop = (count: number, mark: string) =>
      `i=0; while [ $i -lt ${count} ]; do sh -c 'while :; do :; done' ${mark} & i=$((i+1)); done; wait`;
    const many = await start(mine, loop(16, `greedy-${MARK}`));
    const few = await start(neighbour, loop(2, `modest-${MARK}`));
    const spent = () => {
      const [greedy, modest] = [`greedy-${MARK}`, `modest-${MARK}`].map((mark) => ticks(loops(mark)));
      return { greedy: greedy!, modest: modest! };
    };
    const loops = (mark: string) =>
      pidsOf(`\x00${mark}`).filter((pid) => commandLine(pid).startsWith('sh\x00-c\x00while'));
    await expect.poll(() => loops(`greedy-${MARK}`).length + loops(`modest-${MARK}`).length, PATIENCE).toBe(18);
    await othersWorkOn();
    if (cgroups?.controllers.includes('cpu')) {
      // Half, where each session weighs the same; a ninth, where each process does. In the first seconds the scheduler may have put the
      // neighbour's two on one processor, so it is given some rounds of so many ticks of a hundredth of a second.
      const round = async () => {
        const before = spent();
        let now = before;
        for (const until = Date.now() + 60_000; Date.now() < until; await sleep(200)) {
          now = spent();
          if (now.greedy + now.modest - before.greedy - before.modest > 300) break;
        }
        const [greedy, modest] = [now.greedy - before.greedy, now.modest - before.modest];
        return modest / (greedy + modest);
      };
      await expect.poll(round, { timeout: 60_000, interval: 0 }).toBeGreaterThan(0.25);
    } else {
      for (const pid of loops(`greedy-${MARK}`)) expect(niceOf(pid)).toBeGreaterThan(niceOf(process.pid));
    }
    await Promise.all([end(mine, many), end(neighbour, few)]);
  });

  test('opens so many files and no more', async () => {
    expect(Number(await says(mine, 'ulimit -Hn'))).toBeLessThanOrEqual(32_768);
  });

  test('and is ended with all it started', async () => {
    const bomb = await start(mine, `i=0; while [ $i -lt 60 ]; do sleep ${MARK}3 & i=$((i+1)); done; wait`);
    await expect.poll(() => pidsOf(`sleep\x00${MARK}3`).length, PATIENCE).toBeGreaterThan(10);
    expect(bomb).toBeTruthy();
    expect((await service.call('DELETE', `/browsers/${mine}`)).status).toBe(204);
    await expect.poll(() => pidsOf(`sleep\x00${MARK}3`), PATIENCE).toEqual([]);
  });

  const status = async (session: string, process: string) =>
    (await service.call('GET', `/browsers/${session}/process/${process}/status`)).body;

  /** Processes of the session were ended. The kernel may have chosen its browser, and the session went with it. */
  const starved = (session: string) =>
    service.log.some((line) => line.includes(session) && /memory|crashed|session\.ended/.test(line));

  /** What the session's own log and the service's say. */
  const events = async (session: string) =>
    service.log.filter((line) => line.includes(session) && line.includes('memory')).join('\n');
});

const commandLine = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
};

/** Bytes of the memfds that a process has open. */
const memfds = (pid: number) => {
  try {
    const open = readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
    const held = open.filter((path) => readlinkSync(path).startsWith('/memfd:'));
    return held.reduce((sum, path) => sum + statSync(path).blocks * 512, 0);
  } catch {
    return 0; // the process has ended
  }
};

const fields = (pid: number) => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
  } catch {
    return [];
  }
};

const ticks = (pids: number[]) => pids.reduce((sum, pid) => sum + (fields(pid)[11] ?? 0) + (fields(pid)[12] ?? 0), 0);
const scoreOf = (pid: number) => {
  try {
    return Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
  } catch {
    return Infinity; // the process has ended
  }
};
const niceOf = (pid: number) => fields(pid)[16] ?? 0;
