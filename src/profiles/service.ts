import { randomBytes } from 'node:crypto';
import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { openChunks, sealChunks } from '../lib/seal-chunks.ts';
import { CannotOpen } from '../lib/seal.ts';
import type { ProjectStorage, StorageClaim } from '../lib/storage.ts';
import { uniqueViolation, type Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import type { ProfileMetrics } from './metrics.ts';
import type { Profile, ProfileList, ProfileSelector, ProfileVersion } from './schema.ts';
import { profileStore, type ProfileRow } from './store.ts';

const keptVersions = 10;
const bytesBetweenLooks = 8 * 1024 * 1024;

export type ProfileService = ReturnType<typeof profileService>;

/** Where a profile's archive comes from: the version it is, and its bytes, once. */
export interface SavedProfile {
  versionId: string;
  bytes: AsyncIterable<Buffer>;
}

export function profileService({
  db,
  quick,
  secrets,
  events,
  metrics,
  nodeId,
  disk,
  storage,
  decompress,
  log,
}: {
  db: Db;
  /** For chunks: the commit that makes them a version waits for the disk, and with it for all that came before. */
  quick: Db;
  secrets: Secrets;
  events: EventBus;
  metrics: ProfileMetrics;
  nodeId: string;
  /** Where the database writes to; undefined where that is not ours to know. */
  disk: Pick<DiskSpace, 'path' | 'short'> | undefined;
  storage: ProjectStorage;
  decompress: (bytes: AsyncIterable<Buffer>, signal: AbortSignal) => AsyncIterable<Buffer>;
  log: Log;
}) {
  const store = profileStore(db);
  const chunks = profileStore(quick);

  async function find(projectId: string, idOrName: string): Promise<ProfileRow> {
    const row = await store.findByIdOrName(projectId, idOrName);
    if (!row) throw errors.profile_not_found({ profile: idOrName });
    return row;
  }

  async function unlessTaken(name: string, write: () => Promise<ProfileRow | undefined>): Promise<Profile> {
    try {
      const row = await write();
      if (!row) throw errors.profile_not_found({ profile: name });
      return toProfile(row);
    } catch (error) {
      if (uniqueViolation(error) === 'profiles_name') throw errors.already_exists({ thing: 'profile', name });
      throw error;
    }
  }

  /** Several chunks are on their way while one is opened. */
  async function* read(versionId: string): AsyncGenerator<Buffer> {
    const ahead: Promise<Buffer | undefined>[] = [];
    let position = 0;
    const ask = () => {
      const asked = store.chunk(versionId, position++);
      asked.catch(() => {}); // if nobody gets to await it
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

  return {
    create: (projectId: string, name: string | undefined): Promise<Profile> =>
      unlessTaken(name ?? '', () => store.insert(newId(), projectId, name ?? null)),

    async list(projectId: string, filter: ProfileList): Promise<Profile[]> {
      return (await store.list(projectId, filter)).map(toProfile);
    },

    async get(projectId: string, idOrName: string): Promise<Profile> {
      return toProfile(await find(projectId, idOrName));
    },

    async rename(projectId: string, idOrName: string, name: string): Promise<Profile> {
      const { id } = await find(projectId, idOrName);
      return unlessTaken(name, () => store.rename(id, name));
    },

    /** Sessions that run with it go on; what they would save goes with it. */
    async remove(projectId: string, idOrName: string): Promise<void> {
      const { id } = await find(projectId, idOrName);
      const removed = await db.transaction(async (tx) => {
        if (!(await profileStore(tx).remove(id))) return false;
        await forget(await profileStore(tx).versions(id), tx);
        return true;
      });
      if (!removed) throw errors.profile_not_found({ profile: idOrName });
    },

    /** The archive, or undefined when nothing was saved yet. Whoever stops reading leaves nothing open. */
    async download(projectId: string, idOrName: string, format: 'tar' | 'tar.zst', gone: AbortSignal) {
      const profile = await find(projectId, idOrName);
      if (profile.version_id === null) return undefined;
      const bytes = opened(profile, profile.version_id);
      return format === 'tar' ? decompress(bytes, gone) : bytes;
    },

    async versions(projectId: string, idOrName: string): Promise<ProfileVersion[]> {
      const { id } = await find(projectId, idOrName);
      return (await store.versions(id)).map((row) => ({
        id: row.id,
        created_at: row.created_at.toISOString(),
        size_bytes: Number(row.size_bytes),
        session_id: row.session_id,
        current: row.current,
      }));
    },

    async restore(projectId: string, idOrName: string, versionId: string): Promise<Profile> {
      const { id } = await find(projectId, idOrName);
      const row = await store.restore(id, versionId);
      if (!row) throw errors.profile_version_not_found({ profile: idOrName, version: versionId });
      events.publish('profile.saved', { profileId: id });
      return toProfile(row);
    },

    /** For sessions and pools: the profile that a request means. */
    async choose(projectId: string, { id, name }: Pick<ProfileSelector, 'id' | 'name'>): Promise<ProfileRow> {
      const row = await store.findBy(projectId, id ?? null, name ?? null);
      if (!row)
        throw errors.invalid_input({
          detail: `profile: no profile has the ${id === undefined ? 'name' : 'id'} '${id ?? name}'. GET /profiles lists them, POST /profiles makes one.`,
        });
      return row;
    },

    /** For a session that starts with it. Undefined when nothing was saved yet. */
    async open(profileId: string): Promise<SavedProfile | undefined> {
      await store.touch(profileId);
      const profile = await store.find(profileId);
      if (!profile) throw errors.profile_not_found({ profile: profileId });
      const { version_id: versionId } = profile;
      return versionId === null ? undefined : { versionId, bytes: opened(profile, versionId) };
    },

    /** Whole or not at all: until the last step the profile is what it was. Resolves with why not, if it was not saved. */
    async save(profileId: string, sessionId: string, bytes: AsyncIterable<Buffer>): Promise<string | undefined> {
      const versionId = newId();
      const began = performance.now();
      let claim: StorageClaim | undefined;
      try {
        const profile = await store.find(profileId);
        claim = profile && storage.claim(profile.project_id);
        const size = await write(versionId, profileId, sessionId, bytes, claim);
        const ms = Math.round(performance.now() - began);
        log.info({ profile: profileId, session: sessionId, version: versionId, bytes: size, ms }, 'profile.saved');
        metrics.saves.inc({ outcome: 'saved' });
        events.publish('profile.saved', { profileId });
        return undefined;
      } catch (error) {
        const { message } = error as Error;
        log.error({ profile: profileId, session: sessionId, error: message }, 'profile.not_saved');
        metrics.saves.inc({ outcome: 'failed' });
        await forget([{ id: versionId }]).catch(() => {}); // else the next start does it
        await store.recordFailure(profileId, message).catch(() => {});
        return message;
      } finally {
        await claim?.release().catch(() => {}); // else the next start does it
      }
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = await store.count(projectId);
      return count === 0 ? undefined : `${count} ${count === 1 ? 'profile' : 'profiles'}`;
    },

    /** What a node was writing when it went, in the transaction that gives it up: none of it becomes a version. */
    async nodeLost(lost: string, within: Db): Promise<() => void> {
      await forget(await profileStore(within).unfinishedOf(lost), within);
      return () => {};
    },

    /** The same for ourselves, before anything is saved. */
    async start(): Promise<void> {
      await forget(await store.unfinishedOf(nodeId));
    },
  };
}

function toProfile(row: ProfileRow): Profile {
  return {
    id: row.id,
    name: row.name,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    ...(row.last_used_at ? { last_used_at: row.last_used_at.toISOString() } : {}),
    ...(row.last_save_error && row.last_save_error_at
      ? { last_save_error: { message: row.last_save_error, at: row.last_save_error_at.toISOString() } }
      : {}),
  };
}
