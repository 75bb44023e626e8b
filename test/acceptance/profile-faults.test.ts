import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import Kernel from '@onkernel/sdk';
import { silent } from '../../src/lib/log.ts';
import { visitStore } from '../../src/store/open.ts';
import { sql } from '../../src/store/sql.ts';
import { loggedIn, startLoginSite, type LoginSite } from '../support/login-site.ts';
import { onTheMachine } from '../support/nothing-left.ts';
import { spawnService } from '../support/process.ts';
import { startService } from '../support/service.ts';

let site: LoginSite;
beforeAll(async () => void (site = await startLoginSite()));
afterAll(() => site?.close());

/** As if a site had stored much: random, so that it takes a while to pack and to write. */
async function fill(dataDir: string, sessionId: string, megabytes: number) {
  const storage = join(dataDir, 'sessions', sessionId, 'home/user-data/Default');
  for (let index = 0; index < megabytes; index++)
    await writeFile(join(storage, `stored-${index}`), randomBytes(1_000_000), { mode: 0o644 });
}

async function logIn(sdk: Kernel) {
  const profile = await sdk.profiles.create({ name: 'whole' });
  const session = await sdk.browsers.create({ headless: true, profile: { id: profile.id, save_changes: true } });
  await site.logIn(session);
  await sdk.browsers.deleteByID(session.session_id);
  return profile;
}

/** A session that will have more to save than can be saved. */
async function heavyWriter(sdk: Kernel, dataDir: string, id: string, megabytes: number) {
  const session = await sdk.browsers.create({ headless: true, profile: { id, save_changes: true } });
  await site.onPage(session, (page) => page.context().clearCookies());
  await fill(dataDir, session.session_id, megabytes);
  return session;
}

describe('a profile is unchanged', () => {
  test('when the service is killed in the middle of a save', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'corral-killed-'));
    const start = () => spawnService({ CORRAL_DATA_DIR: dataDir, CORRAL_ALLOW_PRIVATE_HOSTS: site.host });
    let service = await start();
    try {
      const apiKey = (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();
      const sdk = () => new Kernel({ apiKey, baseURL: service.url, maxRetries: 0 });
      const versions = () => sdk().get<unknown[]>('/profiles/whole/versions');
      const { id } = await logIn(sdk());
      const [before] = await versions();
      const writer = await heavyWriter(sdk(), dataDir, id, 150);
      const tables = await visitStore({ dataDir, databaseUrl: '', log: silent }); // before: the save does not wait for it
      const ending = sdk().browsers.deleteByID(writer.session_id);
      ending.catch(() => {}); // it dies with the service
      const unfinished = () =>
        tables.db.rows(
          sql`select from profile_chunks c join profile_versions v on v.id = c.version_id where not v.complete`,
        );
      while ((await unfinished()).length < 10) await sleep(5); // a sixtieth of it
      await tables.close();
      await service.kill('SIGKILL');
      await expect(ending).rejects.toThrow(Kernel.APIConnectionError);

      service = await start();
      expect(await versions()).toEqual([before]);
      await expect.poll(() => onTheMachine(dataDir).filter((trace) => trace.includes(writer.session_id))).toEqual([]);
      const session = await sdk().browsers.create({ headless: true, profile: { id, save_changes: true } });
      expect(await site.look(session)).toEqual(loggedIn);
      await sdk().browsers.deleteByID(session.session_id);
    } finally {
      await service.kill();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    }
  });

  test.runIf(process.getuid?.() === 0)('when the disk is full, and says so', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'corral-full-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=700m,mode=755', 'corral-test', dataDir]);
    try {
      const service = await startService({
        CORRAL_DATA_DIR: dataDir,
        CORRAL_ALLOW_PRIVATE_HOSTS: site.host,
        CORRAL_DISK_RESERVE_MB: '50',
      });
      try {
        const sdk = service.sdk();
        const { id } = await logIn(sdk);
        const writer = await heavyWriter(sdk, dataDir, id, 30);
        const { bavail, bsize } = await statfs(dataDir);
        await writeFile(join(dataDir, 'ballast'), Buffer.alloc(bavail * bsize - 70_000_000, 1));
        await sdk.browsers.deleteByID(writer.session_id);
        expect((await service.call('GET', `/profiles/${id}/versions`)).body).toHaveLength(1);
        expect((await service.call('GET', `/profiles/${id}`)).body.last_save_error.message).toMatch(/no space left/);
        expect((await service.call('GET', '/metrics')).text).toMatch(
          /corral_profile_saves_total\{outcome="failed"\} 1/,
        );
        await rm(join(dataDir, 'ballast'));
        const session = await sdk.browsers.create({ headless: true, profile: { id } });
        expect(await site.look(session)).toEqual(loggedIn);
      } finally {
        await service.close({ keep: true });
      }
    } finally {
      execFileSync('umount', ['--lazy', dataDir]);
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
