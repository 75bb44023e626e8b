import type Kernel from '@onkernel/sdk';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { diskSpace, type Space } from '../../src/lib/disk-space.ts';
import { sql } from '../../src/store/sql.ts';
import { asRoot, requireSandbox } from '../support/sandbox.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';
import { smallDisk } from '../support/small-disk.ts';

await requireSandbox();

/** What a session may have on the disk in these tests; each attack goes for four times as much, and then stays. */
const BOUND_MB = 128;
/** A disk that one of them could fill. */
const [DISK_MB, DISK_INODES] = [900, asRoot ? 180_000 : 60_000];
/** An attack that was left alone for so long after it has written everything is not ended any more, however busy the machine is. */
const LATE_MS = 30_000;
const [MMAP, READ] = process.arch === 'arm64' ? [222, 63] : [9, 0];

/** What a tenant runs in its session, by what it fills the disk with. */
const attacks: Record<string, string> = {
  'files in its home': `
    cd; for i in $(seq 16); do dd if=/dev/zero of=big-$i bs=1M count=32 status=none; done; echo written; sleep 600`,
  'two hundred thousand small files': `
    perl -e 'chdir; for $d (0..199) { mkdir "d$d"; for (0..999) { open F, ">", "d$d/$_" or exit 1; print F "x" } }'; echo written; sleep 600`,
  'files that have no name any more': `
    perl -e 'chdir; for $n (1..16) { open $f[$n], ">", "gone"; unlink "gone"; syswrite $f[$n], "x" x 1048576 for 1..32 } $| = 1; print "written\n"; sleep 600'`,
  'files that are mapped and have no name any more': `
    perl -e 'chdir; open Z, "<", "/dev/zero"; $l = 33554432;
      for $n (1..16) { open F, "+>", "mapped"; unlink "mapped"; truncate F, $l; $a = syscall(${MMAP}, 0, $l, 3, 1, fileno(F), 0); close F; syscall(${READ}, fileno(Z), $a, $l) }
      $| = 1; print "written\n"; sleep 600'`,
  'a directory that is closed against its own user': `
    cd; mkdir -p a/b; (cd a/b; for i in $(seq 16); do dd if=/dev/zero of=big-$i bs=1M count=32 status=none; [ $i = 2 ] && chmod 0 .. ../../a/b 2>/dev/null; done); echo written; sleep 600`,
  'a file that it moves about': `
    perl -e 'chdir; mkdir $_ for 0..63; unless (fork) { for (;;) { for $n (0..63) { $m = ($n + 1) % 64; rename "$n/f$_", "$m/f$_" for 1..16 } } }
      for $i (1..16) { open F, ">", "new"; syswrite F, "x" x 1048576 for 1..32; close F; rename "new", "0/f$i" } $| = 1; print "written\n"; sleep 600'`,
  'writers that no process waits for': `
    perl -e 'chdir; $SIG{CHLD} = "IGNORE"; for $n (1..16) { unless (fork) { open F, ">", "w$n"; syswrite F, "x" x 1048576 for 1..32; exit } select undef, undef, undef, 0.02 }
      wait; $| = 1; print "written\n"; sleep 600'`,
};

describe('a session that writes more than its bound', () => {
  let service: Service;
  let sdk: Kernel;
  beforeAll(async () => {
    service = await startService({ CORRAL_SESSION_DISK_MB: String(BOUND_MB) });
    sdk = service.sdk();
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
  });

  test.each(Object.entries(attacks))('by %s ends, and its clients receive the reason', async (_what, script) => {
    const { session_id: id, cdp_ws_url } = await sdk.browsers.create({ headless: true, timeout_seconds: 600 });
    const closed = closeOf(cdp_ws_url);
    const { process_id } = await sdk.browsers.process.spawn(id, { command: 'sh', args: ['-c', script] });
    const how = await Promise.race([ended(service, id), outlived(sdk, id, process_id!)]);
    expect(how).toMatchObject({ ended_reason: 'disk_limit' });
    expect(await closed).toMatch(/^1001 .*CORRAL_SESSION_DISK_MB/);
    await expect.poll(() => existsSync(join(service.dataDir, 'sessions', id)), { timeout: 60_000 }).toBe(false);
  });

  test('by a call that takes a disk at once, and writes nothing, is refused', async () => {
    const { session_id: id } = await sdk.browsers.create({ headless: true, timeout_seconds: 600 });
    await sdk.browsers.process.exec(id, { command: 'touch', args: ['/home/corral/taken'] });
    for (const options of [['-n'], [], ['-z']]) {
      const args = [...options, '-l', '1M', '/home/corral/taken'];
      const { exit_code } = await sdk.browsers.process.exec(id, { command: 'fallocate', args });
      expect(exit_code, args.join(' ')).not.toBe(0);
    }
    const { stdout_b64 } = await sdk.browsers.process.exec(id, { command: 'du', args: ['-k', '/home/corral/taken'] });
    expect(Buffer.from(stdout_b64!, 'base64').toString()).toMatch(/^0\t/);
    await sdk.browsers.deleteByID(id);
  });

  test('by downloads ends too', async () => {
    const { session_id: id, cdp_ws_url } = await sdk.browsers.create({ headless: true, timeout_seconds: 600 });
    const browser = await chromium.connectOverCDP(cdp_ws_url);
    const page = browser.contexts()[0]!.pages()[0]!;
    const download = `for (let n = 0; n < 16; n++) {
      const a = document.createElement('a');
      a.href = URL.createObjectURL(new Blob([new Uint8Array(32 << 20).fill(n)]));
      a.download = 'big-' + n;
      a.click();
      await new Promise((resolve) => setTimeout(resolve, 300));
    }`;
    const downloaded = page.evaluate(`(async () => { ${download} return 'written'; })()`).then(
      async () => sleep(LATE_MS, 'written', { ref: false }),
      () => new Promise(() => {}), // it went with its session
    );
    expect(await Promise.race([ended(service, id), downloaded])).toMatchObject({ ended_reason: 'disk_limit' });
    await browser.close();
  });

  test('by the upload of one file is refused, and continues', async () => {
    const { session_id: id } = await sdk.browsers.create({ headless: true, timeout_seconds: 600 });
    const content = async function* () {
      for (let n = 0; n < 2 * BOUND_MB; n++) yield Buffer.alloc(1024 * 1024);
    };
    const answer = await fetch(`${service.url}/browsers/${id}/fs/write_file?path=/home/corral/big`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/octet-stream' },
      body: ReadableStream.from(content()),
      duplex: 'half',
    });
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 507,
      body: { code: 'session_storage_full' },
    });
    expect((await sdk.browsers.process.exec(id, { command: 'echo' })).exit_code).toBe(0);
    await sdk.browsers.deleteByID(id);
  });
});

function readdirIfThere(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Root mounts a disk. For other users the disk is simulated, and counts only the attacker's files. */
function disk() {
  if (asRoot) return smallDisk(DISK_MB, DISK_INODES);
  const path = mkdtempSync(join(tmpdir(), 'corral-disk-'));
  const space = () => {
    const homes = readdirIfThere(join(path, 'sessions')).map((id) => join(path, 'sessions', id, 'home'));
    const big = homes.flatMap((home) =>
      readdirIfThere(home)
        .filter((name) => name.startsWith('big-'))
        .map((name) => statSync(join(home, name), { throwIfNoEntry: false })?.blocks ?? 0),
    );
    const many = homes.flatMap((home) => readdirIfThere(join(home, 'many')));
    const usedBytes = big.reduce((sum, blocks) => sum + blocks * 512, 0);
    const [bytes, inodes, usedInodes] = [DISK_MB * 2 ** 20, DISK_INODES, big.length + many.length];
    const freeBytes = Math.max(0, bytes - usedBytes);
    return { bytes, usedBytes, freeBytes, inodes, usedInodes, freeInodes: Math.max(0, inodes - usedInodes) };
  };
  return { path, space, remove: () => rmSync(path, { recursive: true, force: true }) };
}

describe('on a disk that sessions could fill', () => {
  let small: { path: string; space?: () => Space; remove(): void };
  let service: Service;
  let sdk: Kernel;
  beforeAll(async () => {
    small = disk();
    const settings = { CORRAL_SESSION_DISK_MB: '16384', CORRAL_DISK_RESERVE_MB: '300' };
    service = await startService({ ...settings, CORRAL_DATA_DIR: small.path }, small);
    sdk = service.sdk();
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close({ keep: true });
    small?.remove();
  });

  // As fast as a disk is. What can be written between two looks has to fit into the reserve, and memory, which this disk is made of, takes
  // all of it in a tenth of a second, in which the service of a busy machine may not have had its turn.
  test.each([
    [
      'bytes',
      'cd; for i in $(seq 200); do dd if=/dev/zero of=big-$i bs=1M count=8 status=none; sleep 0.06; done; sleep 600',
    ],
    [
      'inodes',
      `perl -e 'chdir; mkdir "many"; for (0..199999) { open F, ">", "many/$_" or last; select undef, undef, undef, 0.01 unless $_ % 200 } sleep 600'`,
    ],
  ])(
    'a session that takes all %s is ended, and the database and the others work on',
    async (_what, script) => {
      const profile = await sdk.profiles.create({});
      const neighbour = await sdk.browsers.create({ headless: true, profile: { id: profile.id, save_changes: true } });
      const client = await chromium.connectOverCDP(neighbour.cdp_ws_url);
      const { session_id: id } = await sdk.browsers.create({ headless: true, timeout_seconds: 600 });
      await sdk.browsers.process.spawn(id, { command: 'sh', args: ['-c', script] });
      const left = () => (small.space ?? diskSpace(small.path).read)();
      const over = ended(service, id, 150_000).catch(() => undefined);
      const answers: number[] = [];
      const least = { bytes: Infinity, inodes: Infinity };
      for (let going = true; going;) {
        const { freeBytes, freeInodes } = left();
        least.bytes = Math.min(least.bytes, freeBytes);
        least.inodes = Math.min(least.inodes, freeInodes);
        answers.push((await service.call('POST', '/profiles', {})).status); // which the database has to write down
        going = await Promise.race([over.then(() => false), sleep(5, true)]);
      }
      expect(new Set(answers)).toEqual(new Set([201]));
      expect(await over).toMatchObject({ ended_reason: 'disk_full' });
      // The attacker may fill a simulated disk beyond its size before the next measurement.
      if (asRoot) expect(Math.min(least.bytes, least.inodes)).toBeGreaterThan(0);
      expect(await audited(service)).toBeGreaterThanOrEqual(answers.length);
      expect(await client.contexts()[0]!.pages()[0]!.evaluate('6 * 7')).toBe(42);
      await client.close();
      await sdk.browsers.deleteByID(neighbour.session_id);
      expect((await service.call('GET', `/profiles/${profile.id}/versions`)).body).toHaveLength(1);
      const next = await sdk.browsers.create({ headless: true });
      await sdk.browsers.deleteByID(next.session_id);
    },
    300_000,
  );
});

async function audited(service: Service): Promise<number> {
  const [row] = await service.app.store.db.rows<{ rows: number }>(
    sql`select count(*)::integer as rows from audit_log where method = 'POST' and path = '/profiles'`,
  );
  return row?.rows ?? 0;
}

/** The session's row, once it has ended. */
async function ended(service: Service, id: string, ms = 100_000): Promise<unknown> {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(50)) {
    const { body } = await service.call('GET', `/browsers/${id}?include_deleted=true`);
    if (body.ended_reason) return body;
  }
  throw new Error('The session has not ended.');
}

/** Resolves when the attack has written all that it wanted, and was left alone for LATE_MS after it. */
async function outlived(sdk: Kernel, id: string, processId: string): Promise<string> {
  try {
    for await (const event of await sdk.browsers.process.stdoutStream(processId, { id })) {
      if (!Buffer.from(event.data_b64 ?? '', 'base64').includes('written')) continue;
      return await sleep(LATE_MS, 'It has written all it wanted.', { ref: false });
    }
  } catch {
    // its session went
  }
  return new Promise<string>(() => {});
}

function closeOf(url: string): Promise<string> {
  const socket = new WebSocket(url);
  socket.on('error', () => {});
  return new Promise((resolve) => socket.on('close', (code, reason) => resolve(`${code} ${reason.toString()}`)));
}
