import type Kernel from '@onkernel/sdk';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeDirectory } from '../../src/chromium/sandbox/outside.ts';
import { asRoot, requireSandbox } from '../support/sandbox.ts';
import { killBrowser } from '../support/kill-browser.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { startService, type Service } from '../support/service.ts';

await requireSandbox();
const MARKS = ['SingletonCookie', 'SingletonLock', 'SingletonSocket'];

/** The service changes only files of the session, even if the session replaces them with links. */
describe('a session cannot lead the service elsewhere by a link', () => {
  let service: Service;
  let sdk: Kernel;
  /** Of the host: nothing in it may change. */
  let canary: string;

  beforeAll(async () => {
    service = await startService();
    sdk = service.sdk();
    canary = mkdtempSync(join(tmpdir(), 'corral-canary-'));
    for (let n = 0; n < 50; n++) writeFileSync(join(canary, `file-${n}`), 'of the host');
    for (const name of MARKS) writeFileSync(join(canary, name), 'of the host');
  });
  afterAll(async () => {
    if (service) await expectNothingLeft(service);
    await service?.close();
    rmSync(canary, { recursive: true, force: true });
  });

  const create = () => sdk.browsers.create({ headless: true, timeout_seconds: 600 });
  const sh = (id: string, script: string) => sdk.browsers.process.exec(id, { command: 'sh', args: ['-c', script] });
  const files = () => readdirSync(canary).filter((name) => name.startsWith('file-')).length;

  test('a browser that is started again does not remove its marks through a link', async () => {
    const { session_id: id } = await create();
    await sh(id, `mv ~/user-data ~/old && ln -s ${canary} ~/user-data`);
    await killBrowser(service, id);
    await vi.waitFor(
      () =>
        expect(service.log.some((line) => line.includes('session.browser_crashed') && line.includes(id))).toBe(true),
      { timeout: 60_000 },
    );
    // Either there is another browser now, or the session ended over it: both come after the marks.
    await service.call('POST', `/browsers/${id}/process/exec`, { command: 'true' });
    await service.call('DELETE', `/browsers/${id}`);
    expect(
      readdirSync(canary)
        .filter((name) => name.startsWith('Singleton'))
        .sort(),
    ).toEqual(MARKS);
  });

  test('files that a session locks against its own user are removed with it', async () => {
    const { session_id: id } = await create();
    await sh(id, `mkdir -p ~/locked/within && : > ~/locked/within/file && ln -s ${canary} ~/locked/within/link`);
    await sh(id, 'chmod 0 ~/locked/within ~/locked ~');
    await sdk.browsers.deleteByID(id);
    await expectNothingLeft(service);
    expect(files()).toBe(50);
  });

  test('a saved profile contains nothing of the targets of its links', async () => {
    const profile = await sdk.profiles.create({ name: 'of-links' });
    const made = { headless: true, profile: { id: profile.id, save_changes: true } };
    const { session_id: id } = await sdk.browsers.create(made);
    await sh(id, `cd ~/user-data/Default && ln -s ${canary} dir && ln -s ${canary}/file-1 file && ln -s / root`);
    await sdk.browsers.deleteByID(id);
    const archive = Buffer.from(await (await sdk.profiles.download(profile.id)).arrayBuffer());
    expect(archive.includes('of the host')).toBe(false);
    expect(files()).toBe(50);
  });

  test('the end of a session removes nothing through directories that turn into links meanwhile', async () => {
    const sessions = await Promise.all(Array.from({ length: 4 }, create));
    await Promise.all(
      sessions.map(async ({ session_id: id }) => {
        // Each directory changes places with a link, again and again, until the process dies.
        await sh(
          id,
          `cd ~; for d in $(seq 20); do mkdir d$d; for f in $(seq 0 49); do : > d$d/file-$f; done; ln -s ${canary} l$d; done
           for p in 1 2; do
             setsid perl -e 'while (1) { for $d (1..20) { syscall(316, -100, "d$d", -100, "l$d", 2) } }' >/dev/null 2>&1 &
           done`,
        );
        await sdk.browsers.deleteByID(id);
      }),
    );
    await expectNothingLeft(service);
    expect(files()).toBe(50);
  });
});

test('a session becomes the owner of its links, not of their targets', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'corral-own-'));
  const us = process.getuid!();
  const owner = asRoot ? { uid: 54_321, gid: 54_321, name: '' } : { uid: us, gid: process.getgid!(), name: '' };
  const ownerOf = (name: string) => lstatSync(join(dir, name)).uid;
  try {
    mkdirSync(join(dir, 'home/inner'), { recursive: true });
    mkdirSync(join(dir, 'canary'), { mode: 0o755 });
    writeFileSync(join(dir, 'canary/file'), '');
    symlinkSync('../canary', join(dir, 'home/dir'));
    symlinkSync('../../canary', join(dir, 'home/inner/dir'));
    symlinkSync('../../canary/file', join(dir, 'home/inner/file'));
    await makeDirectory(join(dir, 'home'), owner);
    expect(['canary', 'canary/file'].map(ownerOf)).toEqual([us, us]);
    for (const name of ['home', 'home/inner', 'home/dir', 'home/inner/file']) expect(ownerOf(name)).toBe(owner.uid);
    symlinkSync('canary', join(dir, 'link'));
    await expect(makeDirectory(join(dir, 'link'), owner)).rejects.toThrow(/ELOOP|ENOTDIR/);
    expect([ownerOf('canary'), lstatSync(join(dir, 'canary')).mode & 0o777]).toEqual([us, 0o755]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
