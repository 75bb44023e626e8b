import type { Viewport } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import type { Loadable } from '../extensions/service.ts';
import { within } from '../lib/deadline.ts';
import type { Capture } from '../lib/telemetry.ts';
import { undoOnFailure } from '../lib/undo.ts';
import type { ProxyService } from '../proxies/service.ts';
import { captureOf, captureOnUpdate } from '../telemetry/capture.ts';
import { nameTaken } from './admission.ts';
import type { Finding } from './session-lookup.ts';
import type { LoadedExtensions } from './loaded-extensions.ts';
import type { LiveSession } from './live-session.ts';
import { proxyChange, refuseIdleForce, refuseLargeDisplay, viewportOf } from './request.ts';
import type { Restarts } from './restarts.ts';
import type { Roster } from './roster.ts';
import type { Session, UpdateSession } from './schema.ts';
import type { SessionRow, SessionStore } from './store.ts';
import { wayOut } from './way-out.ts';

/** How long a browser may take to get its old viewport back. A browser that does not answer has not taken the new one either. */
const undoMs = 5000;

/** Changes to a running session. */
export function sessionChanging({
  store,
  proxies,
  extensions,
  roster,
  restarts,
  finding: { find, toSession },
}: {
  store: Pick<SessionStore, 'update'>;
  proxies: Pick<ProxyService, 'endpoint' | 'defaultEndpoint'>;
  extensions: LoadedExtensions;
  roster: Roster;
  restarts: Pick<Restarts, 'prepareProfile' | 'startAnew'>;
  finding: Pick<Finding, 'find' | 'toSession'>;
}) {
  /**
   * Everything that can be refused is refused before the first step. If a step fails all the same, those before it are undone. The profile
   * comes last, because a browser that was restarted cannot be put back.
   */
  async function change(session: LiveSession | undefined, before: SessionRow, request: UpdateSession): Promise<void> {
    const { id, project_id: projectId, stealth } = before;
    const { viewport, profile } = request;
    refuseLargeDisplay({ headless: before.headless, viewport });
    if (profile && before.profile_id !== null) throw errors.profile_loaded({ session: id, profile: before.profile_id });
    const proxy = proxyChange(before, request);
    const way = proxy && (await wayOut(proxies, projectId, { ...proxy, proxyId: proxy.id, stealth }));
    const next = viewport && { ...viewportOf(before), ...sizeOf(viewport) }; // a refresh rate that is left out stays
    const was = captureOf(before.telemetry);
    const capture = captureOnUpdate(was, request.telemetry);
    const held = (viewport ?? proxy ?? profile ?? capture) && (await roster.hold(id));
    let goOn: (() => Promise<void>)[] = [];
    try {
      if (viewport && session) refuseWhileShown(session, viewport);
      await undoOnFailure(async (undo) => {
        const ready = profile && (await restarts.prepareProfile(before, profile));
        if (ready) undo(ready.discard);
        // The row is updated before the browser: the update may refuse the name, and a browser that crashes now is restarted from the row.
        if (!(await store.update(before, changesOf(request, { next, proxy, capture }))))
          throw errors.session_not_found({ session: id });
        undo(() => store.update(before, changesBack(before, request, { proxy, capture })));
        if (viewport && session) goOn = Array.from(session.recordings, (recording) => recording.cut());
        if (proxy && session) {
          const { proxy: old } = session;
          undo(() => session.setProxy(old));
          await session.setProxy(way);
        }
        if (capture && held && session) {
          undo(() => session.telemetry.change(was, held.engine));
          await session.telemetry.change(capture, held.engine);
        }
        if (viewport && held) {
          const { engine } = held;
          undo(() => within(undoMs, 'The browser', engine.setViewport(viewportOf(before))));
          await engine.setViewport(next!);
        }
        const saves = await ready?.load();
        if (saves) roster.saving.set(id, saves);
      });
    } finally {
      await Promise.all(goOn.map((next) => next()));
      held?.release();
    }
  }

  return {
    async update(projectId: string, keyId: string, idOrName: string, request: UpdateSession): Promise<Session> {
      refuseIdleForce(request.profile);
      const { id } = await find(projectId, idOrName);
      const session = roster.live.get(id);
      const turn = async () => change(session, await find(projectId, id), request); // as the change before left it
      try {
        await (session ? session.changing(turn) : turn());
      } catch (error) {
        throw nameTaken(error, request.name);
      }
      return toSession(await find(projectId, id), keyId);
    },

    /**
     * Loads extensions into a running session. Its clients stay connected, except with the headless shell, which has no extensions: the
     * full browser then replaces it, with the same cookies and pages.
     */
    async loadExtensions(projectId: string, idOrName: string, wanted: Loadable[]): Promise<void> {
      const row = await find(projectId, idOrName);
      const { id } = row;
      const held = await roster.hold(id);
      try {
        if (held.engine.browser.kind === 'headless-shell') await restarts.startAnew(row);
        const again = await roster.hold(id);
        await extensions.load(id, again.engine, wanted).finally(() => again.release());
      } finally {
        held.release();
      }
    },
  };
}

function refuseWhileShown({ viewerCount: viewers, recordings: { size } }: LiveSession, { force }: { force?: boolean }) {
  if (!force && viewers + size > 0) throw errors.viewport_in_use({ viewers, recordings: size });
}

type Changes = Parameters<SessionStore['update']>[1];

const sizeOf = ({ width, height, refresh_rate }: NonNullable<UpdateSession['viewport']>): Viewport => ({
  width,
  height,
  ...(refresh_rate === undefined ? {} : { refreshRate: refresh_rate }),
});

function changesOf(
  { name, tags }: UpdateSession,
  { next, proxy, capture }: { next: Viewport | undefined; proxy: Changes['proxy']; capture: Capture | undefined },
): Changes {
  return {
    ...(name === undefined ? {} : { name: name || null }),
    ...(tags ? { tags } : {}),
    ...(next ? { viewport: { ...next, rate: next.refreshRate ?? null } } : {}),
    ...(proxy ? { proxy } : {}),
    ...(capture ? { telemetry: [...capture] } : {}),
  };
}

/** The same fields with the values that they had. */
function changesBack(
  row: SessionRow,
  { name, tags, viewport }: UpdateSession,
  { proxy, capture }: { proxy: Changes['proxy']; capture: Capture | undefined },
): Changes {
  return {
    ...(name === undefined ? {} : { name: row.name }),
    ...(tags ? { tags: row.tags } : {}),
    ...(viewport
      ? { viewport: { width: row.viewport_width, height: row.viewport_height, rate: row.refresh_rate } }
      : {}),
    ...(proxy ? { proxy: { id: row.proxy_id, defaultDisabled: row.default_proxy_disabled } } : {}),
    ...(capture ? { telemetry: row.telemetry } : {}),
  };
}
