import { randomBytes } from 'node:crypto';
import { errors } from '../errors.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import { openChunks, sealChunks } from '../lib/seal-chunks.ts';
import { CannotOpen } from '../lib/seal.ts';
import type { StorageClaim } from '../lib/storage.ts';
import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import { profileStore, type ProfileRow } from './store.ts';

const keptVersions = 10;
const bytesBetweenLooks = 8 * 1024 * 1024;

export interface VersionOptions {
  db: Db;
  /** For chunks: the commit that completes a version waits for the disk, and with it for all earlier commits. */
  quick: Db;
  secrets: Secrets;
  nodeId: string;
  /** The disk the database writes to; undefined for a database that the operator runs. */
  disk: Pick<DiskSpace, 'path' | 'short'> | undefined;
}

/** Saved versions of profiles: sealed archives in chunks, each version with a key of its own. */
export function profileVersions({ db, quick, secrets, nodeId, disk }: VersionOptions) {
  const store = profileStore(db);
  const chunks = profileStore(quick);

  /** Prefetches: several chunks are requested while one is opened. */
  async function* read(versionId: string): AsyncGenerator<Buffer> {
    const ahead: Promise<Buffer | undefined>[] = [];
    let position = 0;
    const ask = () => {
      const asked = store.chunk(versionId, position++);
      asked.catch(() => {}); // in case it is never awaited
      ahead.push(asked);
    };
    for (let count = 0; count < 2; count++) ask();
    for (;;) {
      const chunk = await ahead.shift();
      if (!chunk) return;
      ask();
      yield chunk;
    }
  }

  async function* opened({ id, name }: ProfileRow, versionId: string): AsyncGenerator<Buffer> {
    try {
      const key = await secrets.get('profile version', versionId);
      if (!key) throw new CannotOpen('Its key is missing.');
      yield* openChunks(Buffer.from(key, 'base64'), read(versionId));
    } catch (error) {
      if (!(error instanceof CannotOpen)) throw error;
      throw errors.profile_damaged(
        { profile: name ?? id, version: versionId, detail: error.message },
        { cause: error },
      );
    }
  }

  async function forget(versions: { id: string }[], within: Db = db): Promise<void> {
    const ids = versions.map(({ id }) => id);
    if (ids.length === 0) return;
    await profileStore(within).removeVersions(ids);
    for (const id of ids) await secrets.remove('profile version', id, within);
  }

  async function write(
    versionId: string,
    profileId: string,
    sessionId: string,
    bytes: AsyncIterable<Buffer>,
    claim: StorageClaim | undefined,
  ) {
    const key = randomBytes(32);
    let [position, size, looked] = [0, 0, -Infinity];
    await store.beginVersion(versionId, profileId, sessionId, nodeId);
    await secrets.put('profile version', versionId, key.toString('base64'));
    for await (const sealed of sealChunks(key, bytes)) {
      if (disk && size - looked >= bytesBetweenLooks) {
        looked = size;
        if (disk.short()) throw errors.storage_full({ path: disk.path });
      }
      await claim?.cover(size + sealed.length);
      await chunks.addChunk(versionId, position++, sealed);
      size += sealed.length;
    }
    await db.transaction(async (tx) => {
      const completed = await profileStore(tx).completeVersion(versionId, profileId, size);
      if (!completed) throw errors.profile_not_found({ profile: profileId });
      await forget(await profileStore(tx).outdated(profileId, keptVersions), tx);
    });
    return size;
  }

  return { opened, write, forget };
}
