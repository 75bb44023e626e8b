import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Registry } from 'prom-client';
import { openTestStore } from '../../test/support/store.ts';
import { eventBus } from '../events.ts';
import { silent } from '../lib/log.ts';
import { openKeys, secretStore } from '../store/secrets.ts';
import { sql } from '../store/sql.ts';
import { profileMetrics } from './metrics.ts';
import { profileService } from './service.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
let free = Infinity;
const project = 'proj_a';
const saved: string[] = [];
beforeAll(async () => {
  store = await openTestStore();
  await store.db.rows(sql`insert into projects (id, name) values (${project}, 'a')`);
});
afterAll(() => store?.close());

async function service(nodeId = 'node_a') {
  const { db, quick } = store;
  const secrets = secretStore(db, await openKeys(store.dataDir, ''));
  const events = eventBus();
  events.on('profile.saved', ({ profileId }) => saved.push(profileId));
  const metrics = profileMetrics(new Registry());
  const disk = { path: '/data', short: () => free < 64 * 2 ** 20 };
  return profileService({
    db,
    quick,
    secrets,
    events,
    metrics,
    nodeId,
    disk,
    storage: { claim: () => ({ cover: async () => {}, release: async () => {} }) },
    decompress: (bytes) => bytes,
    log: silent,
  });
}

async function* from(...pieces: Buffer[]) {
  yield* pieces;
}

async function contentOf(profiles: Awaited<ReturnType<typeof service>>, id: string): Promise<Buffer | undefined> {
  const found = await profiles.open(id);
  if (!found) return undefined;
  const pieces: Buffer[] = [];
  for await (const piece of found.bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}

const rowsOf = (table: 'versions' | 'chunks' | 'secrets') =>
  store.db.rows(
    table === 'versions'
      ? sql`select id from profile_versions`
      : table === 'chunks'
        ? sql`select version_id from profile_chunks`
        : sql`select owner from secrets`,
  );

describe('a profile', () => {
  test('has the state of the last save, of any size, and its last ten versions are kept', async () => {
    const profiles = await service();
    const { id } = await profiles.create(project, 'kept');
    expect(await contentOf(profiles, id)).toBeUndefined();
    for (let turn = 1; turn <= 12; turn++) {
      expect(await profiles.save(id, `session_${turn}`, from(Buffer.from(`state ${turn}`)))).toBeUndefined();
    }
    const big = randomBytes(3_000_000);
    await profiles.save(id, 'session_13', from(big.subarray(0, 7), big.subarray(7)));
    expect((await contentOf(profiles, id))!.equals(big)).toBe(true);
    const versions = await profiles.versions(project, id);
    expect(versions.map(({ session_id }) => session_id)).toEqual(
      [13, 12, 11, 10, 9, 8, 7, 6, 5, 4].map((turn) => `session_${turn}`),
    );
    expect(versions.map(({ current }) => current)).toEqual([true, ...Array(9).fill(false)]);
    expect(await rowsOf('secrets')).toHaveLength(10);
    expect(saved.filter((profileId) => profileId === id)).toHaveLength(13);

    // A restored version is kept while it is in use, however old it is.
    await profiles.restore(project, id, versions[9]!.id);
    expect(String(await contentOf(profiles, id))).toBe('state 4');
    await profiles.save(id, 'session_14', from(Buffer.from('state 14')));
    expect(await profiles.versions(project, id)).toHaveLength(10);
    await profiles.remove(project, id);
    expect(await rowsOf('versions')).toEqual([]);
    expect(await rowsOf('chunks')).toEqual([]);
    expect(await rowsOf('secrets')).toEqual([]);
  });

  test('does not change when a save breaks off, on either side', async () => {
    const profiles = await service();
    const { id } = await profiles.create(project, 'whole');
    await profiles.save(id, 'first', from(Buffer.from('first')));
    async function* breaking() {
      yield randomBytes(1_000_000);
      throw new Error('The packing broke.');
    }
    expect(await profiles.save(id, 'second', breaking())).toBe('The packing broke.');
    expect(await profiles.get(project, id)).toMatchObject({ last_save_error: { message: 'The packing broke.' } });

    free = 1_000_000; // a full disk
    expect(await profiles.save(id, 'third', from(randomBytes(1_000_000)))).toMatch(/no space left in \/data/);
    free = Infinity;
    expect(String(await contentOf(profiles, id))).toBe('first');
    expect(await rowsOf('versions')).toHaveLength(1);

    // Killed in the middle: the incomplete version exists until the node starts again or is declared dead.
    for (const heir of ['itself', 'another']) {
      let blocked!: () => void;
      const reached = new Promise<void>((resolve) => (blocked = resolve));
      const never = async function* () {
        yield randomBytes(1_000_000);
        blocked();
        await new Promise(() => {});
      };
      void (await service('node_b')).save(id, 'killed', never());
      await reached;
      expect((await rowsOf('chunks')).length).toBeGreaterThan(1);
      expect(String(await contentOf(profiles, id))).toBe('first');
      if (heir === 'itself') await (await service('node_b')).start();
      else await store.db.transaction((tx) => profiles.nodeLost('node_b', tx));
      expect(await rowsOf('chunks')).toHaveLength(1);
    }
    expect(await profiles.save(id, 'fourth', from(Buffer.from('fourth')))).toBeUndefined();
    expect(await profiles.get(project, id)).not.toHaveProperty('last_save_error');
    await profiles.remove(project, id);
  });

  test('is complete for twenty readers during writes', async () => {
    const profiles = await service();
    const { id } = await profiles.create(project, 'read');
    const state = (turn: number) => Buffer.alloc(2_000_000, turn);
    await profiles.save(id, 'session_0', from(state(0)));
    const writing = (async () => {
      for (let turn = 1; turn <= 5; turn++) await profiles.save(id, `session_${turn}`, from(state(turn)));
    })();
    const read = await Promise.all(Array.from({ length: 20 }, () => contentOf(profiles, id)));
    for (const content of read) expect(content!.equals(state(content![0]!))).toBe(true);
    await writing;
    expect((await contentOf(profiles, id))!.equals(state(5))).toBe(true);
    await profiles.remove(project, id);
  });

  test('has a place among ten thousand of its project, also of requests at the same time', async () => {
    const profiles = await service();
    const full = 'proj_full';
    await store.db.rows(sql`insert into projects (id, name) values (${full}, 'full')`);
    await store.db.rows(sql`insert into profiles (id, project_id, name)
      select 'p' || n, ${full}, 'n' || n from generate_series(1, 9998) n`);
    const names = ['a', 'b', 'c', 'd'];
    const answers = await Promise.allSettled(names.map((name) => profiles.create(full, name)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    await expect(profiles.create(full, undefined)).rejects.toMatchObject({
      code: 'profile_limit_reached',
      status: 409,
    });
    await expect(profiles.create(full, 'n1')).rejects.toMatchObject({ code: 'already_exists' });
    await profiles.remove(full, 'n1');
    await profiles.create(full, 'n1');
  });
});
