import type Kernel from '@onkernel/sdk';
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { groupsOf } from '../../src/chromium/sandbox/cgroup.ts';
import { tree } from '../../src/chromium/sandbox/process-tree.ts';
import { expectDoctorAgrees } from '../support/doctor-agrees.ts';
import { asRoot, requireSandbox } from '../support/sandbox.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();

/**
 * If every namespace has failed, only uids separate two sessions, and a session from the database. The attacks run on the host as the uid of
 * one session, like a process that escaped its sandbox.
 */
let service: Service;
let mine: Kernel.BrowserCreateResponse;
let other: Kernel.BrowserCreateResponse;
const init = new Map<string, number>();
let postmaster: number;

beforeAll(async () => {
  service = await startService();
  const sdk = service.sdk();
  [mine, other] = await Promise.all([
    sdk.browsers.create({ headless: true }),
    sdk.browsers.create({ headless: false }),
  ]);
  for (const { session_id } of [mine, other])
    init.set(session_id, (await service.app.sessions.hold(session_id)).engine.browser.init!);
  postmaster = Number(readFileSync(join(service.dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);
});
afterAll(() => service?.close());

/** Undefined for a process that has just ended. */
function uidOf(pid: number): number | undefined {
  try {
    return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
  } catch {
    return undefined;
  }
}
const processes = (session: Kernel.BrowserCreateResponse) => tree(init.get(session.session_id)!);
const dirOf = ({ session_id }: Kernel.BrowserCreateResponse) => join(service.dataDir, 'sessions', session_id);

/** Everything of a session that runs, has one uid; bubblewrap's own first process may be root's. */
function uidsOf(session: Kernel.BrowserCreateResponse): number[] {
  return [...new Set(processes(session).map(uidOf))].filter((uid) => uid !== undefined && uid !== 0) as number[];
}

test.runIf(!asRoot)('an ordinary user’s service lacks the same for /ready and for the doctor', async () => {
  expect(await expectDoctorAgrees((path) => service.call('GET', path))).not.toContain('sandbox');
});

test('a session sees the path of the data directory and its own id, and no more of it', () => {
  for (const session of [mine, other]) {
    const lines = readFileSync(`/proc/${init.get(session.session_id)}/mountinfo`, 'utf8').split('\n');
    const shown = lines.map((line) => line.split(' ')[3] ?? '').filter((root) => root.startsWith(service.dataDir));
    const own = ['etc', 'home', 'extensions', ...(session === other ? ['display/x11'] : [])];
    const allowed = [join(service.dataDir, 'tools'), ...own.map((name) => join(dirOf(session), name))];
    expect(shown.sort()).toEqual(allowed.sort());
  }
});

describe.runIf(asRoot)('as root', () => {
  /** A shell on the host, outside of every namespace, as one session's uid. Everything it said. */
  async function outside(script: string, as = mine): Promise<string> {
    const [uid] = uidsOf(as);
    const { stdout, stderr } = await promisify(execFile)('sh', ['-c', script], {
      uid: uid!,
      gid: uid!,
      cwd: '/',
      timeout: 20_000,
    }).catch((error: { stdout: string; stderr: string }) => error);
    return `${stdout}${stderr}`;
  }

  test('each session has a uid of its own, inside and out, and the database has another', () => {
    const all = [...uidsOf(mine), ...uidsOf(other), uidOf(postmaster)];
    expect(all).toHaveLength(3);
    expect(new Set(all).size).toBe(3);
    for (const session of [mine, other]) {
      const { uid, gid } = statSync(join(dirOf(session), 'home'));
      expect([uid]).toEqual(uidsOf(session));
      expect(gid).toBe(uid);
    }
  });

  test('its processes cannot be signalled, traced or read by another session’s uid', async () => {
    const victims = [...processes(other), postmaster];
    const said = await outside(
      victims
        .map(
          (pid) =>
            `kill -CONT ${pid} && echo SIGNALLED ${pid}; cat /proc/${pid}/environ >/dev/null && echo READ ${pid}; ` +
            `dd if=/proc/${pid}/mem bs=1 count=1 >/dev/null && echo MEMORY ${pid}; ls /proc/${pid}/fd >/dev/null && echo FDS ${pid}; ` +
            `ls /proc/${pid}/root/ >/dev/null && echo ROOT ${pid}; nsenter --target ${pid} --user true && echo ENTERED ${pid}; ` +
            // 101 and 117 are ptrace on x86_64 and aarch64; 16 is PTRACE_ATTACH, 17 lets go again.
            `perl -e '$n = $ARGV[0] eq "x86_64" ? 101 : 117; print "TRACED ${pid}\\n" if syscall($n, 16, ${pid}, 0, 0) == 0; syscall($n, 17, ${pid}, 0, 0)' $(uname -m)`,
        )
        .join('; '),
    );
    expect(said.match(/[A-Z]{3,} \d+/g) ?? []).toEqual([]);
    // The attack itself works: on its own processes it succeeds.
    const own = processes(mine).filter((pid) => uidOf(pid));
    expect(await outside(own.map((pid) => `kill -CONT ${pid} && echo SIGNALLED ${pid}`).join('; '))).toContain(
      'SIGNALLED',
    );
  });

  test('its files, its cgroup and the database’s files are closed to another session’s uid', async () => {
    writeFileSync(join(dirOf(other), 'home/secret'), 'of another session', { mode: 0o644 });
    // Mounted at paths that every user can reach, so that only the uid's rights are tested.
    const show = 'mount --bind "$1/sessions" /mnt && mount --bind "$1/postgres" /srv && shift && exec "$@"';
    const uid = uidsOf(mine)[0]!;
    const become = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', 'sh', '-c'];
    const home = `/mnt/${other.session_id}/home`;
    const script = `cat ${home}/secret; ls ${home}; echo x >${home}/x; rm -rf ${home}; cat /srv/PG_VERSION; ls /srv; ls -d /mnt`;
    const { stdout } = await promisify(execFile)('unshare', [
      '--mount',
      'sh',
      '-c',
      show,
      'sh',
      service.dataDir,
      ...become,
      script,
    ]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe('/mnt\n'); // which it did reach
    expect(readFileSync(join(dirOf(other), 'home/secret'), 'utf8')).toBe('of another session');
    for (const group of groupsOf(init.get(other.session_id)!)) {
      const said = await outside(
        `echo $$ >${group}/cgroup.procs && echo JOINED; echo 1 >${group}/pids.max && echo SET`,
      );
      expect(said, group).not.toMatch(/JOINED|SET/);
    }
  });

  test('a session that follows has another uid again', async () => {
    const before = uidsOf(mine);
    await service.sdk().browsers.deleteByID(mine.session_id);
    mine = await service.sdk().browsers.create({ headless: true });
    init.set(mine.session_id, (await service.app.sessions.hold(mine.session_id)).engine.browser.init!);
    expect(uidsOf(mine)).toHaveLength(1);
    expect(uidsOf(mine)).not.toEqual(before);
  });
});

describe.runIf(!asRoot)('as an ordinary user', () => {
  test('all have the service’s uid, and only namespaces keep them apart', async () => {
    const us = process.getuid!();
    expect(uidsOf(mine)).toEqual([us]);
    expect(uidsOf(other)).toEqual([us]);
    const namespaces = (pid: number) =>
      ['user', 'mnt', 'pid', 'net', 'ipc', 'uts'].map((name) => statSync(`/proc/${pid}/ns/${name}`).ino);
    const [a, b, service] = [init.get(mine.session_id)!, init.get(other.session_id)!, process.pid].map(namespaces);
    a!.forEach((inode, index) => {
      expect(inode).not.toBe(b![index]);
      expect(inode).not.toBe(service![index]);
    });
    expect(readdirSync(dirOf(other))).toContain('home'); // there, for the user itself
  });
});
