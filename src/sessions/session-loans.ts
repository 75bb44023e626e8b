import type { EventBus } from '../events.ts';
import { errors } from '../errors.ts';
import type { ExtensionSelector } from '../extensions/schema.ts';
import type { ExtensionService } from '../extensions/service.ts';
import type { Log } from '../lib/log.ts';
import type { ProfileSelector } from '../profiles/schema.ts';
import type { ProfileService } from '../profiles/service.ts';
import { captureOf } from '../telemetry/capture.ts';
import type { PoolPlace } from './session-launch.ts';
import { awake, type Roster } from './roster.ts';
import type { CreateSession, Session } from './schema.ts';
import { openStartUrl } from './start-url.ts';
import type { SessionRow, SessionStore } from './store.ts';

/** How a session came back from the holder of a lease. `unknown`: its clients may still be connected, so no other may get it. */
export type Returned = 'used' | 'unused' | 'unknown';

/** What pools do with sessions: create them, lend them to one holder after the other, and take them back. */
export function sessionLending({
  store,
  profiles,
  library,
  roster,
  make,
  toSession,
  events,
  log,
}: {
  store: Pick<SessionStore, 'find'>;
  profiles: Pick<ProfileService, 'choose'>;
  library: Pick<ExtensionService, 'choose'>;
  roster: Pick<Roster, 'live' | 'get'>;
  make: (
    projectId: string,
    request: CreateSession,
    how: { pool: PoolPlace; onPlaced: () => void },
  ) => Promise<SessionRow>;
  /** The session as the holder of this key sees it. */
  toSession: (row: SessionRow, keyId: string) => Session;
  events: Pick<EventBus, 'publish'>;
  log: Log;
}) {
  return {
    /** The ids of what a request selects: no field for what it leaves out, null for a profile that it clears. */
    async resolve(
      projectId: string,
      request: { profile?: Pick<ProfileSelector, 'id' | 'name'> | null; extensions?: ExtensionSelector[] },
    ): Promise<{ profile_id?: string | null; extension_ids?: string[] }> {
      const chosen = request.extensions && (await library.choose(projectId, request.extensions));
      return {
        ...(request.profile === undefined
          ? {}
          : { profile_id: request.profile && (await profiles.choose(projectId, request.profile)).id }),
        ...(chosen ? { extension_ids: chosen.map(({ id }) => id!) } : {}),
      };
    },

    /** Creates a browser that has no holder yet. */
    makePooled: (
      projectId: string,
      pool: PoolPlace,
      request: CreateSession,
      onPlaced: () => void,
    ): Promise<SessionRow> => make(projectId, request, { pool, onPlaced }),

    /** Lends the session to a holder. Resolves when the browser has answered; if this rejects, the session is not fit to be lent. */
    async lend(
      id: string,
      {
        id: lease,
        timeoutSeconds,
        startUrl,
        telemetry,
      }: { id: string; timeoutSeconds: number; startUrl: string | null; telemetry?: string[] },
      keyId: string,
    ): Promise<Session> {
      const session = roster.get(id);
      const held = await awake(session);
      try {
        await held.engine.control().send('Browser.getVersion');
        const capture = captureOf(telemetry);
        if (capture.size > 0) await session.telemetry.change(capture, held.engine);
        if (startUrl !== null) void openStartUrl(held.engine, startUrl, log);
        session.lend({ lease, timeoutSeconds, used: startUrl !== null });
        const row = await store.find(id);
        if (!row || row.deleted_at) throw errors.session_not_found({ session: id });
        return toSession(row, keyId);
      } finally {
        held.release();
      }
    },

    /**
     * Takes the session from the holder of this lease: closes its clients and restores the pool's proxy. If it has another lease by now, or
     * none, nothing happens to it.
     */
    async takeBack(id: string, lease: string): Promise<Returned> {
      const session = roster.live.get(id);
      if (session?.lease !== lease) return 'unknown';
      const used = session.takeBack();
      events.publish('session.returned', { sessionId: id });
      await session.changing(() => session.resetProxy());
      return used ? 'used' : 'unused';
    },

    /** The session's lease on this node; null without one, undefined when the session is not on this node. */
    leaseOf: (id: string) => roster.live.get(id)?.lease,
  };
}
