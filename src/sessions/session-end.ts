import { finishedWithin } from '../lib/deadline.ts';
import { retried } from '../lib/retry.ts';
import type { EventBus } from '../events.ts';
import type { Log } from '../lib/log.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { Browsers } from './browsers.ts';
import type { LiveSession } from './live-session.ts';
import type { Roster } from './roster.ts';
import { SessionEnded, type Ending } from './state.ts';
import type { SessionStore } from './store.ts';

/** Intended endings, which save the profile. After a crash the profile stays as it was. */
const savingEnds: ReadonlySet<Ending> = new Set(['deleted', 'idle', 'retired', 'shutdown', 'project_closed']);
/** Reading an archive of gigabytes from a slow disk takes long, but not longer than this. */
const longestSaveMs = 5 * 60_000;
/** Clients of this API cancel a request after 60 s. A save that takes longer continues in the background. */
const longestDeleteMs = 45_000;

interface Outcome {
  reason: Ending;
  detail?: string;
  uptimeMs?: number;
}

export type Endings = ReturnType<typeof sessionEnding>;

/** How sessions end: delete, idle timeout, crash, retirement and shutdown share one path. */
export function sessionEnding({
  store,
  browsers,
  profiles,
  roster,
  onGone,
  keepLog,
  events,
  log,
}: {
  store: Pick<SessionStore, 'apply' | 'find' | 'saveAfterAll' | 'saveIfUndisturbed'>;
  browsers: Pick<Browsers, 'pack' | 'remove'>;
  profiles: Pick<ProfileService, 'save'>;
  roster: Roster;
  /** The session's browser and files are removed; its other data can be removed. */
  onGone: (id: string) => void;
  /** Stores the last log lines of the session's processes. Never rejects. */
  keepLog: (session: LiveSession) => Promise<void>;
  events: Pick<EventBus, 'publish'>;
  log: Log;
}) {
  /** Resolves when nothing is left of the session. A second caller awaits the same end. */
  function stop(id: string, reason: Ending, detail?: string): Promise<void> {
    const underWay = roster.ends.get(id);
    if (underWay) return underWay.over;
    const session = roster.live.get(id);
    return session ? end(session, reason, detail) : callOff(id, reason);
  }

  function end(session: LiveSession, reason: Ending, detail: string | undefined): Promise<void> {
    const { id } = session;
    const uptimeMs = session.uptimeMs();
    const lost = reason === 'crashed' || reason === 'did_not_start' || reason === 'fault';
    const profileId = savingEnds.has(reason) ? roster.saving.get(id) : undefined;
    // Before the row is written, so that the browser is killed at the same time, and also when the row cannot be written.
    const ended = session.end(reason, { keep: profileId !== undefined });
    const written = lost
      ? Promise.resolve(true)
      : store.apply(id, 'stop_requested', { reason, uptimeMs }).then(yes, no);
    const over = (async () => {
      const [heard] = await Promise.all([written, ended]);
      if (profileId !== undefined) detail ??= await save(id, profileId);
      await browsers.remove(id);
      return heard;
    })()
      .catch((error: Error) => {
        log.error({ session: id, error: error.message }, 'session.not_ended');
        return false;
      })
      .then(async (heard) => {
        roster.live.delete(id);
        roster.saving.delete(id);
        onGone(id);
        const uptimeMs = session.uptimeMs();
        log.info({ session: id, reason, uptimeMs }, 'session.ended');
        // Before the row has its final state, so that a session that is over has a log. The idle browser of a pool cannot be asked for one.
        if (!session.shelved) await keepLog(session);
        return settle(id, { reason, uptimeMs, ...(detail === undefined ? {} : { detail }) }, heard);
      })
      .finally(() => roster.ends.delete(id));
    // When the deletion of a session that saves its profile is answered, the profile is saved.
    const killed = profileId === undefined ? written.then((heard) => (heard ? undefined : over)) : over;
    roster.ends.set(id, { killed, over });
    return over;
  }

  /** Call it after the browser has exited and its files are closed. Resolves with the reason if the profile was not saved. */
  async function save(id: string, profileId: string): Promise<string | undefined> {
    const why = await profiles.save(profileId, id, browsers.pack(id, AbortSignal.timeout(longestSaveMs)));
    return why && `The profile was not saved: ${why}`;
  }

  /** Ends a session during the start of its browser. */
  async function callOff(id: string, reason: Ending): Promise<void> {
    const starting = roster.launching.get(id);
    if (!starting) return;
    starting.callOff.abort(new SessionEnded(reason));
    await store.apply(id, 'stop_requested', { reason }).catch(() => {});
    await starting.over;
    if (roster.live.has(id)) await stop(id, reason); // the launch finished before the abort reached it
  }

  /**
   * Writes the outcome once nothing but the row is left of the session. Retries until the database answers. `heard`: the database already
   * knows that the session ends.
   */
  async function settle(id: string, outcome: Outcome, heard = outcome.reason === 'did_not_start'): Promise<void> {
    const write = async () => {
      if (!heard) await store.apply(id, 'stop_requested', outcome);
      const row = (await store.apply(id, 'cleaned_up', outcome)) ?? (await store.apply(id, 'lost', outcome));
      if (!row) return;
      const { project_id: projectId, pool_id: poolId } = row;
      events.publish('session.ended', { sessionId: id, projectId, poolId, reason: outcome.reason });
    };
    await retried(write, ({ message }) => {
      log.error({ session: id, error: message }, 'session.not_settled');
      return roster.closed ? 'stop' : 'again'; // the next start of the service settles it
    });
  }

  return {
    stop,
    settle,

    /**
     * Resolves when the clients are closed, the browser is killed and the row is written. The kernel then takes 25 to 50 ms to remove the
     * namespaces, which was more than half of a warm lifecycle. The place is free after that: a create on a full node waits for it before it
     * answers 529. A profile to be saved is saved by then, unless that takes too long; the save then continues.
     */
    async remove(id: string): Promise<void> {
      const saves = roster.saving.has(id);
      const over = stop(id, 'deleted');
      const killed = roster.ends.get(id)?.killed ?? over;
      if (!saves) return void (await killed);
      await finishedWithin(longestDeleteMs, killed);
    },

    /**
     * Deletes a session and saves its profile, although the session was started without save_changes. Resolves when that is done, with the
     * reason if the profile was not saved. With `giveWay`, a version that other sessions saved since, or will save, is not overwritten.
     */
    async removeAndSave(id: string, { giveWay = false } = {}): Promise<string | undefined> {
      const profileId = giveWay ? await store.saveIfUndisturbed(id) : await store.saveAfterAll(id);
      if (profileId === undefined && giveWay) {
        await stop(id, 'deleted');
        return 'Another session saves to the profile or has saved to it, or the browser had ended.';
      }
      if (profileId === undefined || !roster.live.has(id)) return 'The browser had ended.';
      roster.saving.set(id, profileId);
      await stop(id, 'deleted');
      const row = await store.find(id);
      return row?.ended_reason === 'deleted' ? (row.ended_detail ?? undefined) : 'The browser ended first.';
    },
  };
}

const yes = () => true;
const no = () => false;

/** Why a session did not start: it was ended, its client hung up, or the launch failed. */
export function whyNotStarted({ aborted, reason }: AbortSignal): Ending {
  if (reason instanceof SessionEnded) return reason.reason;
  return aborted ? 'deleted' : 'did_not_start';
}
