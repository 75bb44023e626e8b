import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silent } from '../../lib/log.ts';
import { destinations } from '../egress/destinations.ts';
import { startEngine, type Engine } from '../engine.ts';
import type { Args } from './protocol.ts';
import { openToolbox } from './toolbox.ts';
import { ChannelClosed, type Stream } from './guest.ts';
import { isolationHere } from '../../../test/support/sandbox.ts';

const isolation = await isolationHere();

describe.runIf(isolation.sandboxed)('the guest of a session', () => {
  let dir: string;
  let engine: Engine;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'corral-guest-'));
    engine = await startEngine(
      {
        launch: {
          dir: join(dir, 'session'),
          headless: true,
          stealth: false,
          kiosk_mode: false,
          gpu: false,
          viewport: { width: 800, height: 600 },
        },
        toolbox: openToolbox(join(dir, 'tools')),
        allow: destinations({ allow: [] }),
        log: silent,
        whenGone: () => ({ code: 1011, reason: 'gone' }),
      },
      AbortSignal.timeout(60_000),
    );
  });
  afterAll(async () => {
    await engine?.close();
    await rm(dir, { recursive: true, force: true });
  });

  const command = (command: string, ...args: string[]) => ({
    command,
    args,
    cwd: null,
    env: {},
    as_user: null,
    as_root: false,
    timeout_sec: null,
    most: 1024 * 1024,
  });

  async function run(ask: Args<'exec'>): Promise<{ code: number; stdout: string; stderr: string }> {
    const stream = await engine.guest.open('exec', ask);
    stream.end();
    await stream.next(); // its pid
    const { exit_code, stdout_bytes } = (await stream.next())!.json as { exit_code: number; stdout_bytes: number };
    const parts: Buffer[] = [];
    for (let item; (item = await stream.next());) parts.push(item.bytes!);
    const all = Buffer.concat(parts);
    return {
      code: exit_code,
      stdout: all.subarray(0, stdout_bytes).toString(),
      stderr: all.subarray(stdout_bytes).toString(),
    };
  }

  test('runs a command as the session’s user, without open files of the service', async () => {
    const { stdout, code } = await run(command('sh', '-c', 'id -u; pwd; ls -l /proc/$$/fd | grep socket | wc -l; env'));
    expect(code).toBe(0);
    const [uid, cwd, sockets, ...env] = stdout.split('\n');
    expect([uid, cwd, sockets]).toEqual(['1000', '/home/corral', '0']);
    expect(env).toContain('HOME=/home/corral');
    expect(env.join()).not.toMatch(/CORRAL|VITEST/);
  });

  test('root is root of one more namespace', async () => {
    const { stdout } = await run({
      ...command('sh', '-c', 'id -u; cat /proc/self/uid_map; mount -t tmpfs x /mnt 2>&1 || echo no'),
      as_root: true,
    });
    expect(stdout).toMatch(/^0\n\s+0\s+1000\s+1\n[^]*no\n$/);
  });

  test('a terminal gives everything that was written before the program exited', async () => {
    // More than one read takes, and less than the kernel holds: the program exits at once, mostly before anything is read.
    const ask = { ...command('sh', '-c', 'seq 1000 2500'), allocate_tty: true, rows: 24, cols: 80 };
    const all = Array.from({ length: 1501 }, (_, index) => `${1000 + index}\r\n`).join('');
    for (let times = 0; times < 5; times++) {
      const spawned = await engine.guest.open('spawn', ask);
      const { process_id } = (await spawned.next())!.json as { process_id: string };
      await drain(spawned);
      const output = await engine.guest.open('output', { process_id });
      let printed = '';
      for (let item; (item = await output.next());)
        printed += Buffer.from((item.json as { data_b64?: string }).data_b64 ?? '', 'base64').toString();
      expect(printed).toBe(all);
    }
  });

  test('a killed guest ends with its processes, and the next request starts another', async () => {
    const spawned = await engine.guest.open('spawn', {
      ...command('sleep', '1000'),
      allocate_tty: false,
      rows: 24,
      cols: 80,
    });
    const { pid } = (await spawned.next())!.json as { pid: number };
    engine.guest.started.add(pid);
    const killer = await engine.guest.open('exec', command('sh', '-c', 'kill -9 $PPID'));
    await expect(drain(killer)).rejects.toThrow(ChannelClosed);
    // It is killed by then. The first process of the sandbox takes it off the list a moment later.
    const look = command('sh', '-c', `kill -0 ${pid} 2>/dev/null && echo alive || echo gone`);
    await expect.poll(async () => (await run(look)).stdout).toBe('gone\n');
  });

  test('what cannot be done is refused with its reason', async () => {
    await expect(engine.guest.call('info', { path: '/none' })).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(engine.guest.call('info', { path: 1 } as never)).rejects.toThrow("not asked for 'info' like that");
  });
});

async function drain(stream: Stream) {
  while (await stream.next());
}
