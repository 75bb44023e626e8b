import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { ProjectStorage, StorageClaim } from '../lib/storage.ts';
import type { Db } from '../store/db.ts';
import { unlessTaken } from '../store/names.ts';
import type { ProfileMetrics } from './metrics.ts';
import type { Profile, ProfileList, ProfileSelector, ProfileVersion } from './schema.ts';
import { profileStore, type ProfileRow } from './store.ts';
import { profileVersions, type VersionOptions } from './versions.ts';

/** Of a project: as many as auth connections, which have one each. They are in the database of all projects. */
const mostOfProject = 10_000;

export type ProfileService = ReturnType<typeof profileService>;

/** A profile's archive: its version, and its bytes, which can be read once. */
interface SavedProfile {
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
}: VersionOptions & {
  events: EventBus;
  metrics: ProfileMetrics;
  storage: ProjectStorage;
  decompress: (bytes: AsyncIterable<Buffer>, signal: AbortSignal) => AsyncIterable<Buffer>;
  log: Log;
}) {
  const store = profileStore(db);
  const { opened, write, forget } = profileVersions({ db, quick, secrets, nodeId, disk });

  async function find(projectId: string, idOrName: string): Promise<ProfileRow> {
    const row = await store.findByIdOrName(projectId, idOrName);
    if (!row) throw errors.profile_not_found({ profile: idOrName });
    return row;
  }

  return {
    create: (projectId: string, name: string | undefined): Promise<Profile> =>
      written(name ?? '', () => insert(db, projectId, name ?? null)),

    async list(projectId: string, filter: ProfileList): Promise<Profile[]> {
      return (await store.list(projectId, filter)).map(toProfile);
    },

    async get(projectId: string, idOrName: string): Promise<Profile> {
      return toProfile(await find(projectId, idOrName));
    },

    async rename(projectId: string, idOrName: string, name: string): Promise<Profile> {
      const { id } = await find(projectId, idOrName);
      return written(name, () => store.rename(id, name));
    },

    /** Sessions that use the profile continue, and do not save it. */
    async remove(projectId: string, idOrName: string): Promise<void> {
      const { id } = await find(projectId, idOrName);
      const removed = await db.transaction(async (tx) => {
        if (!(await profileStore(tx).remove(id))) return false;
        await forget(await profileStore(tx).versions(id), tx);
        return true;
      });
      if (!removed) throw errors.profile_not_found({ profile: idOrName });
      events.publish('profile.removed', { profileId: id, projectId });
    },

    /** The archive, or undefined when nothing was saved yet. A reader may stop early: nothing stays open. */
    async download(projectId: string, idOrName: string, format: 'tar' | 'tar.zst', disconnected: AbortSignal) {
      const profile = await find(projectId, idOrName);
      if (profile.version_id === null) return undefined;
      const bytes = opened(profile, profile.version_id);
      return format === 'tar' ? decompress(bytes, disconnected) : bytes;
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

    /** For sessions and pools: the profile that a request selects. */
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

    /** Atomic: until the last step the profile is unchanged. Resolves with the reason if it was not saved. */
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
        await forget([{ id: versionId }]).catch(() => {}); // otherwise the next start does it
        await store.recordFailure(profileId, message).catch(() => {});
        return message;
      } finally {
        await claim?.release().catch(() => {}); // otherwise the next start does it
      }
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = await store.count(projectId);
      return count === 0 ? undefined : `${count} ${count === 1 ? 'profile' : 'profiles'}`;
    },

    /** Discards the incomplete versions of a lost node, in the transaction that declares it dead. */
    async nodeLost(lost: string, within: Db): Promise<() => void> {
      await forget(await profileStore(within).unfinishedOf(lost), within);
      return () => {};
    },

    /** The same for this node's own old versions, before anything is saved. */
    async start(): Promise<void> {
      await forget(await store.unfinishedOf(nodeId));
    },
  };
}

function insert(db: Db, projectId: string, name: string | null): Promise<ProfileRow | undefined> {
  return db.transaction(async (tx) => {
    const store = profileStore(tx);
    await store.lock(projectId);
    const row = await store.insert(newId(), projectId, name); // first: a name that exists is reported as such
    if ((await store.count(projectId)) > mostOfProject) throw errors.profile_limit_reached({ most: mostOfProject });
    return row;
  });
}

async function written(name: string, write: () => Promise<ProfileRow | undefined>): Promise<Profile> {
  const row = await unlessTaken({ index: 'profiles_name', thing: 'profile', name }, write);
  if (!row) throw errors.profile_not_found({ profile: name });
  return toProfile(row);
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
