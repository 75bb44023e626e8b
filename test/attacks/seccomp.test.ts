import type Kernel from '@onkernel/sdk';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { furnish } from '../../src/chromium/sandbox/furnish.ts';
import { tree } from '../../src/chromium/sandbox/process-tree.ts';
import { running } from '../../src/chromium/sandbox/sandboxed-process.ts';
import { startHelper } from '../../src/chromium/sandbox/entry.ts';
import { sandboxed } from '../../src/chromium/sandbox/sandbox.ts';
import { architectures } from '../../src/chromium/sandbox/seccomp.ts';
import { requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

const isolation = await requireSandbox();
const { numbers } = architectures[process.arch]!;

/**
 * What a session asks of the kernel that no browser needs, asked from each of the places where a tenant's code or data is: a process of
 * the guest, what Chromium is started as, and the helpers that read what a session made.
 */
const LISTED = Object.keys(numbers).filter(
  (name) => !['socket', 'socketpair', 'clone', 'unshare', 'ioctl'].includes(name),
);
/** Each call with arguments that are nothing; what it answered, by its number. */
const CALLS = `for (@ARGV) { ($name, $nr) = split /=/; $! = 0; $r = syscall($nr, 0, 0, 0, 0, 0, 0); printf "%s %d\\n", $name, $r == -1 ? $! + 0 : 0 }`;
const callArgs = LISTED.map((name) => `${name}=${numbers[name]}`);
/** Every family of sockets, in each of the common types. */
const SOCKETS = `for $f (0 .. 45) { for $t (1, 2, 3, 5) { $! = 0; print "$f " if syscall(${numbers['socket']}, $f, $t, 0) >= 0 } }`;
const NETLINK = `for $p (0 .. 31) { print "$p " if syscall(${numbers['socket']}, 16, 3, $p) >= 0 }`;
/** TIOCSTI: a word as if it had been typed. Without a terminal it would be ENOTTY. */
const TYPED = `$c = "x"; $! = 0; syscall(${numbers['ioctl']}, 0, 0x5412, $c); print $! + 0`;

const EPERM = 1;
const ENOSYS = 38;
const EOPNOTSUPP = 95;
const refusal = (name: string) => {
  if (name === 'fallocate') return EOPNOTSUPP;
  return name === 'clone3' || name.startsWith('io_uring') ? ENOSYS : EPERM;
};
const expected = LISTED.map((name) => `${name} ${refusal(name)}`);

type Perl = (script: string, ...args: string[]) => Promise<string>;

async function expectRefused(perl: Perl) {
  expect((await perl(CALLS, ...callArgs)).trim().split('\n')).toEqual(expected);
  const families = new Set((await perl(SOCKETS)).trim().split(' '));
  expect([...families].filter((family) => !['1', '2', '10', '16'].includes(family))).toEqual([]);
  expect(families).toContain('1');
  expect((await perl(NETLINK)).trim()).toBe('0');
  expect(await perl(TYPED)).toBe(String(EPERM));
}

describe('a process of the session', () => {
  let service: Service;
  let session: Kernel.BrowserCreateResponse;

  beforeAll(async () => {
    service = await startService();
    session = await service.sdk().browsers.create({ headless: false });
  });
  afterAll(() => service?.close());

  const exec = async (command: string, args: string[], more: object = {}) => {
    const answer = await service.sdk().browsers.process.exec(session.session_id, { command, args, ...more });
    return Buffer.from(answer.stdout_b64 ?? '', 'base64').toString();
  };
  const sh = (script: string, more: object = {}) => exec('sh', ['-c', `(${script}) 2>&1`], more);

  test('is refused system calls that it does not need', async () => {
    await expectRefused((script, ...args) => exec('perl', ['-e', script, ...args]));
  });

  test('makes no namespace, except by as_root a user namespace that owns nothing else', async () => {
    for (const kind of ['mount', 'net', 'pid', 'ipc', 'uts', 'cgroup', 'time']) {
      expect(await sh(`unshare --user --${kind} true && echo made`), kind).toContain('not permitted');
      expect(await sh(`unshare --${kind} true && echo made`, { as_root: true }), kind).toContain('not permitted');
    }
    // clone() with CLONE_NEWUSER | SIGCHLD; the child would be in a namespace of its own.
    const clone = `$! = 0; $r = syscall(${numbers['clone']}, 0x10000011, 0, 0, 0, 0); exit if $r == 0; print $r == -1 ? $! + 0 : "made"`;
    expect(await exec('perl', ['-e', clone])).toBe(String(EPERM));
    expect(await sh('id -u', { as_root: true })).toBe('0\n');
    expect(await sh('mount -t tmpfs none /tmp; umount /proc; ip link add d0 type dummy', { as_root: true })).not.toBe(
      '',
    );
  });

  test('cannot look into the browser’s processes', async () => {
    expect(await sh('cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -c DBUS_SYSTEM; cat /proc/1/environ')).toContain(
      'Permission denied',
    );
  });

  test('and Chromium and the display have filters from their first process on', async () => {
    const { browser } = (await service.app.sessions.hold(session.session_id)).engine;
    const display = tree(process.pid)
      .map(String)
      .find((pid) => read(pid, 'cmdline').startsWith('Xvnc'));
    const pids = [...tree(browser.init!).map(String), display!];
    expect(pids.length).toBeGreaterThan(3);
    for (const pid of pids) {
      const status = read(pid, 'status');
      if (status !== '') expect(status, read(pid, 'cmdline')).toMatch(/^Seccomp:\s+2$/m);
    }
  });
});

function read(pid: string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}

test('a process that is started like Chromium is refused the same', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'corral-seccomp-'));
  const owner = isolation.owners.claim(dir);
  try {
    await mkdir(join(dir, 'home'));
    await furnish(dir, owner, undefined);
    await expectRefused(async (script, ...args) => {
      const place = sandboxed(dir, owner);
      const started = place.start(['sh', '-c', 'exec perl -e "$0" "$@" >&4 4>&-', script, ...args]);
      const inside = running(started, undefined, async () => place.close());
      started.go();
      const said = await text(started.fromCommand);
      await inside.stop();
      return said;
    });
  } finally {
    owner.release();
    await rm(dir, { recursive: true, force: true });
  }
});

test('a helper that reads files of a session is refused the same, and makes no user namespace either', async () => {
  const owner = isolation.owners.claim();
  const perl: Perl = (script, ...args) => {
    const helper = startHelper(['perl', '-e', script, ...args], { sandboxed: true, owner }, [
      'ignore',
      'pipe',
      'ignore',
    ]);
    return text(helper.stdout!);
  };
  await expectRefused(perl);
  expect(await perl(`$! = 0; syscall(${numbers['unshare']}, 0x10000000); print $! + 0`)).toBe(String(EPERM));
  owner.release();
});
