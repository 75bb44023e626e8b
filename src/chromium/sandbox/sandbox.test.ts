import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { unfiltered } from '../../../test/support/sandbox.ts';
import { browserYard } from '../../../test/support/browsers.ts';
import { type Browser } from '../browser/launch.ts';
import { enter } from './entry.ts';
import { tree } from './process-tree.ts';
import { isolationHere } from '../../../test/support/sandbox.ts';

const isolation = await isolationHere();

describe.runIf(isolation.sandboxed)('inside a session', () => {
  let yard: Awaited<ReturnType<typeof browserYard>>;
  let mine: Browser & { dir: string };
  let other: Browser & { dir: string };
  let listener: net.Server;
  let abstract: net.Server;

  beforeAll(async () => {
    yard = await browserYard();
    [mine, other] = await Promise.all([yard.launch(), yard.launch({ headless: false })]);
    writeFileSync(join(other.dir, 'home/secret'), 'of another session');
    writeFileSync(join(yard.sessions, 'api-key'), 'of the service');
    listener = net.createServer().listen(0, '127.0.0.1');
    abstract = net.createServer().listen(`\0corral-test-abstract-${process.pid}`);
  });
  afterAll(async () => {
    listener.close();
    abstract.close();
    await yard.close();
  });

  /** Runs a shell in the session's own namespaces, as `process exec` will. */
  async function inside(script: string, session = mine): Promise<string> {
    const { file, args } = enter(session.init!, ['sh', '-c', script]);
    const { stdout } = await promisify(execFile)(file, args, { timeout: 60_000 });
    return stdout.trim();
  }

  /** Whether a connection from inside the session succeeds. Only to addresses inside its namespace. */
  const reach = (host: '127.0.0.1' | '10.0.0.1', port: number) =>
    inside(
      `perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr=>"${host}",PeerPort=>${port},Timeout=>1) ? "open" : "closed"'`,
    );

  test('one is an ordinary user without capabilities, and cannot gain any', async () => {
    expect(await inside('id -u; id -g; id -un')).toBe('1000\n1000\ncorral');
    const status = await inside('cat /proc/self/status');
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(status).toMatch(/^CapPrm:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(await inside('grep -c nosuid /proc/self/mounts')).toBe(
      await inside('grep -vc " /proc/sys/" /proc/self/mounts'),
    );
  });

  test('the network is whole at once: a later address would make Chromium cancel its requests', async () => {
    expect(await inside("awk '{ print $6 }' /proc/net/if_inet6")).toBe('lo');
    expect(await inside("awk '{ print $1 }' /proc/net/route | sed 1d | sort -u")).toBe('v0');
  });

  test('the processes are the session’s own', async () => {
    const names = (await inside('cat /proc/[0-9]*/comm | sort -u')).split('\n');
    expect(names).toContain('bwrap');
    expect(names.filter((name) => !/^(bwrap|sh|cat|sort|headless_shell|chrom|ThreadPool)/.test(name))).toEqual([]);
    expect(await inside('cat /proc/1/comm')).toBe('bwrap');
    expect(await inside(`kill -0 ${process.pid} 2>&1 || echo no`)).toContain('no');
  });

  test('the home, /tmp and /dev/shm are writable, and nothing else is', async () => {
    expect(await inside('touch ~/x /tmp/x /dev/shm/x && rm ~/x /tmp/x /dev/shm/x && echo yes')).toBe('yes');
    const writable = await inside('find / -path /proc -prune -o -type d -writable -print 2>/dev/null; true');
    const meant = /^\/(home\/corral|tmp|dev\/(shm|pts)|run\/corral|run\/user)/;
    // The directory of extensions is the service's: root, or else the very user that the session runs as.
    const ofTheService = process.getuid?.() === 0 ? [] : ['/opt/extensions'];
    expect(writable.split('\n').filter((path) => !meant.test(path))).toEqual(ofTheService);
  });

  test('neither the data directory nor the host’s homes, sockets and secrets are there', async () => {
    const lib64 = existsSync('/lib64') ? ['lib64'] : []; // not on every architecture
    expect(await inside('ls -A /')).toBe(
      ['bin', 'dev', 'etc', 'home', 'lib', ...lib64, 'opt', 'proc', 'run', 'sbin', 'tmp', 'usr', 'var'].join('\n'),
    );
    expect(await inside('ls -A /home /run /var /tmp')).not.toMatch(/dbus|docker|systemd|lock|corral-test/);
    expect(await inside('ls -A /home')).toBe('corral');
    expect(await inside(`ls ${yard.sessions} 2>&1 || true`)).toContain('No such file');
    expect(await inside('cat /etc/passwd | wc -l')).toBe('2');
    expect(await inside('ls /etc/shadow /etc/ssl/private /sys /root /mnt 2>/dev/null | wc -l')).toBe('0');
    expect(await inside('find / -name secret -o -name api-key 2>/dev/null | grep -v ^/usr | wc -l')).toBe('0');
  });

  test('the environment is the session’s own', async () => {
    process.env['CORRAL_TEST_SECRET'] = 'x';
    // Chromium writes over its own; the crash handler it starts has the same.
    const script = 'tr "\\0" "\\n" </proc/$(pgrep -of crashpad_handler)/environ | cut -d= -f1';
    const { file, args } = unfiltered(enter(other.init!, ['sh', '-c', script]));
    const names = (await promisify(execFile)(file, args, { timeout: 60_000 })).stdout.trim();
    delete process.env['CORRAL_TEST_SECRET'];
    expect(names.split('\n').sort()).toEqual(
      [
        'DBUS_SESSION_BUS_ADDRESS',
        'DBUS_SYSTEM_BUS_ADDRESS',
        'DISPLAY',
        'HOME',
        'LANG',
        'LOGNAME',
        'PATH',
        'PWD',
        'SHELL',
        'USER',
        'XDG_RUNTIME_DIR',
      ].sort(),
    );
  });

  test('abstract sockets of the host and displays of other sessions are not there', async () => {
    const sockets = await inside('cat /proc/net/unix');
    expect(sockets).not.toContain('corral-test-abstract');
    expect(sockets).not.toContain('X11-unix');
    expect(await inside('cat /proc/net/unix', other)).toContain('X11-unix');
  });

  test('the host’s loopback is not there, only the gateway is', async () => {
    const address = listener.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    expect(await reach('127.0.0.1', port)).toBe('closed');
    expect(await reach('127.0.0.1', 3128)).toBe('open');
  });

  test('the network has no interface but its own, and its default route leads back to itself', async () => {
    const interfaces = await inside("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort");
    expect(interfaces).toBe('lo\nv0\nv1');
    // Addressed to the route's gateway, inside a namespace without a way out: no host there answers.
    expect(await reach('10.0.0.1', 80)).toBe('closed');
  });

  test('a process that is left by an exec goes with the session', async () => {
    const session = await yard.launch();
    await inside('setsid sleep 1000 >/dev/null 2>&1 & echo started', session);
    // Polled: on a busy machine `setsid` may not have become `sleep` yet.
    await expect.poll(() => inside('cat /proc/[0-9]*/comm', session), { timeout: 60_000 }).toContain('sleep');
    const namespace = session.init!;
    await session.stop();
    expect(tree(namespace)).toEqual([]); // without a zombie, which the machine's first process has yet to reap if the outer bwrap was killed
  });

  test('a data directory that only root can walk to will do', async () => {
    const dir = join(yard.sessions, 'closed', 's');
    mkdirSync(join(yard.sessions, 'closed'), { mode: 0o700 });
    const session = await yard.launch({ dir });
    expect(await inside('touch ~/x && echo yes', session)).toBe('yes');
    await session.stop();
  });
});
