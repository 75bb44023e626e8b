import { errors } from '../../errors.ts';
import type { EventBus } from '../../events.ts';
import type { ExtensionService } from '../../extensions/service.ts';
import type { Log } from '../../lib/log.ts';
import { undoOnFailure } from '../../lib/undo.ts';
import type { ProfileService } from '../../profiles/service.ts';
import type { ProxyService } from '../../proxies/service.ts';
import type { CreateSession, Session } from '../../sessions/schema.ts';
import type { SessionService } from '../../sessions/service.ts';
import { asSteel } from './answer.ts';
import { restoreContext } from './context.ts';
import { planOf, type Plan } from './options.ts';
import type { CreateBody, SessionContext } from './schema.ts';

/** The caller, and whether the client is still connected. */
export interface Who {
  projectId: string;
  keyId: string;
  hungUp: AbortSignal;
}

/** The most extensions that a session takes. */
const MOST_EXTENSIONS = 20;

/** Creates sessions like `POST /browsers`, with the additional options of the other service. */
export function sessionCreating({
  sessions,
  profiles,
  extensions,
  proxies,
  events,
  log,
}: {
  sessions: Pick<SessionService, 'create' | 'hold' | 'stop'>;
  profiles: Pick<ProfileService, 'create' | 'get' | 'remove'>;
  extensions: Pick<ExtensionService, 'list'>;
  proxies: Pick<ProxyService, 'create' | 'remove'>;
  events: Pick<EventBus, 'on'>;
  log: Log;
}) {
  /** A session's end by its timeout. Its browser is on this node, and ends with it, so nothing has to outlive the process. */
  const expiries = new Map<string, NodeJS.Timeout>();
  events.on('session.ended', ({ sessionId }) => {
    clearTimeout(expiries.get(sessionId));
    expiries.delete(sessionId);
  });

  function endAfter(id: string, ms: number): void {
    const detail = `Its timeout of ${ms} ms was over.`;
    const end = () => {
      expiries.delete(id);
      sessions
        .stop(id, 'deleted', detail)
        .catch((error: Error) => log.warn({ session: id, error: error.message }, 'door.session_not_ended'));
    };
    expiries.set(id, setTimeout(end, ms).unref());
  }

  async function profileFor(projectId: string, { profile }: Plan, undo: (step: () => unknown) => void) {
    if (!profile) return undefined;
    if (profile.idOrName !== undefined)
      return { id: (await profiles.get(projectId, profile.idOrName)).id, save_changes: profile.save };
    const { id } = await profiles.create(projectId, undefined);
    undo(() => profiles.remove(projectId, id));
    return { id, save_changes: true };
  }

  async function extensionsFor(projectId: string, { allExtensions }: Plan) {
    if (!allExtensions) return undefined;
    const all = await extensions.list(projectId, { limit: MOST_EXTENSIONS, offset: 0 });
    if (all.length > MOST_EXTENSIONS)
      throw errors.invalid_input({
        detail: `extensionIds: the project has more than ${MOST_EXTENSIONS} extensions; name those that the session needs.`,
      });
    return all.map(({ id }) => ({ id }));
  }

  /** A session keeps the configuration of its proxy, so the proxy that was created for it is deleted once it runs. */
  async function make({ projectId, keyId, hungUp }: Who, request: CreateSession, { proxy }: Plan): Promise<Session> {
    if (!proxy) return sessions.create(projectId, keyId, request, hungUp);
    const { id = '' } = await proxies.create(projectId, proxy);
    try {
      return await sessions.create(projectId, keyId, { ...request, proxy_id: id }, hungUp);
    } finally {
      await proxies
        .remove(projectId, id)
        .catch((error: Error) => log.warn({ proxy: id, error: error.message }, 'door.proxy_not_removed'));
    }
  }

  async function restore(id: string, context: SessionContext, hungUp: AbortSignal): Promise<void> {
    const { engine, release } = await sessions.hold(id);
    try {
      await restoreContext(engine.mux, context, hungUp);
    } finally {
      release();
    }
  }

  return (caller: Who, body: CreateBody) =>
    undoOnFailure(async (undo) => {
      const plan = planOf(body);
      const { projectId, hungUp } = caller;
      const profile = await profileFor(projectId, plan, undo);
      const loaded = await extensionsFor(projectId, plan);
      const request = {
        ...plan.request,
        ...(profile ? { profile } : {}),
        ...(loaded ? { extensions: loaded } : {}),
      };
      const session = await make(caller, request, plan);
      const { session_id: id } = session;
      undo(() => sessions.stop(id, 'deleted'));
      endAfter(id, plan.timeoutMs); // before the first wait: the end of the session forgets it again
      const { context } = plan;
      if (context) await restore(id, context, hungUp);
      hungUp.throwIfAborted();
      return asSteel(session);
    });
}
