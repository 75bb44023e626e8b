import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Confinement } from '../../chromium/recorder/encoder.ts';
import { DisplayTooLarge } from '../../chromium/recorder/frames.ts';
import { NoPictureMemory } from '../../chromium/recorder/picture-memory.ts';
import { record, type Recording } from '../../chromium/recorder/recorder.ts';
import { errors, ServiceError } from '../../errors.ts';
import type { DiskSpace } from '../../lib/disk-space.ts';
import type { Log } from '../../lib/log.ts';
import type { ProjectStorage, StorageClaim } from '../../lib/storage.ts';
import type { Hold } from '../holds.ts';
import type { SessionService } from '../service.ts';
import type { ReplayFiles } from './files.ts';
import type { ReplayEnding } from './state.ts';
import type { ReplayRow, ReplayStore } from './store.ts';

/** Of a session, with those whose videos are being finished: each has an encoder, and stopping is quick. */
const mostAtOnce = 8;
/** No recording is started if the project has less room than this. */
const leastBytes = 64 * 1024;
/** The time to finish recordings when the service stops. */
const closingMs = 15_000;

/** A recording that a client asked for. It is one replay, or several: a change of the viewport ends one and begins the next. */
interface Take {
  readonly sessionId: string;
  readonly projectId: string;
  readonly framerate: number;
  /** On the monotonic clock, in milliseconds. */
  readonly until: number;
  readonly replays: string[];
  /** Why it ends; no further replay of it begins then. */
  ending: ReplayEnding | undefined;
}

interface Running {
  readonly sessionId: string;
  /** Undefined for a video that was recorded before. */
  readonly take: Take | undefined;
  stop(reason: ReplayEnding): void;
  readonly over: Promise<void>;
}

interface Deps {
  store: Pick<ReplayStore, 'insert' | 'apply'>;
  sessions: Pick<SessionService, 'hold' | 'running' | 'workFor'>;
  files: ReplayFiles;
  confinement: Confinement;
  nodeId: string;
  mostBytes: number;
  disk: Pick<DiskSpace, 'path' | 'short'>;
  storage: ProjectStorage;
  say: (sessionId: string, line: string) => void;
  log: Log;
}

/** Recordings under way, each written to its file until something ends it, and then finished. */
export function replayRecordings(deps: Deps, encode: typeof record = record) {
  const { store, sessions, confinement, nodeId, disk, storage, say, log } = deps;
  /** Recordings under way or about to begin. */
  const open = new Set<Take>();
  /** Recordings, and videos that are being finished. */
  const running = new Map<string, Running>();
  const closing = new AbortController();

  /** Begins the next replay of a take. */
  async function begin(take: Take): Promise<ReplayRow> {
    const { sessionId, projectId, framerate } = take;
    if (disk.short()) throw errors.storage_full({ path: disk.path });
    const held = await sessions.hold(sessionId); // the session stays awake while it is recorded
    const claim = storage.claim(projectId);
    try {
      await claim.cover(leastBytes);
      const recording = await sessions.workFor(sessionId, () => encode(held.engine, framerate, confinement));
      const id = randomUUID();
      const row = await store
        .insert({ id, sessionId, projectId, nodeId, framerate, startedAt: new Date() })
        .catch((error: Error) => {
          recording.output.resume();
          recording.stop();
          throw error;
        });
      take.replays.push(id);
      keep(id, take, recording, held, claim);
      if (take.ending !== undefined) stopTake(take, take.ending); // stopped while this replay began
      return row!;
    } catch (error) {
      held.release();
      await claim.release();
      if (error instanceof NoPictureMemory) throw errors.recording_limit_reached({ most: 'memory' });
      throw error instanceof DisplayTooLarge ? errors.invalid_input({ detail: error.message }) : error;
    }
  }

  /** Writes a recording to its file until something ends it, then finishes the video. */
  function keep(id: string, take: Take, recording: Recording, held: Hold, claim: StorageClaim) {
    const { sessionId } = take;
    const session = sessions.running(sessionId);
    let reason: ReplayEnding | undefined;
    const stop = (why: ReplayEnding) => {
      reason ??= why;
      session?.recordings.delete(recorded); // it takes no more pictures, so the viewport may change
      recording.stop();
    };
    const recorded = {
      cut() {
        stop('viewport_changed');
        return () => goOn(take);
      },
    };
    session?.recordings.add(recorded);
    const longest = setTimeout(stop, Math.max(0, take.until - performance.now()), 'max_duration');
    const written = write(recording, id, claim, stop, deps).catch((error: NodeJS.ErrnoException) => {
      stop(error.code === 'ENOSPC' || error.code === 'EDQUOT' ? 'disk_full' : 'encoder_failed');
      log.warn({ session: sessionId, replay: id, error: error.message }, 'replay.not_written');
    });
    say(sessionId, `recording ${id} started`);
    const over = (async () => {
      const { how, lastWords } = await recording.ended;
      clearTimeout(longest);
      session?.recordings.delete(recorded);
      held.release();
      const why = reason ?? how;
      if (why !== 'viewport_changed') end(take, why);
      await written;
      for (const line of lastWords) say(sessionId, line);
      say(sessionId, `recording ${id} ended: ${why}`);
      await settle(id, why, closing.signal, deps);
    })().finally(() => {
      running.delete(id);
      return claim.release().catch(() => {}); // else the next start does it
    });
    running.set(id, { sessionId, take, stop, over: over.catch(() => {}) });
  }

  /** The viewport has changed: begins the next replay, unless the recording was stopped or has lasted its time. */
  async function goOn(take: Take): Promise<void> {
    for (const id of take.replays.slice(0, -1)) await running.get(id)?.over; // viewports may change faster than videos are finished
    if (take.ending === undefined && take.until > performance.now()) {
      try {
        await begin(take);
        return;
      } catch (error) {
        log.warn({ session: take.sessionId, error: (error as Error).message }, 'replay.not_continued');
        say(take.sessionId, `a recording does not go on after the viewport changed: ${(error as Error).message}`);
      }
    }
    end(take, 'viewport_changed');
  }

  function end(take: Take, reason: ReplayEnding) {
    take.ending ??= reason;
    open.delete(take);
  }

  function stopTake(take: Take, reason: ReplayEnding) {
    take.ending ??= reason;
    for (const id of take.replays) running.get(id)?.stop(reason);
  }

  const countOf = (sessionId: string) => [...open].filter((take) => take.sessionId === sessionId).length;

  return {
    /** The number of recordings of a session. */
    countOf,
    /** Throws when the session has its maximum of recordings, with those that are being finished. */
    refuseIfFull: (sessionId: string) => refuseIfFull(sessionId, open, running),

    async start({ seconds, ...asked }: Pick<Take, 'sessionId' | 'projectId' | 'framerate'> & { seconds: number }) {
      refuseIfFull(asked.sessionId, open, running);
      const take: Take = { ...asked, until: performance.now() + seconds * 1000, replays: [], ending: undefined };
      open.add(take); // at once: further requests come while it begins
      return begin(take).catch((error: Error) => {
        open.delete(take);
        throw error;
      });
    },

    /** Ends the recording that this replay is a part of. */
    stop(id: string) {
      const take = [...open].find(({ replays }) => replays.includes(id));
      if (take) stopTake(take, 'stopped');
    },

    stopAll(reason: ReplayEnding, sessionId?: string) {
      for (const take of open) if (sessionId === undefined || take.sessionId === sessionId) stopTake(take, reason);
    },

    /** Finishes a video that is recorded already, in the background. */
    finish(sessionId: string, id: string, reason: ReplayEnding, claim?: StorageClaim) {
      const over = settle(id, reason, closing.signal, deps).finally(() => {
        running.delete(id);
        return claim?.release().catch(() => {}); // else the next start does it
      });
      running.set(id, { sessionId, take: undefined, stop() {}, over });
    },

    async close(): Promise<void> {
      this.stopAll('service_stopped');
      const late = setTimeout(() => closing.abort(), closingMs);
      await Promise.all(Array.from(running.values(), ({ over }) => over));
      clearTimeout(late);
    },
  };
}

function refuseIfFull(sessionId: string, open: ReadonlySet<Take>, running: ReadonlyMap<string, Running>): void {
  const takes = [...open].filter((take) => take.sessionId === sessionId);
  const isFinishing = ({ take }: Running) => take === undefined || !open.has(take);
  const finishing = [...running.values()].filter((its) => its.sessionId === sessionId && isFinishing(its));
  if (takes.length + finishing.length >= mostAtOnce) throw errors.recording_limit_reached({ most: mostAtOnce });
}

/** Finishes a video. Errors are logged; the next start of the service finishes the rest. */
async function settle(
  id: string,
  reason: ReplayEnding,
  signal: AbortSignal,
  { store, files, log }: Pick<Deps, 'store' | 'files' | 'log'>,
): Promise<void> {
  try {
    await store.apply(id, 'stopped', { reason });
    const bytes = await files.finish(id, signal);
    if (bytes === undefined) await store.apply(id, 'lost', { reason });
    else await store.apply(id, 'finished', { reason, bytes });
  } catch (error) {
    log.error({ replay: id, error: (error as Error).message }, 'replay.not_finished');
  }
}

/** Writes what a recording gives to its file, and asks it to stop where there is no more room. */
function write(
  { output }: Recording,
  id: string,
  claim: StorageClaim,
  stop: (why: ReplayEnding) => void,
  { files, mostBytes, disk }: Pick<Deps, 'files' | 'mostBytes' | 'disk'>,
): Promise<void> {
  let bytes = 0;
  return pipeline(
    output,
    async function* (source: AsyncIterable<Buffer>) {
      for await (const part of source) {
        bytes += part.length;
        await claim.cover(bytes).catch((error: Error) => {
          if (!(error instanceof ServiceError && error.code === 'project_storage_full')) throw error;
          stop('storage_limit');
        });
        yield part;
        if (bytes > mostBytes) stop('max_size');
        else if (disk.short()) stop('disk_full');
      }
    },
    createWriteStream(files.part(id), { flags: 'wx', mode: 0o600 }),
  );
}
