import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { ProjectStorage, StorageClaim } from '../lib/storage.ts';
import type { Db } from '../store/db.ts';
import { storageStore } from './storage-store.ts';

/** Claimed in advance, so that a stream does not make a query for each of its chunks. */
const mostAhead = 8 * 2 ** 20;

/**
 * What a project stores: replays, extensions, profile versions, deployments, and all of these that are being written. They count
 * together, a build by its unpacked size. A writer claims space first, under a lock of the project, so that two concurrent writers cannot
 * both claim the last of it. A sum over rows is used instead of a counter, which would be wrong after the first crash.
 */
export function storageService({ db, nodeId, mostBytes }: { db: Db; nodeId: string; mostBytes: number }) {
  function grow(id: string, projectId: string, bytes: number): Promise<void> {
    return db.transaction(async (tx) => {
      const store = storageStore(tx);
      await store.lock(projectId);
      const used = await store.usedBytes(projectId, false);
      if (used + bytes > mostBytes) throw errors.project_storage_full({ used: inMb(used), most: inMb(mostBytes) });
      await store.grow(id, projectId, nodeId, bytes);
    });
  }

  function claim(projectId: string): StorageClaim {
    const id = newId();
    let claimed = 0;
    let asked = false;
    return {
      async cover(bytes) {
        if (mostBytes === 0 || bytes <= claimed) return;
        asked = true;
        const needed = bytes - claimed;
        const ahead = needed + Math.min(bytes, mostAhead);
        await grow(id, projectId, ahead).then(
          () => (claimed += ahead),
          () => grow(id, projectId, needed).then(() => (claimed += needed)),
        );
      },
      async release() {
        if (asked) await storageStore(db).release(id);
        asked = false;
      },
    };
  }

  return {
    claim,

    /**
     * Counts data on this node that can be created again, such as a cache; 0 bytes for none. Returns false if the project has no room for it;
     * then it is not counted.
     */
    async countMadeAgain(what: string, projectId: string, bytes: number): Promise<boolean> {
      if (mostBytes === 0) return true;
      const id = `${what} ${nodeId} ${projectId}`;
      return db.transaction(async (tx) => {
        const store = storageStore(tx);
        await store.lock(projectId);
        await store.release(id);
        if (bytes === 0) return true;
        if ((await store.usedBytes(projectId, true)) + bytes > mostBytes) return false;
        await store.grow(id, projectId, nodeId, bytes, true);
        return true;
      });
    },

    /** Whether the project stores too much with its caches. The caller deletes the caches then. */
    async overfull(projectId: string): Promise<boolean> {
      return mostBytes > 0 && (await storageStore(db).usedBytes(projectId, true)) > mostBytes;
    },

    /** Releases the claims of a lost node; also this node's own old claims, before it starts. */
    async nodeLost(lost: string, within: Db = db): Promise<() => void> {
      await storageStore(within).releaseOf(lost);
      return () => {};
    },
  } satisfies ProjectStorage & Record<string, unknown>;
}

const inMb = (bytes: number) => Math.ceil(bytes / 2 ** 20);
