import { errors } from '../errors.ts';
import type { Loadable } from '../extensions/service.ts';
import type { ProxyService } from '../proxies/service.ts';
import { captureOf, captureOnUpdate } from '../telemetry/capture.ts';
import { nameTaken } from './admission.ts';
import type { Finding } from './finding.ts';
import type { LoadedExtensions } from './loaded-extensions.ts';
import { proxyChange } from './request.ts';
import type { Restarts } from './restarts.ts';
import type { Roster } from './roster.ts';
import type { Session, UpdateSession } from './schema.ts';
import type { SessionStore } from './store.ts';
import { wayOut } from './way-out.ts';

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
  restarts: Pick<Restarts, 'attachProfile' | 'startAnew'>;
  finding: Pick<Finding, 'find' | 'toSession'>;
}) {
  return {
    async update(projectId: string, keyId: string, idOrName: string, request: UpdateSession): Promise<Session> {
      const before = await find(projectId, idOrName);
      const { id, profile_id } = before;
      const { viewport, profile } = request;
      if (profile && profile_id !== null) throw errors.profile_loaded({ session: id, profile: profile_id });
      const proxy = proxyChange(before, request);
      const way = proxy && (await wayOut(proxies, projectId, { ...proxy, proxyId: proxy.id, stealth: before.stealth }));
      const capture = captureOnUpdate(captureOf(before.telemetry), request.telemetry);
      const held = (viewport ?? proxy ?? capture) && (await roster.hold(id));
      const change = async () => {
        const viewers = roster.live.get(id)?.viewerCount ?? 0;
        if (viewport && viewers > 0 && !viewport.force) throw errors.viewport_in_use({ viewers });
        // The row is updated first: the update may refuse the name, and a browser that crashes now is restarted from the row.
        const row = await store.update(id, {
          ...(request.name === undefined ? {} : { name: request.name || null }),
          ...(request.tags ? { tags: request.tags } : {}),
          ...(viewport ? { viewport: { ...viewport, rate: viewport.refresh_rate ?? null } } : {}),
          ...(proxy ? { proxy } : {}),
          ...(capture ? { telemetry: [...capture] } : {}),
        });
        if (!row) throw errors.session_not_found({ session: idOrName });
        if (proxy) await roster.live.get(id)?.setProxy(way);
        if (capture && held) await roster.live.get(id)?.telemetry.change(capture, held.engine);
        if (viewport) await held?.engine.setViewport(viewport);
        return row;
      };
      try {
        const session = roster.live.get(id);
        const row = await (proxy && session ? session.swapping(change) : change());
        const saves = profile && (await restarts.attachProfile(row, profile));
        if (saves) roster.saving.set(id, saves);
        return toSession(profile ? await find(projectId, id) : row, keyId);
      } catch (error) {
        throw nameTaken(error, request.name);
      } finally {
        held?.release();
      }
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
