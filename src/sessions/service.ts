import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../chromium/engine.ts';
import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { undoOnFailure } from '../lib/undo.ts';
import { uniqueViolation } from '../store/db.ts';
import type { Addresses } from './addresses.ts';
import type { BrowserOptions, Browsers } from './browsers.ts';
import { liveSession, SessionEnded, type Hold, type LiveSession } from './live-session.ts';
import { policyOf } from './policy.ts';
import type { CreateSession, Session, SessionList, UpdateSession } from './schema.ts';
import { warmSpares, type Shape, type Spare } from './spares.ts';
import type { Ending } from './state.ts';
import type { NewSession, SessionRow, SessionStore } from './store.ts';

const defaultTimeoutSeconds = 60;
const defaultViewport = { width: 1920, height: 1080 };

export type SessionService = ReturnType<typeof sessionService>;

/** A session by its id alone, or as a project's clients name it. */
export type SessionRef = { id: string } | { projectId: string; idOrName: string };

interface Making {
  hungUp?: AbortSignal | undefined;
  /** It is made for a pool: nobody's until it is leased, and it does not idle out before. */
  pool?: { id: string; version: number };
  /** Its place is taken: the row is there, the browser is not yet. */
  onPlaced?: () => void;
}

export function sessionService(deps: {
  store: SessionStore;
  browsers: Browsers;
  addresses: Addresses;
  sessionCap: (projectId: string) => Promise<number | null>;
  nodeId: string;
  /** How many browsers this node runs at most, spares included. */
  capacity: number;
  spares: Record<Shape, number>;
  events: EventBus;
  log: Log;
}) {
  const { store, browsers, addresses, sessionCap, nodeId, capacity, events, log } = deps;
  /** The sessions whose browsers this process holds, until nothing is left of them. */
  const live = new Map<string, LiveSession>();
  /** Sessions whose browsers are being started: how to call that off, and when it is over either way. */
  const launching = new Map<string, { callOff: AbortController; over: Promise<unknown> }>();
  /** Ways to the end that are being walked. */
  const endings = new Map<string, Promise<void>>();
  /** Places taken by sessions, from before the launch until after the end. */
  let taken = 0;
  let closed = false;

  const spares = warmSpares({
    wanted: deps.spares,
    room: () => !closed && launching.size === 0 && taken + spareCount() < capacity,
    log,
    async start(shape) {
      const id = newId();
      const spare: Omit<Spare, 'engine'> = { id, whenGone: () => ({ code: 1011, reason: 'The browser went away.' }) };
      const engine = await browsers.start(id, spareOptions(shape), () => spare.whenGone());
      return Object.assign(spare, { engine });
    },
    async discard({ id, engine }) {
      await engine.close({ discard: true });
      await browsers.remove(id);
    },
  });

  async function create(projectId: string, request: CreateSession, hungUp?: AbortSignal): Promise<Session> {
    return toSession(await make(projectId, request, { hungUp }));
  }

  async function make(
    projectId: string,
    request: CreateSession,
    { hungUp, pool, onPlaced }: Making,
  ): Promise<SessionRow> {
    refuseWhatIsNotHere(request);
    const options = optionsOf(request);
    takePlace();
    const shape = shapeOf(options);
    const spare = shape && spares.take(shape);
    const id = spare?.id ?? newId();
    const callOff = new AbortController();
    const signal = hungUp ? AbortSignal.any([callOff.signal, hungUp]) : callOff.signal;
    const row = {
      ...rowFor(id, projectId, request, options),
      node_id: nodeId,
      pool_id: pool?.id ?? null,
      pool_version: pool?.version ?? null,
    };
    const starting = launch(row, options, spare, signal, onPlaced)
      .catch((error: Error) => {
        throw callOff.signal.aborted ? errors.session_not_found({ session: id }) : error;
      })
      .finally(() => {
        launching.delete(id);
        if (launching.size === 0) spares.fillSoon(); // it waited for those who wait
      });
    launching.set(id, { callOff, over: starting.catch(() => {}) });
    void starting.then(
      () => events.publish('session.started', { sessionId: id, replayBufferSeconds: request.replay_buffer_seconds }),
      () => {},
    );
    return starting;
  }

  /** From a place and perhaps a spare to a session that can be used. If it throws, nothing of it is left. */
  async function launch(
    row: NewSession,
    options: BrowserOptions,
    spare: Spare | undefined,
    signal: AbortSignal,
    onPlaced?: () => void,
  ): Promise<SessionRow> {
    const { id } = row;
    let session: LiveSession | undefined;
    const launched = undoOnFailure(async (undo) => {
      let placed = true;
      undo(() => placed && freePlace());
      if (spare) undo(() => placed && spares.giveBack(options.headless ? 'headless' : 'headful', spare));
      await insert(row, spare ? 'live' : 'starting');
      onPlaced?.();

      // From here on the session's own end gives everything back.
      placed = false;
      const whenGone = () => session?.whenGone() ?? { code: 1011, reason: 'The browser went away.' };
      if (spare) spare.whenGone = whenGone;
      if (!spare && taken + spareCount() > capacity) await spares.giveUpOne();
      const engine =
        spare?.engine ??
        (await browsers.start(id, options, whenGone, signal).catch((error: Error) => didNotStart(id, error, signal)));
      session = liveSession({
        id,
        engine,
        timeoutSeconds: row.pool_id === null ? row.timeout_seconds : undefined,
        mayStandBy: !options.gpu,
        // As it is now, not as it was asked for; and without start_url, which may be what crashed it.
        relaunch: async (signal) => browsers.start(id, { ...options, ...(await viewportOf(id)) }, whenGone, signal),
        onIdle: () => void stop(id, 'idle'),
        onLost: (detail) => void stop(id, 'crashed', detail),
        log,
      });
      live.set(id, session);
      undo(() => stop(id, whyNot(signal)));
      if (spare) await fit(engine, options);
      if (row.start_url) void open(engine, row.start_url);
      const now = spare ? await store.find(id) : await store.apply(id, 'launched');
      if (!now || now.deleted_at) throw errors.session_not_found({ session: id }); // stopped while it was starting
      signal.throwIfAborted(); // nobody is there to be told its id, so nobody could use it
      return now;
    });
    // Whatever went wrong then went wrong because somebody ended it meanwhile.
    return launched.catch((error: Error) => {
      throw session?.ending ? errors.session_not_found({ session: id }) : error;
    });
  }

  async function viewportOf(id: string): Promise<Pick<BrowserOptions, 'viewport'> | undefined> {
    const row = await store.find(id);
    if (!row) return undefined;
    const { viewport_width: width, viewport_height: height, refresh_rate } = row;
    return { viewport: { width, height, ...(refresh_rate === null ? {} : { refreshRate: refresh_rate }) } };
  }

  /** A spare was started in the default size. */
  async function fit(engine: Engine, { viewport }: BrowserOptions): Promise<void> {
    const asStarted = viewport.width === defaultViewport.width && viewport.height === defaultViewport.height;
    if (!asStarted) await engine.setViewport(viewport);
  }

  /** Best effort, and nobody waits for it. */
  async function open(engine: Engine, url: string): Promise<void> {
    await engine
      .open(absolute(url))
      .catch((error: Error) => log.info({ error: error.message }, 'session.start_url_failed'));
  }

  async function insert(row: NewSession, state: 'starting' | 'live'): Promise<void> {
    try {
      if (row.pool_id) {
        if (!(await store.insertPooled(row, state, row.pool_id))) throw errors.pool_full({ pool: row.pool_id });
        return;
      }
      const cap = await sessionCap(row.project_id);
      const inserted = cap === null ? await store.insert(row, state) : await store.insertWithin(row, state, cap);
      if (!inserted)
        throw errors.session_limit_reached({ active: await store.countActive(row.project_id), cap: cap ?? 0 });
    } catch (error) {
      if (uniqueViolation(error) === 'sessions_name')
        throw errors.already_exists({ thing: 'session', name: row.name ?? '' });
      throw error;
    }
  }

  async function didNotStart(id: string, error: Error, signal: AbortSignal): Promise<never> {
    freePlace();
    await settle(id, { reason: whyNot(signal), detail: error.message });
    throw error;
  }

  const spareCount = () => spares.count('headless') + spares.count('headful');

  function takePlace() {
    if (closed || taken >= capacity) {
      throw errors.capacity_exhausted({ running: taken, most: capacity }, { headers: { 'Retry-After': '5' } });
    }
    taken++; // before anything is awaited, so that creates that come together count each other
  }

  function freePlace() {
    taken--;
    spares.fillSoon();
  }

  /**
   * The one road to the end: delete, idle timeout, crash and shutdown all come here. Resolves when nothing is left of the
   * session; whoever comes second awaits the same end.
   */
  function stop(id: string, reason: Ending, detail?: string): Promise<void> {
    const under = endings.get(id);
    if (under) return under;
    const session = live.get(id);
    if (!session) return callOff(id, reason);
    const end = (async () => {
      const uptimeMs = session.uptimeMs();
      const lost = reason === 'crashed' || reason === 'did_not_start';
      // Told at once, so that the browser dies while the row is written; and dies too where it cannot be written.
      const [heard] = await Promise.all([
        lost || store.apply(id, 'stop_requested', { reason, uptimeMs }).then(yes, no),
        session.end(reason),
      ]);
      await browsers.remove(id);
      return heard;
    })()
      .catch((error: Error) => {
        log.error({ session: id, error: error.message }, 'session.not_ended');
        return false;
      })
      .then((heard) => {
        live.delete(id);
        freePlace();
        const uptimeMs = session.uptimeMs();
        log.info({ session: id, reason, uptimeMs }, 'session.ended');
        return settle(id, { reason, uptimeMs, ...(detail === undefined ? {} : { detail }) }, heard);
      })
      .finally(() => endings.delete(id));
    endings.set(id, end);
    return end;
  }

  /** Ends a session that is not there yet. */
  async function callOff(id: string, reason: Ending): Promise<void> {
    const starting = launching.get(id);
    if (!starting) return;
    starting.callOff.abort(new SessionEnded(reason));
    await store.apply(id, 'stop_requested', { reason }).catch(() => {});
    await starting.over;
    if (live.has(id)) await stop(id, reason); // it was there before it heard of it
  }

  /** Nothing is left of the session but its row. A database that is away is asked again until it has heard. */
  async function settle(
    id: string,
    ending: { reason: Ending; detail?: string; uptimeMs?: number },
    heard = ending.reason === 'did_not_start',
  ): Promise<void> {
    for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 10_000)) {
      try {
        if (!heard) await store.apply(id, 'stop_requested', ending);
        const row = (await store.apply(id, 'cleaned_up', ending)) ?? (await store.apply(id, 'lost', ending));
        if (row)
          events.publish('session.ended', {
            sessionId: id,
            projectId: row.project_id,
            poolId: row.pool_id,
            reason: ending.reason,
          });
        return;
      } catch (error) {
        log.error({ session: id, error: (error as Error).message }, 'session.not_settled');
        if (closed) return; // the next start settles it
        await sleep(pauseMs);
      }
    }
  }

  async function find(projectId: string, idOrName: string, includeDeleted = false): Promise<SessionRow> {
    const row = await store.findByIdOrName(projectId, idOrName, includeDeleted);
    if (!row) throw errors.session_not_found({ session: idOrName });
    return row;
  }

  function toSession(row: SessionRow): Session {
    const policy = row.policy ?? undefined;
    return {
      session_id: row.id,
      created_at: row.created_at.toISOString(),
      ...addresses.of(row.id, row.node_id),
      headless: row.headless,
      stealth: row.stealth,
      gpu: row.gpu,
      kiosk_mode: row.kiosk_mode,
      timeout_seconds: row.timeout_seconds,
      viewport: {
        width: row.viewport_width,
        height: row.viewport_height,
        ...(row.refresh_rate === null ? {} : { refresh_rate: row.refresh_rate }),
      },
      ...(row.pool_id ? { pool: { id: row.pool_id, ...(row.pool_name ? { name: row.pool_name } : {}) } } : {}),
      ...(row.name === null ? {} : { name: row.name }),
      ...(row.start_url === null ? {} : { start_url: row.start_url }),
      ...(policy ? { engine_policy: policy, chrome_policy: policy } : {}),
      tags: row.tags,
      telemetry: null,
      usage: { uptime_ms: live.get(row.id)?.uptimeMs() ?? Number(row.uptime_ms) },
      ...(row.deleted_at ? { deleted_at: row.deleted_at.toISOString() } : {}),
      ...(row.ended_reason ? { ended_reason: row.ended_reason } : {}),
    };
  }

  return {
    create,
    stop,

    async get(projectId: string, idOrName: string, includeDeleted: boolean): Promise<Session> {
      return toSession(await find(projectId, idOrName, includeDeleted));
    },

    async list(projectId: string, filter: SessionList): Promise<Session[]> {
      const rows = await store.list({
        projectId,
        status: filter.include_deleted ? 'all' : filter.status,
        query: filter.query ?? null,
        tags: filter.tags ?? {},
        limit: filter.limit,
        offset: filter.offset,
      });
      return rows.map(toSession);
    },

    async update(projectId: string, idOrName: string, request: UpdateSession): Promise<Session> {
      refuseWhatIsNotHere(request);
      const { id } = await find(projectId, idOrName);
      const { viewport } = request;
      const held = viewport && (await hold(id));
      try {
        const viewers = live.get(id)?.viewerCount ?? 0;
        if (viewport && viewers > 0 && !viewport.force) throw errors.viewport_in_use({ viewers });
        // The row first: it may refuse the name, and it is what a browser that crashes now is started again from.
        const row = await store.update(id, {
          ...(request.name === undefined ? {} : { name: request.name || null }),
          ...(request.tags ? { tags: request.tags } : {}),
          ...(viewport ? { viewport: { ...viewport, rate: viewport.refresh_rate ?? null } } : {}),
        });
        if (!row) throw errors.session_not_found({ session: idOrName });
        if (viewport) await held?.engine.setViewport(viewport);
        return toSession(row);
      } catch (error) {
        if (uniqueViolation(error) === 'sessions_name')
          throw errors.already_exists({ thing: 'session', name: request.name ?? '' });
        throw error;
      } finally {
        held?.release();
      }
    },

    async remove(projectId: string, idOrName: string): Promise<void> {
      const { id } = await find(projectId, idOrName);
      await stop(id, 'deleted');
    },

    /** For pools: makes a browser that nobody holds yet. */
    makePooled: (
      projectId: string,
      pool: { id: string; version: number },
      request: CreateSession,
      onPlaced: () => void,
    ): Promise<SessionRow> => make(projectId, request, { pool, onPlaced }),

    /**
     * For pools: somebody has it from now on. Resolves when it has shown that it answers; rejects when it does not, and then
     * nobody should get it.
     */
    async lend(id: string, timeoutSeconds: number, startUrl: string | undefined): Promise<Session> {
      const held = await hold(id);
      try {
        await held.engine.control().send('Browser.getVersion');
        if (startUrl) void open(held.engine, startUrl);
        live.get(id)?.setTimeout(timeoutSeconds);
        const row = await store.find(id);
        if (!row || row.deleted_at) throw errors.session_not_found({ session: id });
        return toSession(row);
      } finally {
        held.release();
      }
    },

    /** For pools: nobody has it any more. Its clients are closed. */
    takeBack: (id: string) => live.get(id)?.setTimeout(undefined),

    hold,
    /** The same, as a project's clients name it. */
    holdFor: async (projectId: string, idOrName: string): Promise<Hold> => hold((await find(projectId, idOrName)).id),
    running: (id: string) => live.get(id),

    /**
     * The node that has an active session, or with `ended` had one; undefined when there is no such session. Asks the database
     * only when it is not here.
     */
    async nodeOf(ref: SessionRef, ended = false): Promise<string | undefined> {
      const key = 'id' in ref ? ref.id : ref.idOrName;
      if (live.has(key) || launching.has(key)) return nodeId;
      const row = await ('id' in ref ? store.find(ref.id) : store.findByIdOrName(ref.projectId, ref.idOrName, ended));
      return row && (ended || !row.deleted_at) ? row.node_id : undefined;
    },

    addressesOf: (id: string) => addresses.of(id),

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = await store.countActive(projectId);
      return count === 0 ? undefined : `${count} active ${count === 1 ? 'browser' : 'browsers'}`;
    },

    async stopProject(projectId: string): Promise<void> {
      for (const id of [...launching.keys(), ...live.keys()])
        if ((await store.find(id))?.project_id === projectId) void stop(id, 'project_closed');
    },

    counts: () => ({
      taken,
      live: live.size,
      standby: [...live.values()].filter((session) => session.standingBy).length,
      clients: [...live.values()].reduce((sum, session) => sum + session.clientCount, 0),
      spares: { headless: spares.count('headless'), headful: spares.count('headful') },
      capacity,
    }),

    /** Others have taken us for lost: ends what they have settled. Their word stands; rows that are at rest stay so. */
    async endSettled(): Promise<void> {
      const settled = await store.atRestAmong([...launching.keys(), ...live.keys()]);
      await Promise.all(settled.map((id) => stop(id, 'node_lost')));
    },

    /** After a crash of the service: kills what it left, and settles its rows. Before anything is served. */
    async start(): Promise<void> {
      await browsers.sweep();
      const lost = await store.settleAll(nodeId, 'service_restarted');
      if (lost.length > 0) log.warn({ sessions: lost.length }, 'sessions.settled_after_restart');
      spares.fill();
    },

    async close(): Promise<void> {
      closed = true;
      const sessions = new Set([...launching.keys(), ...live.keys()]);
      await Promise.all([spares.close(), ...[...sessions].map((id) => stop(id, 'shutdown'))]);
      await Promise.all(endings.values());
    },
  };

  /** Wakes a session of this node and keeps it awake until released. */
  async function hold(id: string): Promise<Hold> {
    const session = live.get(id);
    if (!session) throw errors.session_not_found({ session: id });
    return session.hold().catch((error: Error) => {
      throw error instanceof SessionEnded ? errors.session_not_found({ session: id }) : error;
    });
  }
}

const yes = () => true;
const no = () => false;

/** Why a session that was being started is not there: somebody ended it, nobody waits for it, or it would not start. */
function whyNot({ aborted, reason }: AbortSignal): Ending {
  if (reason instanceof SessionEnded) return reason.reason;
  return aborted ? 'deleted' : 'did_not_start';
}

const spareOptions = (shape: Shape): BrowserOptions => ({
  headless: shape === 'headless',
  stealth: false,
  kiosk: false,
  gpu: false,
  viewport: defaultViewport,
  policy: undefined,
});

/** Which spare would do; none for what cannot be applied to a browser that runs. */
function shapeOf({ headless, stealth, kiosk, gpu, policy }: BrowserOptions): Shape | undefined {
  if (stealth || kiosk || gpu || policy) return undefined;
  return headless ? 'headless' : 'headful';
}

function optionsOf(request: CreateSession): BrowserOptions {
  const {
    headless = false,
    stealth = false,
    kiosk_mode: kiosk = false,
    gpu = false,
    viewport = defaultViewport,
  } = request;
  if (gpu && headless) throw errors.invalid_input({ detail: 'gpu needs a display; leave out headless or gpu.' });
  const { width, height, refresh_rate } = viewport as { width: number; height: number; refresh_rate?: number };
  const rate = refresh_rate === undefined ? {} : { refreshRate: refresh_rate };
  return { headless, stealth, kiosk, gpu, viewport: { width, height, ...rate }, policy: policyOf(request) };
}

function rowFor(
  id: string,
  projectId: string,
  request: CreateSession,
  options: BrowserOptions,
): Omit<NewSession, 'node_id' | 'pool_id' | 'pool_version'> {
  return {
    id,
    project_id: projectId,
    name: request.name ?? null,
    tags: request.tags ?? {},
    headless: options.headless,
    stealth: options.stealth,
    gpu: options.gpu,
    kiosk_mode: options.kiosk,
    timeout_seconds: request.timeout_seconds ?? defaultTimeoutSeconds,
    viewport_width: options.viewport.width,
    viewport_height: options.viewport.height,
    refresh_rate: options.viewport.refreshRate ?? null,
    start_url: request.start_url ?? null,
    policy: options.policy ?? null,
    invocation_id: null,
  };
}

/** Fields of rooms that do not stand yet. What they mean when they ask for nothing is fine. */
export function refuseWhatIsNotHere(
  request: Partial<
    Pick<CreateSession, 'extensions' | 'invocation_id'> & Omit<UpdateSession, 'name' | 'tags' | 'viewport'>
  >,
) {
  const { profile, proxy_id, extensions, telemetry, invocation_id, disable_default_proxy } = request;
  const asksForTelemetry = telemetry && (telemetry.enabled === true || Object.keys(telemetry.browser ?? {}).length > 0);
  const asked = {
    profile: profile !== undefined,
    proxy_id: !!proxy_id,
    disable_default_proxy: disable_default_proxy === true,
    extensions: extensions !== undefined && extensions.length > 0,
    telemetry: asksForTelemetry,
    invocation_id: invocation_id !== undefined,
  };
  const field = Object.entries(asked).find(([, is]) => is)?.[0];
  if (field) throw errors.feature_not_available({ field });
}

/** A bare host is meant to be reached by https, as in an address bar. */
const absolute = (url: string) =>
  /^[a-z][a-z0-9+.-]*:/i.test(url) && !/^[^/]*:\d+(\/|$)/.test(url) ? url : `https://${url}`;
