import type { Engine } from '../chromium/engine.ts';
import type { Proxy } from '../chromium/egress/proxy.ts';
import { canEncode } from '../chromium/recorder/encoder.ts';
import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import type { ExtensionService, Loadable } from '../extensions/service.ts';
import { newId } from '../lib/ids.ts';
import { latest } from '../lib/latest.ts';
import type { Log } from '../lib/log.ts';
import { undoOnFailure } from '../lib/undo.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { ProxyService } from '../proxies/service.ts';
import { captureOf } from '../telemetry/capture.ts';
import type { TelemetryService } from '../telemetry/service.ts';
import { fit, type Admission } from './admission.ts';
import type { BrowserOptions, Browsers } from './browsers.ts';
import type { DiskGuard } from './disk-guard.ts';
import { whyNotStarted, type Endings } from './session-end.ts';
import { liveSession, type LiveSession } from './live-session.ts';
import type { LoadedExtensions } from './loaded-extensions.ts';
import { optionsOf, rowFor, withProfile } from './request.ts';
import type { Restarts } from './restarts.ts';
import type { Roster } from './roster.ts';
import type { CreateSession } from './schema.ts';
import type { Spare } from './spares.ts';
import { SessionEnded } from './state.ts';
import { openStartUrl } from './start-url.ts';
import type { NewSession, SessionRow, SessionStore } from './store.ts';
import type { SessionTimings } from './timings.ts';
import { sessionTelemetry, type Collect } from './telemetry.ts';
import { wayOut } from './way-out.ts';

/** The pool a browser is created for. `opensUrl`: the pool has a start_url, which is opened when the browser is lent. */
export interface PoolPlace {
  id: string;
  version: number;
  opensUrl?: boolean;
}

interface Making {
  hungUp?: AbortSignal | undefined;
  /** The session is created for a pool: until it is leased it has no holder and does not time out. */
  pool?: PoolPlace;
  /** Called when the row is inserted; the browser is not started yet. */
  onPlaced?: () => void;
}

/** What a session is created from. */
interface Plan {
  row: NewSession;
  options: BrowserOptions;
  spare: Spare | undefined;
  proxy: Proxy | undefined;
  /** The session may save to a profile that another session saves to. */
  force: boolean;
  wanted: Loadable[];
  signal: AbortSignal;
  onPlaced: (() => void) | undefined;
}

interface LaunchingDeps {
  store: Pick<SessionStore, 'find' | 'apply' | 'setClock'>;
  browsers: Pick<Browsers, 'start' | 'workFor' | 'forgetTabs'>;
  profiles: Pick<ProfileService, 'choose' | 'open'>;
  library: Pick<ExtensionService, 'choose'>;
  proxies: Pick<ProxyService, 'endpoint' | 'defaultEndpoint'>;
  extensions: LoadedExtensions;
  roster: Roster;
  admission: Admission;
  ending: Pick<Endings, 'stop' | 'settle'>;
  asItIsNow: Restarts['asItIsNow'];
  guard: Pick<DiskGuard, 'stir'>;
  telemetry: Pick<TelemetryService, 'open'>;
  /** Takes events out of a browser. */
  collect: Collect;
  /** Throws unless the invocation is one of the project that has not ended: its browsers end with it. */
  refuseInvocation: (projectId: string, id: string) => Promise<void>;
  nodeId: string;
  timings?: Partial<SessionTimings> | undefined;
  events: Pick<EventBus, 'publish'>;
  log: Log;
}

/** Creates sessions: from a request to a usable browser. */
export function sessionLaunching(deps: LaunchingDeps) {
  const { store, browsers, profiles, library, proxies, extensions, roster, admission, ending, nodeId, events, log } =
    deps;

  async function make(
    projectId: string,
    request: CreateSession,
    { hungUp, pool, onPlaced }: Making,
  ): Promise<SessionRow> {
    if (request.invocation_id !== undefined) await deps.refuseInvocation(projectId, request.invocation_id);
    if (request.replay_buffer_seconds !== undefined && !canEncode())
      throw errors.engine_unavailable({
        detail: 'replay_buffer_seconds needs ffmpeg, which this machine does not have.',
      });
    await admission.waitForDisk(projectId);
    const profile = request.profile && (await profiles.choose(projectId, request.profile));
    const wanted = request.extensions?.length ? await library.choose(projectId, request.extensions) : [];
    const options = {
      ...optionsOf(request),
      ...(wanted.length > 0 ? { needsFullBrowser: true } : {}),
      ...(profile && withProfile((request.start_url ?? pool?.opensUrl) ? 'cookies' : 'tabs')),
    };
    const proxyId = request.proxy_id || null;
    const proxy = await wayOut(proxies, projectId, { proxyId, stealth: options.stealth, defaultDisabled: false });
    const asked = rowFor(projectId, request, options);
    await admission.takePlace(hungUp); // nothing is refused between this and `launch`, which gives the place back
    const spare = admission.takeSpare(options);
    const id = spare?.id ?? newId();
    const callOff = new AbortController();
    const signal = hungUp ? AbortSignal.any([callOff.signal, hungUp]) : callOff.signal;
    const row = {
      ...asked,
      id,
      node_id: nodeId,
      proxy_id: proxyId,
      pool_id: pool?.id ?? null,
      pool_version: pool?.version ?? null,
      profile_id: profile?.id ?? null,
      profile_saves: !pool && profile !== undefined && request.profile?.save_changes === true,
    };
    const force = request.profile?.force === true;
    const starting = browsers
      .workFor(id, () => launch({ row, options, spare, proxy, force, wanted, signal, onPlaced }))
      .catch((error: Error) => {
        throw callOff.signal.aborted ? calledOff(id, callOff.signal.reason) : error;
      })
      .finally(() => {
        roster.launching.delete(id);
        admission.launchOver();
      });
    roster.launching.set(id, { callOff, over: starting.catch(() => {}) });
    const started = { sessionId: id, replayBufferSeconds: request.replay_buffer_seconds };
    void starting.then(
      () => browsers.workFor(id, () => events.publish('session.started', started)), // what it starts is the session's
      () => {},
    );
    return starting;
  }

  /** From a place, and perhaps a spare, to a usable session. If it throws, nothing is left of the session. */
  async function launch(plan: Plan): Promise<SessionRow> {
    const { row, options, spare, proxy, signal } = plan;
    const { id, profile_id: profileId } = row;
    let session: LiveSession | undefined;
    const launched = undoOnFailure(async (undo) => {
      let placed = true;
      undo(() => placed && admission.freePlace());
      if (spare) undo(() => placed && admission.giveBackSpare(options, spare));
      await admission.insert(row, spare ? 'live' : 'starting', plan.force);
      plan.onPlaced?.();

      // From here on, ending the session frees everything.
      placed = false;
      const whenGone = () => session?.whenGone() ?? { code: 1011, reason: 'The browser went away.' };
      if (spare) spare.whenGone = whenGone;
      else await admission.makeRoom();
      const engine =
        spare?.engine ?? (await start(plan, whenGone).catch((error: Error) => didNotStart(id, error, signal)));
      session = sessionOn(engine, plan, whenGone);
      roster.live.set(id, session);
      deps.guard.stir();
      undo(() => ending.stop(id, whyNotStarted(signal)));
      if (spare && proxy) engine.gateway.setProxy(proxy);
      if (spare) await fit(engine, options);
      if (plan.wanted.length > 0) await extensions.load(id, engine, plan.wanted);
      const capture = captureOf(row.telemetry);
      if (capture.size > 0) await session.telemetry.change(capture, engine); // before the first page is opened
      if (row.start_url) void openStartUrl(engine, row.start_url, log);
      const now = spare ? await store.find(id) : await store.apply(id, 'launched');
      if (!now || now.deleted_at) throw errors.session_not_found({ session: id }); // stopped while it was starting
      signal.throwIfAborted(); // the client has disconnected, so no one could use the session
      if (profileId !== null && row.profile_saves) roster.saving.set(id, profileId);
      return now;
    });
    // If the session was ended, that is the reason of the failed launch.
    return launched.catch((error: Error) => {
      throw session?.ending ? errors.session_not_found({ session: id }) : error;
    });
  }

  async function start({ row, options, proxy, signal }: Plan, whenGone: LiveSession['whenGone']): Promise<Engine> {
    const saved = row.profile_id === null ? undefined : await profiles.open(row.profile_id);
    const resume = saved || row.profile_id === null ? options.resume : 'cookies'; // an empty profile has no tabs
    return browsers.start(row.id, { ...options, resume, proxy }, whenGone, signal, saved?.bytes);
  }

  async function didNotStart(id: string, error: Error, signal: AbortSignal): Promise<never> {
    admission.freePlace();
    await ending.settle(id, { reason: whyNotStarted(signal), detail: error.message });
    throw error;
  }

  function sessionOn(engine: Engine, { row, options, proxy }: Plan, whenGone: LiveSession['whenGone']): LiveSession {
    const { id } = row;
    const journal = deps.telemetry.open(id, row.project_id);
    return liveSession({
      id,
      projectId: row.project_id,
      engine,
      telemetry: sessionTelemetry({ id, journal, collect: deps.collect, log }),
      timeoutSeconds: row.pool_id === null ? row.timeout_seconds : undefined,
      mayStandBy: !options.gpu,
      proxy,
      // The current options, not the requested ones; and without start_url, which may have caused the crash.
      relaunch: async (signal, proxy) => {
        const now = { ...options, ...(await deps.asItIsNow(id)), proxy };
        if (now.resume) await browsers.forgetTabs(id, signal).catch(() => {}); // the tabs may have caused the crash, too
        return extensions.again(id, await browsers.start(id, now, whenGone, signal));
      },
      onAwake: deps.guard.stir,
      onClock: latest(
        (clock) => store.setClock(id, clock),
        (error) => log.warn({ session: id, error: error.message }, 'session.uptime_not_written'),
      ),
      onIdle: () => void ending.stop(id, 'idle'),
      onLost: (detail) => void ending.stop(id, 'crashed', detail),
      timings: deps.timings,
      log,
    });
  }

  return { make };
}

/** The error for a session that was ended during the start of its browser. */
function calledOff(id: string, reason: unknown): Error {
  return reason instanceof SessionEnded && reason.reason === 'fault'
    ? errors.browser_did_not_start({ detail: reason.message })
    : errors.session_not_found({ session: id });
}
