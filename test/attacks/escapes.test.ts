import type Kernel from '@onkernel/sdk';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ZipFile } from 'yazl';
import { requireSandbox } from '../support/sandbox.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';

const isolation = await requireSandbox();
const SECRET = 'a-word-nobody-inside-may-read';
const home = '/home/corral';

/** What can be asked of a session's files and processes, and where it must not lead. */
describe('there is no way out of a session', () => {
  let service: Service;
  let sdk: Kernel;
  let hostDir: string;
  let id: string;
  let other: string;

  beforeAll(async () => {
    process.env['CORRAL_TEST_SECRET'] = SECRET;
    hostDir = mkdtempSync(join(tmpdir(), 'corral-escape-'));
    writeFileSync(join(hostDir, 'open'), SECRET, { mode: 0o666 });
    service = await startService();
    sdk = service.sdk();
    const made = await Promise.all([1, 2].map(() => sdk.browsers.create({ headless: true, timeout_seconds: 600 })));
    [id, other] = made.map(({ session_id }) => session_id) as [string, string];
    await sdk.browsers.fs.writeFile(other, Buffer.from(SECRET), { path: `${home}/secret` });
  });
  afterAll(async () => {
    delete process.env['CORRAL_TEST_SECRET'];
    if (service) await expectNothingLeft(service);
    await service?.close();
    rmSync(hostDir, { recursive: true, force: true });
  });

  async function sh(script: string, more: Partial<Kernel.Browsers.ProcessExecParams> = {}) {
    const result = await sdk.browsers.process.exec(id, { command: 'sh', args: ['-c', script], ...more });
    const [stdout, stderr] = [result.stdout_b64, result.stderr_b64].map((part) =>
      Buffer.from(part!, 'base64').toString(),
    );
    return { code: result.exit_code, said: `${stdout}${stderr}` };
  }
  const get = (path: string) => service.call('GET', `/browsers/${id}/fs/read_file?path=${encodeURIComponent(path)}`);
  const put = (path: string) =>
    service.call('PUT', `/browsers/${id}/fs/write_file?path=${encodeURIComponent(path)}`, 'x', {
      'content-type': 'x/y',
    });

  describe('by a path', () => {
    test.each([
      ['a file of the machine', () => join(hostDir, 'open')],
      ['one above the root', () => `${home}/../../../../../..${hostDir}/open`],
      ['the root of process 1', () => `/proc/1/root${hostDir}/open`],
      ['the service’s data', () => join(service.dataDir, 'secret-key')],
      ['another session’s files', () => join(service.dataDir, 'sessions', other, 'home/secret')],
      ['the stage where sandboxes are made', () => `/mnt/home/secret`],
      ['the machine’s memory', () => '/dev/mem'],
      ['a disk', () => '/dev/sda'],
    ])('%s is not there', async (_what, path) => {
      const answer = await get(path());
      expect([403, 404]).toContain(answer.status);
      expect(answer.text).not.toContain(SECRET);
    });

    test('a device is no file', async () => {
      for (const device of ['/dev/zero', '/dev/random', '/dev/tty'])
        expect(await get(device), device).toMatchObject({ status: 400, body: { code: 'wrong_kind_of_file' } });
      await sh('mkfifo ~/fifo');
      expect(await get(`${home}/fifo`)).toMatchObject({ status: 400, body: { code: 'wrong_kind_of_file' } });
      expect(await put(`${home}/fifo`)).toMatchObject({ status: 400 });
    });

    test('a link resolves to files of the session only', async () => {
      await sh(`ln -s ${hostDir}/open ~/out; ln -s / ~/root; ln -s loop ~/loop; ln -s ~/root/proc/1/cwd ~/cwd`);
      expect(await get(`${home}/out`)).toMatchObject({ status: 404 });
      expect(await get(`${home}/root${hostDir}/open`)).toMatchObject({ status: 404 });
      expect(await get(`${home}/loop`)).toMatchObject({ status: 400, body: { code: 'bad_path' } });
      // A file of that name in the session's own /tmp is made and written.
      expect((await put(`${home}/out`)).status).toBe(201);
      expect(await get(`${home}/out`)).toMatchObject({ status: 200, text: 'x' });
      expect(readFileSync(join(hostDir, 'open'), 'utf8')).toBe(SECRET);
      // To a directory of that name in the session's own /tmp.
      await service.call('PUT', `/browsers/${id}/fs/move`, { src_path: `${home}/out`, dest_path: `${hostDir}/x` });
      expect(existsSync(join(hostDir, 'x'))).toBe(false);
    });

    test.each([
      '/usr/bin/evil',
      '/etc/passwd',
      '/proc/sys/kernel/core_pattern',
      '/sys/x',
      '/opt/corral/guest/inside/main.js',
      '/evil',
      '/dev/evil',
    ])('nothing is written to %s', async (path) => expect([400, 403, 404]).toContain((await put(path)).status));
  });

  describe('by an archive', () => {
    const upload = async (archive: Buffer) => {
      const form = new FormData();
      form.append('zip_file', new File([archive], 'a.zip'));
      form.append('dest_path', `${home}/unpacked/here`);
      const answer = await fetch(`${service.url}/browsers/${id}/fs/upload_zip`, {
        method: 'POST',
        headers: { authorization: `Bearer ${service.key}` },
        body: form,
      });
      return { status: answer.status, body: (await answer.json()) as { code: string; message: string } };
    };
    const packed = async (fill: (zip: ZipFile) => void) => {
      const zip = new ZipFile();
      fill(zip);
      zip.end();
      const parts: Buffer[] = [];
      for await (const part of zip.outputStream) parts.push(part as Buffer);
      return Buffer.concat(parts);
    };
    /** An entry by a name that no tool would write. */
    const named = async (name: string, mode = 0o100644, content = 'evil') => {
      const stand = 'n'.repeat(name.length);
      const archive = await packed((zip) => zip.addBuffer(Buffer.from(content), stand, { mode, compress: false }));
      return Buffer.from(archive.toString('latin1').replaceAll(stand, name), 'latin1');
    };

    test.each([
      ['a name that climbs', () => named('../evil')],
      ['a name that climbs later', () => named('a/../../evil')],
      ['an absolute name', () => named('/tmp/evil')],
      ['a name of another system', () => named('..\\evil')],
      ['a link that climbs', () => named('link', 0o120777, '../../secret')],
      ['an absolute link', () => named('link', 0o120777, '/etc/passwd')],
      ['a device', () => named('device', 0o020666, '')],
      ['a pipe', () => named('pipe', 0o010666, '')],
      ['no archive', async () => Buffer.from('this is not a zip')],
      ['nothing', async () => Buffer.alloc(0)],
    ])('%s is refused, and nothing is unpacked', async (_what, archive) => {
      expect(await upload(await archive())).toMatchObject({ status: 400, body: { code: 'bad_archive' } });
      expect((await sh('ls -d ~/unpacked ~/evil /tmp/evil 2>/dev/null')).said).toBe('');
    });

    test('an archive that would fill the disk is refused', async () => {
      const zeros = Buffer.alloc(64 * 1024 * 1024);
      const bomb = await packed((zip) => {
        for (let n = 0; n < 5; n++) zip.addBuffer(zeros, `zeros-${n}`, { compressionLevel: 9 });
      });
      expect(await upload(bomb)).toMatchObject({ status: 400, body: { code: 'archive_too_large' } });
      // It says it is small, and is not.
      const liar = await packed((zip) => zip.addBuffer(Buffer.alloc(1_000_000), 'liar'));
      for (let at = liar.indexOf('PK\u0001\u0002'); at !== -1; at = liar.indexOf('PK\u0001\u0002', at + 1))
        liar.writeUInt32LE(10, at + 24);
      expect(await upload(liar)).toMatchObject({ status: 400, body: { code: 'bad_archive' } });
      expect((await sh('ls ~/*.part ~/.*.part 2>/dev/null')).said).toBe('');
    });

    test('a link of the archive is not written through', async () => {
      const archive = await packed((zip) => {
        zip.addBuffer(Buffer.from('inside'), 'real/file', {});
        zip.addBuffer(Buffer.from('real'), 'link', { mode: 0o120777, compress: false });
        zip.addBuffer(Buffer.from('over'), 'link/file', {});
      });
      expect([400, 403]).toContain((await upload(archive)).status);
      await sh('rm -rf ~/unpacked');
    });
  });

  describe('by a process', () => {
    test('it has none of the service’s environment, descriptors and processes', async () => {
      const { said } = await sh(
        'env; cat /proc/*/environ; cat /proc/*/cmdline; ls -l /proc/*/fd /proc/*/cwd 2>/dev/null',
      );
      expect(said).not.toContain(SECRET);
      expect(said).not.toContain(service.key);
      expect(said).not.toContain(service.dataDir);
      for (const as_root of [false, true]) {
        const tried = await sh(`kill -0 ${process.pid} 2>&1; kill -9 ${process.pid} ${process.ppid} 2>&1`, { as_root });
        expect(tried.said.toLowerCase()).toContain('no such process');
      }
    });

    test('it has no network but the session’s own', async () => {
      const port = new URL(service.url).port;
      const { said } = await sh(
        `perl -MIO::Socket::INET -e 'for ("127.0.0.1:${port}", "10.0.0.1:80", "169.254.169.254:80") { print IO::Socket::INET->new(PeerAddr=>$_,Timeout=>1) ? "open\\n" : "closed\\n" }'`,
      );
      expect(said).toBe('closed\nclosed\nclosed\n');
    });

    test('root is root of nothing but its own namespace', async () => {
      const tried = [
        'mount -t tmpfs none /mnt',
        'mount --bind / /mnt',
        'mount -o remount,rw /usr',
        'mknod ~/device b 8 0',
        'umount /proc',
        'chown 0:1 ~/secret-file',
        'hostname evil',
        'ip link add d0 type dummy',
        'nsenter -t 1 -m true',
        'nsenter -t 1 -n true',
        'echo x >/proc/sys/kernel/core_pattern',
        'echo x >/opt/corral/guest/inside/main.js',
        'touch /usr/evil',
        'chroot /proc/1/root true',
        'dmesg',
      ];
      await sh('touch ~/secret-file');
      const script = tried.map((command) => `(${command}) >/dev/null 2>&1 && echo '${command}'`).join('; ');
      expect((await sh(`${script}; true`, { as_root: true })).said).toBe('');
    });
  });

  test('processes and watches of one session are not accessible in another', async () => {
    const { process_id } = await sdk.browsers.process.spawn(id, { command: 'sleep', args: ['100'] });
    const { watch_id } = await sdk.browsers.fs.watch.start(id, { path: home });
    expect(await service.call('GET', `/browsers/${other}/process/${process_id}/status`)).toMatchObject({ status: 404 });
    expect(await service.call('DELETE', `/browsers/${other}/fs/watch/${watch_id}`)).toMatchObject({ status: 404 });
    expect(await service.call('GET', `/browsers/none/process/${process_id}/status`)).toMatchObject({ status: 404 });
    await sdk.browsers.process.kill(process_id!, { id, signal: 'KILL' });
  });

  test('a guest that is killed from inside takes its processes along, and the next request has another', async () => {
    const { process_id, pid } = await sdk.browsers.process.spawn(id, { command: 'sleep', args: ['100'] });
    const killed = await service.call('POST', `/browsers/${id}/process/exec`, {
      command: 'pkill',
      args: ['-9', '-f', 'guest/inside/main.js'],
    });
    expect(killed).toMatchObject({ status: 500, body: { code: 'guest_lost' } });
    // The kernel kills it with the guest, but on a busy machine it may not have died yet.
    await expect.poll(async () => (await sh(`kill -0 ${pid} 2>&1`)).code).not.toBe(0);
    expect(await service.call('GET', `/browsers/${id}/process/${process_id}/status`)).toMatchObject({
      body: { state: 'exited', exit_code: 137 },
    });
  });

  test.runIf(isolation.cgroups?.controllers.includes('pids'))(
    'a fork bomb ends at the session’s own limit',
    async () => {
      const { session_id } = await sdk.browsers.create({ headless: true });
      const args = ['-c', 'i=0; while [ $i -lt 6000 ]; do sleep 100 & i=$((i+1)); done; true'];
      const { stderr_b64 } = await sdk.browsers.process.exec(session_id, { command: 'sh', args });
      expect(Buffer.from(stderr_b64!, 'base64').toString()).toMatch(/fork|resource/i);
      expect((await sh('echo still here')).said).toBe('still here\n'); // in the other session
      await sdk.browsers.deleteByID(session_id);
    },
  );
});
