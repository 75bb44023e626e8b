import { errors } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import type { SessionService } from '../sessions/service.ts';
import type { Db } from '../store/db.ts';
import type { Cut } from '../store/pages.ts';
import { unlessTaken } from '../store/names.ts';
import type { Acquirer } from './acquire.ts';
import { configOf, mergeConfig, sameBrowser } from './config.ts';
import type { Filler } from './filler.ts';
import type { SessionsAnywhere } from './nodes/anywhere.ts';
import type { CreatePool, Pool, PoolList, UpdatePool } from './schema.ts';
import { poolStore, type CountedPool, type PoolRow, type PoolStore } from './store.ts';

/** Bounds of how many browsers pools may have. */
export interface Allowance {
  capacity: () => Promise<number>;
  /** How many browsers a project may run; null for no cap. */
  sessionCap: (projectId: string) => Promise<number | null>;
  /** Browsers of a project outside this pool, and places its other pools reserve; both are locked until the transaction ends. */
  usage: (within: Db, projectId: string, except: string) => Promise<{ active: number; kept: number }>;
}

/** The configuration of pools: create, read, update, delete. */
export function declaredPools({
  db,
  store,
  queue,
  fill,
  sessions,
  find,
  retire,
  resolve,
  allowance: { capacity, sessionCap, usage },
  refuseUnknownProxy,
}: {
  db: Db;
  store: PoolStore;
  queue: Acquirer;
  fill: Filler;
  sessions: SessionsAnywhere;
  find: (projectId: string, idOrName: string) => Promise<PoolRow>;
  /** Ends browsers that have left the pool. */
  retire: (poolId: string, sessionIds: string[]) => void;
  /** Resolves the selectors of a request. */
  resolve: SessionService['resolve'];
  allowance: Allowance;
  refuseUnknownProxy: (projectId: string, proxyId: string) => Promise<void>;
}) {
  async function counted(id: string): Promise<Pool> {
    const pool = await store.look(id);
    if (!pool) throw errors.pool_not_found({ pool: id });
    return toPool(pool);
  }

  /** Writes a pool with its size. A larger size needs free places; a lock makes concurrent requests count each other. */
  async function ifItFits<T>(
    { id, project_id, size }: Pick<PoolRow, 'id' | 'project_id' | 'size'>,
    write: (within: PoolStore) => Promise<T>,
  ): Promise<T> {
    const [most, cap] = await Promise.all([capacity(), sessionCap(project_id)]);
    return db.transaction(async (tx) => {
      const { own, others } = await poolStore(tx).lockSizes(id);
      const larger = size > own;
      if (larger && others + size > most) throw errors.pool_limit_reached({ size, others, most });
      if (larger && cap !== null) {
        const { active, kept } = await usage(tx, project_id, id);
        if (active + kept + size > cap) throw errors.project_limit_reached({ size, others: active + kept, cap });
      }
      return write(poolStore(tx));
    });
  }

  return {
    async create(projectId: string, request: CreatePool): Promise<Pool> {
      const { size, name, ...rest } = request;
      const config = configOf(rest);
      if (config.proxy_id) await refuseUnknownProxy(projectId, config.proxy_id);
      const belongings = { profile_id: null, extension_ids: [], ...(await resolve(projectId, request)) };
      const pool = { id: newId(), project_id: projectId, name: name ?? null, size, config, ...belongings };
      await unlessTaken(named(pool.name), () => ifItFits(pool, (store) => store.insert(pool)));
      void fill.fill(pool.id);
      return counted(pool.id);
    },

    async list(projectId: string, filter: PoolList): Promise<Cut<Pool>> {
      const { rows, cut } = await store.list(projectId, filter);
      return { rows: rows.map(toPool), cut };
    },

    async get(projectId: string, idOrName: string): Promise<Pool> {
      return counted((await find(projectId, idOrName)).id);
    },

    /** A field left out keeps its value; an empty one clears it, where it can be cleared. */
    async update(projectId: string, idOrName: string, request: UpdatePool): Promise<Pool> {
      const before = await find(projectId, idOrName);
      const { size = before.size, name, discard_all_idle, ...rest } = request;
      const config = mergeConfig(before.config, rest);
      if (rest.proxy_id) await refuseUnknownProxy(projectId, rest.proxy_id);
      const cleared = { ...request, ...(request.profile?.id === '' ? { profile: null } : {}) };
      const belongings = { ...belongingsOf(before), ...(await resolve(projectId, cleared)) };
      const same =
        sameBrowser(before.config, config) && JSON.stringify(belongingsOf(before)) === JSON.stringify(belongings);
      const change = {
        ...belongings,
        name: name || before.name,
        size: request.size ?? null,
        config,
        stale: !same,
        larger: size > before.size,
      };
      const after = await unlessTaken(named(change.name), () =>
        request.size === undefined
          ? store.update(before.id, change)
          : ifItFits({ ...before, size }, (store) => store.update(before.id, change)),
      );
      if (!after) throw errors.pool_not_found({ pool: idOrName });
      if (discard_all_idle) {
        const discarded = await store.clearShelf(before.id);
        fill.renew(before.id, discarded.length);
        retire(before.id, discarded);
      }
      void fill.fill(before.id);
      return counted(before.id);
    },

    async remove(projectId: string, idOrName: string, force: boolean): Promise<void> {
      const pool = await find(projectId, idOrName);
      if (!(await store.remove(pool.id, force))) {
        const leased = await store.leased(pool.id);
        throw leased > 0 && !force ? errors.pool_in_use({ leased }) : errors.pool_not_found({ pool: idOrName });
      }
      fill.forget(pool.id);
      queue.close(pool.id, pool.name ?? pool.id);
      await store.tell({ deleted: pool.id, name: pool.name ?? pool.id });
      await Promise.all((await store.browsers(pool.id)).map((id) => sessions.stop(id, 'retired')));
    },
  };
}

const named = (name: string | null) => ({ index: 'pools_name', thing: 'pool', name });

const belongingsOf = ({ profile_id, extension_ids }: PoolRow) => ({ profile_id, extension_ids });

function toPool(pool: CountedPool): Pool {
  const { engine_policy } = pool.config;
  return {
    id: pool.id,
    ...(pool.name === null ? {} : { name: pool.name }),
    available_count: pool.available,
    acquired_count: pool.acquired,
    warming_count: pool.warming,
    waiting_count: pool.waiting,
    ...(pool.last_error && pool.last_error_at
      ? { last_error: { message: pool.last_error, at: pool.last_error_at.toISOString() } }
      : {}),
    created_at: pool.created_at.toISOString(),
    browser_pool_config: {
      size: pool.size,
      ...(pool.name === null ? {} : { name: pool.name }),
      ...pool.config,
      ...(engine_policy ? { chrome_policy: engine_policy } : {}),
    },
    ...(pool.profile_id === null ? {} : { profile_id: pool.profile_id }),
    extension_ids: pool.extension_ids,
  };
}
