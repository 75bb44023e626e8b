import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { canEncode, type Confinement } from '../../chromium/recorder/encoder.ts';
import { keepRing, type Ring } from '../../chromium/recorder/ring.ts';
import { errors } from '../../errors.ts';
import type { DiskSpace } from '../../lib/disk-space.ts';
import type { Log } from '../../lib/log.ts';
import { oneAtATime } from '../../lib/one-at-a-time.ts';
import type { ProjectStorage } from '../../lib/storage.ts';
import type { Addresses, Minter } from '../addresses.ts';
import type { SessionService } from '../service.ts';
import { replayFiles } from './files.ts';
import { replayRecordings } from './recordings.ts';
import type { Replay, StartReplay } from './schema.ts';
import type { ReplayRow, ReplayStore } from './store.ts';

const defaultFramerate = 10;
const defaultSeconds = 60 * 60;
const mostSeconds = 24 * 60 * 60;

export type ReplayService = ReturnType<typeof replayService>;

interface Deps {
  store: ReplayStore;
  sessions: Pick<SessionService, 'idOf' | 'hold' | 'running' | 'workFor'>;
  addresses: Addresses;
  dir: string;
  confinement: Confinement;
  nodeId: string;
  days: number;
  mostBytes: number;
  disk: Pick<DiskSpace, 'path' | 'short'>;
  storage: ProjectStorage;
  /** Takes the log lines of a session's recorder. */
  say: (sessionId: string, line: string) => void;
  log: Log;
}

/** Videos of sessions: recorded and kept on this node, and finished after every end of the recording. */
export function replayService(deps: Deps) {
  const { store, sessions, addresses, confinement, nodeId, days, disk, storage } = deps;
  const files = replayFiles(deps.dir, confinement, disk);
  const recordings = replayRecordings({ ...deps, files });
  const rings = new Map<string, Ring>();
  const oneSave = oneAtATime();
  const toReplay = (row: ReplayRow, minter: Minter) => replayOf(row, addresses, minter);

  async function start(projectId: string, keyId: string, idOrName: string, request: StartReplay): Promise<Replay> {
    refuseContradictions(request);
    if (!canEncode())
      throw errors.engine_unavailable({ detail: 'Replays need ffmpeg, which this machine does not have.' });
    const sessionId = await sessions.idOf(projectId, idOrName, false);
    if (request.last_seconds !== undefined) {
      const { last_seconds } = request;
      // A saved file is in memory until it is written, so a session has one at a time.
      return oneSave(sessionId, () => saveLast(projectId, keyId, sessionId, last_seconds));
    }

    const session = sessions.running(sessionId);
    if (!session) throw errors.session_not_found({ session: idOrName });
    const framerate = request.framerate ?? defaultFramerate;
    const seconds = request.max_duration_in_seconds ?? defaultSeconds;
    // Not while a change is under way: the viewport that the video gets may just be changing.
    const row = await session.changing(() => recordings.start({ sessionId, projectId, framerate, seconds }));
    return toReplay(row, { keyId, projectId });
  }

  async function saveLast(projectId: string, keyId: string, sessionId: string, seconds: number): Promise<Replay> {
    const ring = rings.get(sessionId);
    if (!ring) {
      throw errors.invalid_input({
        detail: 'last_seconds needs a session that was created with replay_buffer_seconds.',
      });
    }
    recordings.refuseIfFull(sessionId);
    const held = await sessions.hold(sessionId);
    try {
      const saved = await ring.save(seconds);
      if (!saved) throw errors.replay_not_found({ detail: 'Nothing has been recorded yet. Try again in a moment.' });
      if (disk.short()) throw errors.storage_full({ path: disk.path });
      const id = randomUUID();
      const claim = storage.claim(projectId);
      const { startedAt } = saved;
      const written = async () => {
        await claim.cover(saved.file.length);
        await writeFile(files.part(id), saved.file, { mode: 0o600, flag: 'wx' });
        return store.insert({ id, sessionId, projectId, nodeId, framerate: defaultFramerate, startedAt });
      };
      const row = await written().catch(async (error: Error) => {
        await claim.release();
        throw error;
      });
      recordings.finish(sessionId, id, 'saved', claim);
      return toReplay(row!, { keyId, projectId });
    } finally {
      held.release();
    }
  }

  async function find(sessionId: string, id: string): Promise<ReplayRow> {
    const row = await store.find(sessionId, id);
    if (!row) throw errors.replay_not_found({ detail: `The session has no replay '${id}'. GET …/replays lists them.` });
    return row;
  }

  /** The file, or undefined while the video is not finished. */
  async function video(sessionId: string, id: string): Promise<{ path: string } | undefined> {
    const row = await find(sessionId, id);
    if (row.state === 'failed') {
      throw errors.replay_not_found({
        detail: `There is no video of this replay: ${row.ended_reason ?? 'it failed'}.`,
      });
    }
    if (row.node_id !== nodeId) {
      // Requests for a running node are forwarded. The node of this replay is lost, or has only just come back.
      throw errors.node_unreachable({ node: row.node_id, detail: 'The video is there, and its node has not joined.' });
    }
    return row.state === 'available' ? { path: files.done(id) } : undefined;
  }

  /** A session's id, also if the session has ended. */
  const sessionIdOf = (projectId: string, idOrName: string) => sessions.idOf(projectId, idOrName, true);

  return {
    start,

    async list(projectId: string, keyId: string, idOrName: string): Promise<Replay[]> {
      const rows = await store.list(await sessionIdOf(projectId, idOrName));
      return rows.map((row) => toReplay(row, { keyId, projectId }));
    },

    async stop(projectId: string, idOrName: string, id: string): Promise<void> {
      await find(await sessionIdOf(projectId, idOrName), id);
      recordings.stop(id); // a recording that has ended counts as stopped
    },

    async videoFor(projectId: string, idOrName: string, id: string) {
      return video(await sessionIdOf(projectId, idOrName), id);
    },
    video,
    find,

    /** The session is usable from now on: starts its replay buffer, if it has one. */
    sessionStarted({ sessionId, replayBufferSeconds }: { sessionId: string; replayBufferSeconds: number | undefined }) {
      if (replayBufferSeconds === undefined || !canEncode()) return;
      const engine = async () => {
        const held = await sessions.hold(sessionId);
        held.release(); // the replay buffer does not keep the session awake
        return held.engine;
      };
      rings.set(sessionId, keepRing({ seconds: replayBufferSeconds, engine, confinement }));
    },

    /** Ends recordings of a returned session: the last holder must not record the next one. */
    sessionReturned: (sessionId: string) => recordings.stopAll('session_ended', sessionId),

    sessionEnded(sessionId: string) {
      rings.get(sessionId)?.close();
      rings.delete(sessionId);
    },

    /** Finishes the videos that a lost service left unfinished, and removes unknown files. Runs before anything is served. */
    async open(): Promise<void> {
      await files.prepare();
      const known = new Set(await store.idsOf(nodeId));
      for (const id of await files.list()) if (!known.has(id)) await files.remove(id);
      for (const row of await store.unfinished(nodeId)) {
        if (row.state === 'failed') await store.apply(row.id, 'found_again');
        recordings.finish(row.session_id, row.id, 'service_restarted');
      }
    },

    async expire(): Promise<void> {
      for (const id of await store.expire(nodeId, days)) await files.remove(id);
    },

    async close(): Promise<void> {
      for (const ring of rings.values()) ring.close();
      rings.clear();
      await recordings.close();
    },
  };
}

function replayOf(row: ReplayRow, addresses: Addresses, minter: Minter): Replay {
  return {
    replay_id: row.id,
    started_at: row.started_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
    replay_view_url: addresses.ofReplay(row.session_id, row.id, row.node_id, minter),
    status: row.state,
    ...(row.ended_reason ? { ended_reason: row.ended_reason } : {}),
    ...(row.state === 'available' ? { size_bytes: Number(row.bytes) } : {}),
  };
}

/** Refuses what no recording can be, and fields that make each other meaningless. */
function refuseContradictions(request: StartReplay): void {
  if (request.record_audio) {
    throw errors.invalid_input({
      detail: 'record_audio must be false: sessions have no sound that could be recorded.',
    });
  }
  for (const field of ['framerate', 'max_duration_in_seconds'] as const) {
    if (request.last_seconds !== undefined && request[field] !== undefined)
      throw errors.invalid_input({
        detail: `${field} is for a recording that begins now; last_seconds saves one that was made already. Leave out one of the two.`,
      });
  }
  if ((request.max_duration_in_seconds ?? defaultSeconds) > mostSeconds) {
    throw errors.invalid_input({ detail: `max_duration_in_seconds must be at most ${mostSeconds}.` });
  }
}
