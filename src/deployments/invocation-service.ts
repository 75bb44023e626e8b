import { errors } from '../errors.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import { newId } from '../lib/ids.ts';
import { isJson, NotChecked } from '../lib/json-aside.ts';
import type { MemoryShare } from '../lib/memory-share.ts';
import { oneAtATime } from '../lib/one-at-a-time.ts';
import { started } from '../lib/started.ts';
import type { Db } from '../store/db.ts';
import { appStore } from './app-store.ts';
import type { Hub } from './hub.ts';
import { invocationStore, type InvocationOutcome, type InvocationRow, type Light } from './invocation-store.ts';
import type { RunHistory } from './run-history.ts';
import {
  mostPayload,
  type CreateInvocation,
  type Invocation,
  type InvocationList,
  type InvokeResponse,
  type UpdateInvocation,
} from './schema.ts';
import { readSince } from './since.ts';
import { invocationLife } from './state.ts';

/** How long an answer waits for the result. */
const syncMs = 100_000;
/** The database notifies when an invocation has ended, and a lost connection wakes every waiting request. This interval finds ends that both missed. */
const lookMs = 10_000;
/** What may wait of one project. */
const most = { waiting: 10_000, waitingBytes: 256 * 2 ** 20 };
const defaultSeconds = 900;
/** Texts are counted from this size on. */
const countedTexts = 64 * 1024;

type Room = Pick<MemoryShare, 'add'>;

export type InvocationService = ReturnType<typeof invocationService>;

/** The verbs of invocations. */
export function invocationService(deps: {
  db: Db;
  hub: Hub;
  invocationCap: (projectId: string) => Promise<number | null>;
  endBrowsers: (id: string) => Promise<void>;
  /** The rest of a full disk is reserved for the database. */
  disk: Pick<DiskSpace, 'path' | 'short'>;
  /** Waits for room on a short disk. Refuses if there is none, and a project that has filled the disk. */
  waitForDisk: (projectId: string) => Promise<void>;
  history: Pick<RunHistory, 'note'>;
  waitMs?: number;
  bounds?: typeof most;
}) {
  const { db, hub, waitMs = syncMs, bounds = most } = deps;
  const store = invocationStore(db);
  const inOrder = oneAtATime(); // of a project: each request counts what the previous one put into the queue

  /** Reads large texts when there is room for them. They are counted twice: as text, and as the JSON of an answer. */
  async function whole<R extends { id: string; output: string | null }>(row: Light<R>, room?: Room): Promise<R> {
    if (row.bytes > countedTexts) await room?.add(2 * row.bytes);
    return store.withTexts(row);
  }

  async function find(projectId: string, id: string): Promise<Light<InvocationRow>> {
    const row = await store.find(id, projectId);
    if (!row) throw errors.invocation_not_found({ id });
    return row;
  }

  async function create(id: string, projectId: string, request: CreateInvocation): Promise<InvocationOutcome> {
    const { app_name: name, version, action_name: action, payload } = request;
    const app = await appStore(db).find(projectId, name, version);
    if (!app) throw errors.app_not_found({ detail: `No app '${name}' is deployed with version '${version}'.` });
    if (!app.actions.some((one) => one.name === action))
      throw errors.app_not_found({ detail: `App '${name}' has no action '${action}' in version '${version}'.` });
    await deps.waitForDisk(projectId);
    if (payload !== undefined) await refuseUnlessJson(projectId, 'payload', payload);
    return inOrder(projectId, () => enqueue(id, projectId, app.deployment_id, request));
  }

  async function enqueue(id: string, projectId: string, deploymentId: string, request: CreateInvocation) {
    const { app_name, version, action_name, payload } = request;
    const [{ running, queued, bytes }, cap] = await Promise.all([
      store.counts(projectId),
      deps.invocationCap(projectId),
    ]);
    if (cap !== null && !request.async && running + queued >= cap) throw errors.invocation_limit_reached({ cap });
    const { waiting, waitingBytes } = bounds;
    if (queued >= waiting) throw errors.invocation_queue_full({ most: `${waiting} invocations` });
    if (queued > 0 && bytes + Buffer.byteLength(payload ?? '') > waitingBytes)
      throw errors.invocation_queue_full({ most: `${waitingBytes / 2 ** 20} MiB of payloads` });
    return store.insert({
      id,
      project_id: projectId,
      deployment_id: deploymentId,
      app_name,
      version,
      action_name,
      payload: payload ?? null,
      timeout_seconds: request.async_timeout_seconds ?? defaultSeconds,
    });
  }

  return {
    find,

    /** Invokes an action. Resolves with its result, or with its current state: at once if it is asynchronous, else after 100 s. */
    async invoke(
      projectId: string,
      request: CreateInvocation,
      hungUp: AbortSignal,
      room?: Room,
    ): Promise<InvokeResponse> {
      const id = newId();
      if (request.async) return toResponse(await create(id, projectId, request));
      const until = Date.now() + waitMs;
      const answered = new AbortController();
      const signal = AbortSignal.any([hungUp, answered.signal]);
      const ended = () => hub.wait(`state ${id}`, Math.min(lookMs, until - Date.now()), signal);
      try {
        let heard = started(ended()); // before it is in the queue: the notification of its end may arrive before its insertion is answered
        const row = await create(id, projectId, request);
        while (Date.now() < until && !hungUp.aborted) {
          await heard;
          heard = started(ended());
          const found = await store.outcomeOf(id);
          if (found && invocationLife.isFinal(found.status)) return toResponse(await whole(found, room));
        }
        const found = await store.outcomeOf(id);
        return toResponse(found ? await whole(found, room) : row);
      } finally {
        answered.abort();
      }
    },

    async get(projectId: string, id: string, room?: Room): Promise<Invocation> {
      return toInvocation(await whole(await find(projectId, id), room));
    },

    async list(projectId: string, filter: InvocationList, room?: Room): Promise<{ rows: Invocation[]; cut: boolean }> {
      const { rows, cut } = await store.list(projectId, filter, readSince(filter.since));
      const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
      if (bytes > countedTexts) await room?.add(2 * bytes);
      const invocations: Invocation[] = [];
      for (const row of rows) invocations.push(toInvocation(await store.withTexts(row)));
      return { rows: invocations, cut };
    },

    /** Ends it as the client says. The node that runs it is notified, and ends its process. */
    async update(projectId: string, id: string, request: UpdateInvocation, room?: Room): Promise<Invocation> {
      const { status, output } = request;
      const before = await find(projectId, id);
      if (output !== undefined) await refuseUnlessJson(projectId, 'output', output);
      if (output !== undefined && deps.disk.short()) throw errors.storage_full({ path: deps.disk.path });
      const reason = status === 'failed' ? 'It was cancelled.' : null;
      const row = await store.finish(id, { status, output: output ?? null, reason });
      if (!row) throw errors.invocation_over({ id, status: (await find(projectId, before.id)).status });
      deps.history.note(projectId, Number(row.kept_bytes));
      await deps.endBrowsers(id);
      return toInvocation(await whole(await find(projectId, id), room));
    },

    /** A browser may be tied to an invocation of its project that has not ended. */
    async refuseUnlessActive(projectId: string, id: string): Promise<void> {
      const { status } = await find(projectId, id);
      if (invocationLife.isFinal(status)) throw errors.invocation_over({ id, status });
    },

    overAmong: (ids: string[]) => store.overAmong(ids),
  };
}

async function refuseUnlessJson(projectId: string, field: string, text: string): Promise<void> {
  if (text.length > mostPayload / 3 && Buffer.byteLength(text) > mostPayload)
    throw errors.invalid_input({ detail: `${field} must have at most 4.5 MiB.` });
  const json = await isJson(text, projectId).catch((error: Error) => {
    throw error instanceof NotChecked ? errors.large_texts_full({ field }, { cause: error }) : error;
  });
  if (!json)
    throw errors.invalid_input({ detail: `${field} is not JSON text. A string needs its quotes: "\\"text\\"".` });
}

const given = <K extends string>(name: K, value: string | null) =>
  (value === null ? {} : { [name]: value }) as { [P in K]?: string };

const toResponse = (row: InvocationOutcome): InvokeResponse => ({
  id: row.id,
  action_name: row.action_name,
  status: row.status,
  ...given('output', row.output),
  ...given('status_reason', row.status_reason),
});

export const toInvocation = (row: InvocationRow): Invocation => ({
  id: row.id,
  app_name: row.app_name,
  version: row.version,
  action_name: row.action_name,
  started_at: (row.started_at ?? row.created_at).toISOString(),
  status: row.status,
  finished_at: row.finished_at?.toISOString() ?? null,
  ...given('payload', row.payload),
  ...given('output', row.output),
  ...given('status_reason', row.status_reason),
});
