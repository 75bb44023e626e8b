import type { Log } from '../lib/log.ts';
import type { Forms } from '../sessions/forms.ts';
import type { ReplayService } from '../sessions/replays/service.ts';
import type { CreateSession } from '../sessions/schema.ts';
import type { SessionService } from '../sessions/service.ts';
import type { ConnectionRow } from './store.ts';

/** The browser of one login or check. It always ends by `end`. */
export interface LoginBrowser {
  sessionId: string;
  replayId: string | null;
  captured: boolean;
  forms: Forms;
  /** Whether a person looks at it in the live view. */
  watched(): boolean;
  /** These values are typed from now on, and must not be in the session's telemetry. */
  hide(values: readonly string[]): void;
  /**
   * Deletes the session. With `save` the profile is written back; resolves with the reason if it was not. With `giveWay` it is not written
   * over a version that other sessions saved since, or will save.
   */
  end(how: { save: boolean; giveWay?: boolean }): Promise<string | undefined>;
}

export interface BrowserWish {
  connection: ConnectionRow;
  /** Of the request, if there was one: it is part of addresses only. */
  keyId: string | null;
  proxyId: string | null;
  telemetry: CreateSession['telemetry'];
  record: boolean;
  /** The tabs of the profile stay closed: only the requested site is visited. */
  withoutTabs?: boolean;
  signal: AbortSignal;
}

export type LoginBrowsers = ReturnType<typeof loginBrowsers>;

/** A login never takes longer than 20 minutes; a session that was forgotten ends by itself soon after. */
const idleSeconds = 120;
const longestReplaySeconds = 25 * 60;

/**
 * The sessions that logins and checks run in: stealthy, with the profile of the connection, and held, so that they neither
 * sleep nor time out. They are sessions like any other: listed, watched and deleted by the same requests.
 */
export function loginBrowsers(deps: {
  sessions: Pick<SessionService, 'create' | 'forms' | 'stop' | 'removeAndSave' | 'running'>;
  replays: Pick<ReplayService, 'start'>;
  log: Log;
}) {
  const { sessions, replays, log } = deps;
  return {
    async start(wish: BrowserWish): Promise<LoginBrowser> {
      const { connection, keyId, proxyId, telemetry, record, withoutTabs, signal } = wish;
      const { id, project_id: projectId, profile_id: profileId } = connection;
      const request: CreateSession = {
        headless: true,
        stealth: true,
        timeout_seconds: idleSeconds,
        profile: { id: profileId },
        tags: { auth_connection_id: id },
        ...(withoutTabs ? { start_url: 'about:blank' } : {}),
        ...(proxyId === null ? {} : { proxy_id: proxyId }),
        ...(telemetry ? { telemetry } : {}),
      };
      const session = await sessions.create(projectId, keyId ?? '', request, signal);
      const sessionId = session.session_id;
      try {
        const held = await sessions.forms(sessionId);
        const replay = record
          ? await replays.start(projectId, keyId ?? '', sessionId, { max_duration_in_seconds: longestReplaySeconds })
          : undefined;
        return {
          sessionId,
          replayId: replay?.replay_id ?? null,
          captured: Boolean(session.telemetry),
          forms: held.forms,
          watched: () => (sessions.running(sessionId)?.viewerCount ?? 0) > 0,
          hide: (values) => sessions.running(sessionId)?.telemetry.hideTyped(values),
          async end({ save, giveWay = false }) {
            held.release();
            try {
              if (save) return await sessions.removeAndSave(sessionId, { giveWay });
            } catch (error) {
              log.error({ session: sessionId, error: (error as Error).message }, 'login.profile_not_saved');
              await sessions.stop(sessionId, 'deleted');
              return 'The database did not answer.';
            }
            await sessions.stop(sessionId, 'deleted');
            return undefined;
          },
        };
      } catch (error) {
        await sessions.stop(sessionId, 'deleted').catch((also: Error) => {
          log.error({ session: sessionId, error: also.message }, 'login.browser_not_ended');
        });
        throw error;
      }
    },
  };
}
