import type Kernel from '@onkernel/sdk';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';
import { isolationHere } from '../support/sandbox.ts';

const isolation = await isolationHere();

const STANDBY_MS = 1000;

describe.runIf(isolation.sandboxed)('processes of a session', () => {
  let service: Service;
  let sdk: Kernel;
  const sessions = { headless: '', headful: '' };
  const bases = { headless: '', headful: '' };

  beforeAll(async () => {
    service = await startService({}, { timings: { standbyMs: STANDBY_MS } });
    sdk = service.sdk();
    for (const shape of ['headless', 'headful'] as const) {
      const made = await sdk.browsers.create({ headless: shape === 'headless', timeout_seconds: 600 });
      sessions[shape] = made.session_id;
      bases[shape] = made.base_url!;
    }
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
  });

  const text = (b64: string | undefined) => Buffer.from(b64 ?? '', 'base64').toString();

  describe.each(['headless', 'headful'] as const)('%s', (shape) => {
    const id = () => sessions[shape];
    const sh = (script: string, more: Partial<Kernel.Browsers.ProcessExecParams> = {}) =>
      sdk.browsers.process.exec(id(), { command: 'sh', args: ['-c', script], ...more });

    test('a command is run where the browser runs, and answered with all it said', async () => {
      const result = await sh('echo out; echo err >/dev/stderr; pwd >/dev/stdout; exit 3');
      expect(result).toMatchObject({ exit_code: 3, duration_ms: expect.any(Number) });
      expect(text(result.stdout_b64)).toBe('out\n/home/corral\n');
      expect(text(result.stderr_b64)).toBe('err\n');
      const display = text((await sh('echo "$DISPLAY"')).stdout_b64);
      expect(display).toBe(shape === 'headful' ? ':0\n' : '\n');
    });

    // Both shapes have the same guest, in the same sandbox. The other tests show that it works beside either browser.
    test.runIf(shape === 'headless')('its environment, directory and user are as requested', async () => {
      const asked = await sh('echo $A $HOME; pwd', { env: { A: 'b' }, cwd: '/tmp' });
      expect(text(asked.stdout_b64)).toBe('b /home/corral\n/tmp\n');
      const users = [{ as_root: true }, { as_user: 'root' }, { as_user: 'nobody' }, { as_user: '1234:5678' }, {}];
      const seen = await Promise.all(users.map(async (user) => text((await sh('id -u; id -g', user)).stdout_b64)));
      expect(seen.map((ids) => ids.trim().split('\n').join(':'))).toEqual([
        '0:0',
        '0:0',
        '65534:65534',
        '1234:5678',
        '1000:1000',
      ]);
    });

    test.runIf(shape === 'headless')('a command that cannot run is refused, with the reason', async () => {
      const bad = (body: object) => service.call('POST', `/browsers/${id()}/process/exec`, body);
      expect(await bad({ command: 'no-such-thing' })).toMatchObject({
        status: 400,
        body: { code: 'process_not_started', message: expect.stringContaining('no-such-thing') },
      });
      expect(await bad({ command: 'ls', cwd: '/none' })).toMatchObject({
        status: 400,
        body: { code: 'process_not_started' },
      });
      expect(await bad({ command: 'ls', as_user: 'somebody' })).toMatchObject({
        status: 400,
        body: { code: 'invalid_input' },
      });
      expect(await bad({ command: 'ls', as_user: 'nobody', as_root: true })).toMatchObject({ status: 400 });
      expect(await bad({ command: '/etc/passwd' })).toMatchObject({ status: 400 });
    });

    test('a process that is spawned is read by everyone from the beginning, and stays readable after its end', async () => {
      const { process_id, pid } = await sdk.browsers.process.spawn(id(), {
        command: 'sh',
        args: ['-c', 'echo first; read line; echo "got $line"; echo oops >&2; read wait; exit 7'],
      });
      expect(pid).toBeGreaterThan(1);
      const early = reading(id(), process_id!);
      await early.until('first');
      const written = await sdk.browsers.process.stdin(process_id!, {
        id: id(),
        data_b64: Buffer.from('hello\n').toString('base64'),
      });
      expect(written.written_bytes).toBe(6);
      await early.until('got hello');
      const late = reading(id(), process_id!);
      await late.until('got hello');
      expect(await sdk.browsers.process.status(process_id!, { id: id() })).toMatchObject({
        state: 'running',
        exit_code: null,
      });
      await service.call('POST', `/browsers/${id()}/process/${process_id}/stdin`, { data_b64: '', eof: true });
      const ends = await Promise.all([early.end, late.end]);
      expect(ends).toEqual([7, 7]);
      expect(late.said()).toBe(early.said());
      expect(await sdk.browsers.process.status(process_id!, { id: id() })).toMatchObject({
        state: 'exited',
        exit_code: 7,
        mem_bytes: 0,
      });
      const after = reading(id(), process_id!);
      expect(await after.end).toBe(7);
      expect(after.said()).toContain('oops');
      const stdin = await service.call('POST', `/browsers/${id()}/process/${process_id}/stdin`, { data_b64: 'YQ==' });
      expect(stdin).toMatchObject({ status: 400, body: { code: 'process_exited' } });
    });

    test.runIf(shape === 'headless')('status counts the whole tree, and kill ends all of it', async () => {
      const { process_id } = await sdk.browsers.process.spawn(id(), {
        command: 'sh',
        args: ['-c', 'setsid sh -c "echo \\$\\$; while :; do :; done" & perl -e \'$x = "a" x 5e7; sleep 1000\''],
      });
      const output = reading(id(), process_id!);
      await output.until('\n');
      await expect
        .poll(
          async () => {
            await sleep(150);
            const { cpu_pct, mem_bytes } = await sdk.browsers.process.status(process_id!, { id: id() });
            return cpu_pct! > 1 && mem_bytes! > 5e7;
          },
          { timeout: 60_000 },
        )
        .toBe(true);
      await sdk.browsers.process.kill(process_id!, { id: id(), signal: 'KILL' });
      expect(await output.end).toBe(137);
      const loop = output.said().trim();
      // It was killed with the others, and may not have died yet.
      const left = async () => text((await sh(`kill -0 ${loop} 2>&1 || echo gone`)).stdout_b64);
      await expect.poll(left).toContain('gone');
    });

    test.runIf(shape === 'headless')(
      'a terminal is read on the stream and on a websocket, and can be resized',
      async () => {
        const { process_id } = await sdk.browsers.process.spawn(id(), {
          command: 'sh',
          allocate_tty: true,
          rows: 30,
          cols: 100,
        });
        const output = reading(id(), process_id!);
        const type = (line: string) =>
          sdk.browsers.process.stdin(process_id!, { id: id(), data_b64: Buffer.from(line).toString('base64') });
        await type('stty size; tty; echo $TERM\n');
        await output.until(/30 100\r\n\/dev\/pts\/\d+\r\nxterm-256color/);
        await sdk.browsers.process.resize(process_id!, { id: id(), rows: 40, cols: 120 });
        await type('stty size\n');
        await output.until('40 120');

        const addresses = [
          `${service.url.replace('http', 'ws')}/browsers/${id()}/process/${process_id}/attach`,
          `${bases[shape].replace('http', 'ws')}/process/${process_id}/attach`,
        ];
        for (const [index, address] of addresses.entries()) {
          const socket = new WebSocket(
            address,
            index === 0 ? { headers: { authorization: `Bearer ${service.key}` } } : {},
          );
          let seen = '';
          socket.on(
            'message',
            (data: Buffer, binary) => void (seen += binary ? data.toString() : `<${data.toString()}>`),
          );
          await expect.poll(() => seen).toContain('30 100'); // from the beginning
          socket.send(JSON.stringify({ type: 'resize', rows: 50 + index, cols: 20 }));
          socket.send(Buffer.from('stty size\n'));
          await expect.poll(() => seen).toContain(`${50 + index} 20`);
          if (index === 1) {
            socket.send(Buffer.from('exit 5\n'));
            await expect.poll(() => seen).toContain('<{"type":"exit","exitCode":5}>');
          }
          socket.close();
        }
        expect(await output.end).toBe(5);
        const resized = await service.call('POST', `/browsers/${id()}/process/${process_id}/resize`, {
          rows: 1,
          cols: 1,
        });
        expect(resized).toMatchObject({ status: 400, body: { code: 'process_exited' } });
      },
    );
  });

  const id = () => sessions.headless;

  test('a command that takes too long is killed, and its output so far is returned', async () => {
    const answer = await service.call('POST', `/browsers/${id()}/process/exec`, {
      command: 'sh',
      args: ['-c', 'echo so far; echo and wrong >&2; sleep 1000 & sleep 1000'],
      timeout_sec: 3,
    });
    expect(answer).toMatchObject({
      status: 500,
      body: {
        code: 'process_timed_out',
        details: [
          { code: 'stdout', message: 'so far\n' },
          { code: 'stderr', message: 'and wrong\n' },
        ],
      },
    });
    expect(answer.headers.get('x-should-retry')).toBe('false'); // or clients would run it three times
  });

  test('a client that hangs up ends the command and all its processes', async () => {
    const hangUp = new AbortController();
    const mark = `7${Date.now() % 100_000}`;
    const call = fetch(`${service.url}/browsers/${id()}/process/exec`, {
      method: 'POST',
      signal: hangUp.signal,
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ command: 'sh', args: ['-c', `setsid sleep ${mark} & sleep ${mark}`] }),
    }).catch(() => {});
    const sleepers = async () => {
      const { stdout_b64 } = await sdk.browsers.process.exec(id(), { command: 'pgrep', args: ['-f', `sleep ${mark}`] });
      return text(stdout_b64).split('\n').filter(Boolean).length;
    };
    await expect.poll(sleepers).toBeGreaterThanOrEqual(2);
    hangUp.abort();
    await call;
    await expect.poll(sleepers).toBe(0);
  });

  test('background processes of a command continue, and do not delay the response', async () => {
    const { stdout_b64 } = await sdk.browsers.process.exec(id(), {
      command: 'sh',
      args: ['-c', 'sleep 500 & echo $!'],
    });
    const pid = text(stdout_b64).trim();
    const alive = await sdk.browsers.process.exec(id(), { command: 'kill', args: ['-0', pid] });
    expect(alive.exit_code).toBe(0);
  });

  test('more output than is kept is said to be missing', async () => {
    const big = await sdk.browsers.process.exec(id(), { command: 'head', args: ['-c', '10000000', '/dev/zero'] });
    expect(big).toMatchObject({ stdout_dropped_bytes: 10_000_000 - 8 * 1024 * 1024 });
    const { process_id } = await sdk.browsers.process.spawn(id(), {
      command: 'head',
      args: ['-c', '10000000', '/dev/zero'],
    });
    await expect.poll(async () => (await sdk.browsers.process.status(process_id!, { id: id() })).state).toBe('exited');
    const events: { event?: string; dropped_bytes?: number; data_b64?: string }[] = [];
    for await (const event of await sdk.browsers.process.stdoutStream(process_id!, { id: id() })) events.push(event);
    expect(events[0]).toMatchObject({ event: 'dropped' });
    const kept = events.reduce((sum, { data_b64 = '' }) => sum + Buffer.from(data_b64, 'base64').length, 0);
    expect(kept + events[0]!.dropped_bytes!).toBe(10_000_000);
  });

  test('a running process keeps the session awake, and a session asleep wakes for a command', async () => {
    const standing = () => service.app.sessions.running(id())!.standingBy;
    const { process_id } = await sdk.browsers.process.spawn(id(), { command: 'sleep', args: ['1000'] });
    await sleep(2 * STANDBY_MS);
    expect(standing()).toBe(false);
    await sdk.browsers.process.kill(process_id!, { id: id(), signal: 'TERM' });
    await expect.poll(standing, { timeout: 60_000 }).toBe(true);
    const { stdout_b64 } = await sdk.browsers.process.exec(id(), { command: 'echo', args: ['awake'] });
    expect(text(stdout_b64)).toBe('awake\n');
  });

  test('an unknown process is not found, and an id that is none is refused', async () => {
    const path = `/browsers/${id()}/process`;
    const unknown = await service.call('GET', `${path}/00000000-0000-4000-8000-000000000000/status`);
    expect(unknown).toMatchObject({ status: 404, body: { code: 'process_not_found' } });
    expect(await service.call('GET', `${path}/nonsense/status`)).toMatchObject({ status: 400 });
  });

  /** Reads a process's events with the SDK, in the background. */
  function reading(id: string, processId: string) {
    let said = '';
    const end = (async () => {
      for await (const event of await sdk.browsers.process.stdoutStream(processId, { id })) {
        said += text(event.data_b64);
        if (event.event === 'exit') return event.exit_code;
      }
      return undefined;
    })();
    return {
      end,
      said: () => said,
      until: (what: string | RegExp) => vi.waitFor(() => expect(said).toMatch(what), { timeout: 60_000 }),
    };
  }
});
