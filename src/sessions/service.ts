import { setTimeout as sleep } from 'node:timers/promises';
import type { DiskUse } from '../chromium/sandbox/disk-use.ts';
import type { Engine } from '../chromium/engine.ts';
import type { Proxy } from '../chromium/egress/proxy.ts';
import { errors } from '../errors.ts';
import type { EventBus } from '../events.ts';
import type { ExtensionSelector } from '../extensions/schema.ts';
import type { ExtensionService, Loadable } from '../extensions/service.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import { newId } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { undoOnFailure } from '../lib/undo.ts';
import type { ProfileSelector } from '../profiles/schema.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { ProxyService } from '../proxies/service.ts';
import { uniqueViolation } from '../store/db.ts';
import type { Addresses } from './addresses.ts';
import { asSession } from './answer.ts';
import type { BrowserOptions, Browsers } from './browsers.ts';
import { diskGuard } from './disk-guard.ts';
import { liveSession, SessionEnded, type Hold, type LiveSession } from './live-session.ts';
import { loadedExtensions } from './loaded-extensions.ts';
import {
  absolute,
  defaultViewport,
  optionsOf,
  proxyChange,
  refuseWhatIsNotHere,
  rowFor,
  shapeOf,
  spareOptions,
  withProfile,
} from './request.ts';
import { restarts } from './restarts.ts';
import type { CreateLiveViewLink, CreateSession, LiveViewLink, Session, SessionList, UpdateSession } from './schema.ts';
import { warmSpares, type Shape, type Spare } from './spares.ts';
import type { Ending } from './state.ts';
import type { NewSession, SessionRow, SessionStore } from './store.ts';

/** Ends that are meant. After a crash the profile stays what it was. */
const savingEnds: ReadonlySet<Ending> = new Set(['deleted', 'idle', 'retired', 'shutdown', 'project_closed']);
/** Whoever reads an archive of gigabytes from a slow disk takes long; nobody takes longer than this. */
const longestSaveMs = 5 * 60_000;
/** Clients of this interface give a request up after 60 s. A save that takes longer goes on without them. */
const longestDeleteMs = 45_000;

export type SessionService = ReturnType<typeof sessionService>;

/** A session by its id alone, or as a project's clients name it. */
export type SessionRef = { id: string } | { projectId: string; idOrName: string };

/** The pool a browser is made for. `opensUrl`: it has a start_url, which is opened when the browser is lent. */
interface PoolPlace {
  id: string;
  version: number;
  opensUrl?: boolean;
}

interface Making {
  hungUp?: AbortSignal | undefined;
  /** It is made for a pool: nobody's until it is leased, and it does not idle out before. */
  pool?: PoolPlace;
  /** Its place is taken: the row is there, the browser is not yet. */
  onPlaced?: () => void;
}

/** What a session is to be made of. */
interface Plan {
  row: NewSession;
  options: BrowserOptions;
  spare: Spare | undefined;
  proxy: Proxy | undefined;
  /** It may save to a profile that another session saves to. */
  force: boolean;
  extensions: Loadable[];
  signal: AbortSignal;
  onPlaced: (() => void) | undefined;
}

export function sessionService(deps: {
  store: SessionStore;
  browsers: Browsers;
  profiles: Pick<ProfileService, 'choose' | 'open' | 'save'>;
  extensions: Pick<ExtensionService, 'choose'>;
  addresses: Addresses;
  sessionCap: (projectId: string) => Promise<number | null>;
  proxies: Pick<ProxyService, 'endpoint' | 'defaultEndpoint'>;
  nodeId: string;
  /** How many browsers this node runs at most, spares included. */
  capacity: number;
  spares: Record<Shape, number>;
  disk: DiskSpace;
  /** What one session may have on the disk. */
  mostOnDisk: DiskUse;
  events: EventBus;
  log: Log;
}) {
  const { store, browsers, profiles, addresses, sessionCap, proxies, nodeId, capacity, events, log } = deps;
  /** The sessions whose browsers this process holds, until nothing is left of them. */
  const live = new Map<string, LiveSession>();
  /** Sessions whose browsers are being started: how to call that off, and when it is over either way. */
  const launching = new Map<string, { callOff: AbortController; over: Promise<unknown> }>();
  /** The profiles that sessions write back when they end. */
  const saving = new Map<string, string>();
  const extensions = loadedExtensions({ browsers, log });
  const { asItIsNow, unlessWritten, attachProfile, startAnew } = restarts({
    store,
    browsers,
    profiles,
    extensions,
    live,
    open,
  });
  /** Ways to the end that are being walked: `killed` when nobody can use it any more, `over` when nothing is left of it. */
  const endings = new Map<string, { killed: Promise<unknown>; over: Promise<void> }>();
  /** Places taken by sessions, from before the launch until after the end. */
  let taken = 0;
  let closed = false;

  const guard = diskGuard({
    space: deps.disk,
    most: deps.mostOnDisk,
    sessions: () => live.values(),
    end: stop,
    log,
  });

  const spares = warmSpares({
    wanted: deps.spares,
    room: () => !closed && launching.size === 0 && taken + spareCount() < capacity,
    log,
    async start(shape) {
      refuseIfShort();
      const id = newId();
      const spare: Omit<Spare, 'engine'> = { id, whenGone: () => ({ code: 1011, reason: 'The browser went away.' }) };
      const engine = await browsers.start(id, spareOptions(shape), () => spare.whenGone());
      return Object.assign(spare, { engine });
    },
    async discard({ id, engine }) {
      await engine.close();
      await browsers.remove(id);
    },
  });

  /** In this and what follows, `keyId` is the key that asks: the answer's addresses are good for as long as it is. */
  async function create(
    projectId: string,
    keyId: string,
    request: CreateSession,
    hungUp?: AbortSignal,
  ): Promise<Session> {
    return toSession(await make(projectId, request, { hungUp }), keyId);
  }

  async function make(
    projectId: string,
    request: CreateSession,
    { hungUp, pool, onPlaced }: Making,
  ): Promise<SessionRow> {
    refuseWhatIsNotHere(request);
    refuseIfShort();
    const profile = request.profile && (await profiles.choose(projectId, request.profile));
    const wanted = request.extensions?.length ? await deps.extensions.choose(projectId, request.extensions) : [];
    const options = {
      ...optionsOf(request),
      ...(wanted.length > 0 ? { needsFullBrowser: true } : {}),
      ...(profile && withProfile((request.start_url ?? pool?.opensUrl) ? 'cookies' : 'tabs')),
    };
    const proxyId = request.proxy_id || null;
    const proxy = await wayOut(projectId, { proxyId, stealth: options.stealth, defaultDisabled: false });
    await takePlace();
    const shape = shapeOf(options);
    const spare = shape && spares.take(shape);
    const id = spare?.id ?? newId();
    const callOff = new AbortController();
    const signal = hungUp ? AbortSignal.any([callOff.signal, hungUp]) : callOff.signal;
    const row = {
      ...rowFor(id, projectId, request, options),
      node_id: nodeId,
      proxy_id: proxyId,
      pool_id: pool?.id ?? null,
      pool_version: pool?.version ?? null,
      profile_id: profile?.id ?? null,
      profile_saves: !pool && profile !== undefined && request.profile?.save_changes === true,
    };
    const force = request.profile?.force === true;
    const starting = launch({ row, options, spare, proxy, force, extensions: wanted, signal, onPlaced })
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
  async function launch({
    row,
    options,
    spare,
    proxy,
    force,
    extensions: wanted,
    signal,
    onPlaced,
  }: Plan): Promise<SessionRow> {
    const { id, profile_id: profileId } = row;
    let session: LiveSession | undefined;
    const launched = undoOnFailure(async (undo) => {
      let placed = true;
      undo(() => placed && freePlace());
      if (spare) undo(() => placed && spares.giveBack(options.headless ? 'headless' : 'headful', spare));
      await insert(row, spare ? 'live' : 'starting', force);
      onPlaced?.();

      // From here on the session's own end gives everything back.
      placed = false;
      const whenGone = () => session?.whenGone() ?? { code: 1011, reason: 'The browser went away.' };
      if (spare) spare.whenGone = whenGone;
      if (!spare && taken + spareCount() > capacity) await spares.giveUpOne();
      const start = async () => {
        const saved = profileId === null ? undefined : await profiles.open(profileId);
        const resume = saved || profileId === null ? options.resume : 'cookies'; // an empty one has no tabs
        return browsers.start(id, { ...options, resume, proxy }, whenGone, signal, saved?.bytes);
      };
      const engine = spare?.engine ?? (await start().catch((error: Error) => didNotStart(id, error, signal)));
      session = liveSession({
        id,
        engine,
        timeoutSeconds: row.pool_id === null ? row.timeout_seconds : undefined,
        mayStandBy: !options.gpu,
        proxy,
        // As it is now, not as it was asked for; and without start_url, which may be what crashed it.
        relaunch: async (signal, proxy) => {
          const now = { ...options, ...(await asItIsNow(id)), proxy };
          if (now.resume) await browsers.forgetTabs(id, signal).catch(() => {}); // they may be, too
          return extensions.again(id, await browsers.start(id, now, whenGone, signal));
        },
        onAwake: guard.stir,
        onIdle: () => void stop(id, 'idle'),
        onLost: (detail) => void stop(id, 'crashed', detail),
        log,
      });
      live.set(id, session);
      guard.stir();
      undo(() => stop(id, whyNot(signal)));
      if (spare && proxy) engine.gateway.setProxy(proxy);
      if (spare) await fit(engine, options);
      if (wanted.length > 0) await extensions.load(id, engine, wanted);
      if (row.start_url) void open(engine, row.start_url);
      const now = spare ? await store.find(id) : await store.apply(id, 'launched');
      if (!now || now.deleted_at) throw errors.session_not_found({ session: id }); // stopped while it was starting
      signal.throwIfAborted(); // nobody is there to be told its id, so nobody could use it
      if (profileId !== null && row.profile_saves) saving.set(id, profileId);
      return now;
    });
    // Whatever went wrong then went wrong because somebody ended it meanwhile.
    return launched.catch((error: Error) => {
      throw session?.ending ? errors.session_not_found({ session: id }) : error;
    });
  }

  /**
   * What a session's traffic leaves by; undefined for no proxy. The label is new each time: a rotating proxy keeps its exit
   * for as long as the session keeps the proxy, and giving it the same one again is asking for another exit.
   */
  async function wayOut(
    projectId: string,
    { proxyId, stealth, defaultDisabled }: { proxyId: string | null; stealth: boolean; defaultDisabled: boolean },
  ): Promise<Proxy | undefined> {
    if (proxyId) return proxies.endpoint(projectId, proxyId, newId());
    return stealth && !defaultDisabled ? proxies.defaultEndpoint(newId()) : undefined;
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

  async function insert(row: NewSession, state: 'starting' | 'live', force: boolean): Promise<void> {
    try {
      const cap = await sessionCap(row.project_id);
      const inserted = row.pool_id
        ? await store.insertPooled(row, state, row.pool_id, cap)
        : await unlessWritten(row.id, row.profile_saves && !force ? row.profile_id : null, (store) =>
            cap === null ? store.insert(row, state) : store.insertWithin(row, state, cap),
          );
      if (!inserted) throw errors.pool_full({ pool: row.pool_id ?? '' });
      if ('kept' in inserted) throw errors.session_limit_reached({ ...inserted, cap: cap ?? 0 });
    } catch (error) {
      if (uniqueViolation(error) === 'sessions_name')
        throw errors.already_exists({ thing: 'session', name: row.name ?? '' });
      throw error;
    }
  }

  /** Once its browser is gone and its files are closed. Resolves with why not, if it was not saved. */
  async function save(id: string, profileId: string): Promise<string | undefined> {
    const why = await profiles.save(profileId, id, browsers.pack(id, AbortSignal.timeout(longestSaveMs)));
    return why && `The profile was not saved: ${why}`;
  }

  async function didNotStart(id: string, error: Error, signal: AbortSignal): Promise<never> {
    freePlace();
    await settle(id, { reason: whyNot(signal), detail: error.message });
    throw error;
  }

  /** What is left then is the database's. */
  function refuseIfShort() {
    if (deps.disk.short()) throw errors.storage_full({ path: deps.disk.path });
  }

  const spareCount = () => spares.count('headless') + spares.count('headful');

  /** A session that was deleted has its place until it is all gone; that takes milliseconds, and is waited for. */
  async function takePlace() {
    while (!closed && taken >= capacity && endings.size > 0)
      await Promise.race(Array.from(endings.values(), ({ over }) => over));
    if (closed) throw errors.shutting_down(undefined, { headers: { 'Retry-After': '5' } });
    if (taken >= capacity) {
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
    if (under) return under.over;
    const session = live.get(id);
    if (!session) return callOff(id, reason);
    const uptimeMs = session.uptimeMs();
    const lost = reason === 'crashed' || reason === 'did_not_start';
    const profileId = savingEnds.has(reason) ? saving.get(id) : undefined;
    // Told at once, so that the browser dies while the row is written; and dies too where it cannot be written.
    const gone = session.end(reason, { keep: profileId !== undefined });
    const written = lost
      ? Promise.resolve(true)
      : store.apply(id, 'stop_requested', { reason, uptimeMs }).then(yes, no);
    const over = (async () => {
      const [heard] = await Promise.all([written, gone]);
      if (profileId !== undefined) detail ??= await save(id, profileId);
      await browsers.remove(id);
      return heard;
    })()
      .catch((error: Error) => {
        log.error({ session: id, error: error.message }, 'session.not_ended');
        return false;
      })
      .then((heard) => {
        live.delete(id);
        saving.delete(id);
        extensions.forget(id);
        guard.forget(id);
        freePlace();
        const uptimeMs = session.uptimeMs();
        log.info({ session: id, reason, uptimeMs }, 'session.ended');
        return settle(id, { reason, uptimeMs, ...(detail === undefined ? {} : { detail }) }, heard);
      })
      .finally(() => endings.delete(id));
    // Whoever deletes a session that saves its profile may count on what was saved.
    const killed = profileId === undefined ? written.then((heard) => (heard ? undefined : over)) : over;
    endings.set(id, { killed, over });
    return over;
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

  const toSession = (row: SessionRow, keyId: string): Session =>
    asSession(row, addresses, keyId, live.get(row.id)?.uptimeMs() ?? Number(row.uptime_ms));

  return {
    create,
    stop,

    async get(projectId: string, keyId: string, idOrName: string, includeDeleted: boolean): Promise<Session> {
      return toSession(await find(projectId, idOrName, includeDeleted), keyId);
    },

    async list(projectId: string, keyId: string, filter: SessionList): Promise<Session[]> {
      const rows = await store.list({
        projectId,
        status: filter.include_deleted ? 'all' : filter.status,
        query: filter.query ?? null,
        tags: filter.tags ?? {},
        limit: filter.limit,
        offset: filter.offset,
      });
      return rows.map((row) => toSession(row, keyId));
    },

    async update(projectId: string, keyId: string, idOrName: string, request: UpdateSession): Promise<Session> {
      refuseWhatIsNotHere(request);
      const before = await find(projectId, idOrName);
      const { id, profile_id } = before;
      const { viewport, profile } = request;
      if (profile && profile_id !== null) throw errors.profile_loaded({ session: id, profile: profile_id });
      const proxy = proxyChange(before, request);
      const way = proxy && (await wayOut(projectId, { ...proxy, proxyId: proxy.id, stealth: before.stealth }));
      const held = (viewport ?? proxy) && (await hold(id));
      const change = async () => {
        const viewers = live.get(id)?.viewerCount ?? 0;
        if (viewport && viewers > 0 && !viewport.force) throw errors.viewport_in_use({ viewers });
        // The row first: it may refuse the name, and it is what a browser that crashes now is started again from.
        const row = await store.update(id, {
          ...(request.name === undefined ? {} : { name: request.name || null }),
          ...(request.tags ? { tags: request.tags } : {}),
          ...(viewport ? { viewport: { ...viewport, rate: viewport.refresh_rate ?? null } } : {}),
          ...(proxy ? { proxy } : {}),
        });
        if (!row) throw errors.session_not_found({ session: idOrName });
        if (proxy) await live.get(id)?.setProxy(way);
        if (viewport) await held?.engine.setViewport(viewport);
        return row;
      };
      try {
        const session = live.get(id);
        const row = await (proxy && session ? session.swapping(change) : change());
        const saves = profile && (await attachProfile(row, profile));
        if (saves) saving.set(id, saves);
        return toSession(profile ? await find(projectId, id) : row, keyId);
      } catch (error) {
        if (uniqueViolation(error) === 'sessions_name')
          throw errors.already_exists({ thing: 'session', name: request.name ?? '' });
        throw error;
      } finally {
        held?.release();
      }
    },

    /**
     * Resolves when its clients are closed, its browser is killed and its row says so; the kernel may take a moment more. A profile that
     * it saves is saved by then, unless that takes too long; it goes on all the same.
     */
    async remove(projectId: string, idOrName: string): Promise<void> {
      const { id } = await find(projectId, idOrName);
      const saves = saving.has(id);
      const over = stop(id, 'deleted');
      const killed = endings.get(id)?.killed ?? over;
      await (saves ? Promise.race([killed, sleep(longestDeleteMs, undefined, { ref: false })]) : killed);
    },

    /** For pools: the ids of what a request selects; nothing of what it leaves out, and null for a profile that it clears. */
    async resolve(
      projectId: string,
      request: { profile?: Pick<ProfileSelector, 'id' | 'name'> | null; extensions?: ExtensionSelector[] },
    ): Promise<{ profile_id?: string | null; extension_ids?: string[] }> {
      const chosen = request.extensions && (await deps.extensions.choose(projectId, request.extensions));
      return {
        ...(request.profile === undefined
          ? {}
          : { profile_id: request.profile && (await profiles.choose(projectId, request.profile)).id }),
        ...(chosen ? { extension_ids: chosen.map(({ id }) => id!) } : {}),
      };
    },

    /** For pools: makes a browser that nobody holds yet. */
    makePooled: (
      projectId: string,
      pool: PoolPlace,
      request: CreateSession,
      onPlaced: () => void,
    ): Promise<SessionRow> => make(projectId, request, { pool, onPlaced }),

    /**
     * For pools: somebody has it from now on. Resolves when it has shown that it answers; rejects when it does not, and then
     * nobody should get it.
     */
    async lend(
      id: string,
      { id: lease, timeoutSeconds }: { id: string; timeoutSeconds: number },
      startUrl: string | undefined,
      keyId: string,
    ): Promise<Session> {
      const session = live.get(id);
      if (!session) throw errors.session_not_found({ session: id });
      const held = await awake(session);
      try {
        await held.engine.control().send('Browser.getVersion');
        if (startUrl) void open(held.engine, startUrl);
        session.lend({ lease, timeoutSeconds, used: !!startUrl });
        const row = await store.find(id);
        if (!row || row.deleted_at) throw errors.session_not_found({ session: id });
        return toSession(row, keyId);
      } finally {
        held.release();
      }
    },

    /**
     * For pools: nobody has it any more. Its clients are closed, and it leaves by the pool's proxy again. Answers whether anybody
     * had used it.
     */
    async takeBack(id: string): Promise<boolean> {
      const session = live.get(id);
      if (!session) return true;
      const used = session.takeBack();
      events.publish('session.returned', { sessionId: id });
      await session.swapping(() => session.resetProxy());
      return used;
    },
    /** For pools: under which lease it is held here; null without one, undefined when it is not here. */
    leaseOf: (id: string) => live.get(id)?.lease,

    /**
     * Loads extensions into a session that runs. Its clients stay connected, unless it is the headless shell, which cannot have
     * any: then the full browser takes its place, with the same cookies and pages.
     */
    async loadExtensions(projectId: string, idOrName: string, wanted: Loadable[]): Promise<void> {
      const row = await find(projectId, idOrName);
      const { id } = row;
      const held = await hold(id);
      try {
        if (held.engine.browser.kind === 'headless-shell') await startAnew(row);
        const again = await hold(id);
        await extensions.load(id, again.engine, wanted).finally(() => again.release());
      } finally {
        held.release();
      }
    },

    hold,
    /** The same, as a project's clients name it. */
    holdFor: async (projectId: string, idOrName: string): Promise<Hold> => hold((await find(projectId, idOrName)).id),
    /** A session that clients may come to, and that runs here. */
    running(id: string): LiveSession | undefined {
      const session = live.get(id);
      return session?.shelved ? undefined : session;
    },
    isHere: (id: string) => live.has(id),

    /** A session whose browser this node has. */
    async here(ref: SessionRef): Promise<LiveSession | undefined> {
      if ('id' in ref) return live.get(ref.id);
      const row = await store.findByIdOrName(ref.projectId, ref.idOrName, false);
      return row && live.get(row.id);
    },

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

    /** A link to its live view, to be handed to somebody who has no key. */
    async liveViewLink(
      projectId: string,
      keyId: string,
      idOrName: string,
      { read_only: watchOnly, expires_in_seconds: seconds }: CreateLiveViewLink,
    ): Promise<LiveViewLink> {
      const row = await find(projectId, idOrName);
      const session = { id: row.id, nodeId: row.node_id, lease: row.lease_id };
      const expires = new Date(Math.floor(Date.now() / 1000 + seconds) * 1000);
      const url = addresses.ofLiveView(session, { keyId, projectId: row.project_id }, { watchOnly, seconds });
      return { url, read_only: watchOnly, expires_at: expires.toISOString() };
    },
    idOf: async (projectId: string, idOrName: string, includeDeleted: boolean): Promise<string> =>
      (await find(projectId, idOrName, includeDeleted)).id,

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
      await Promise.all(Array.from(endings.values(), ({ over }) => over));
      guard.close();
    },
  };

  /** Wakes a session of this node and keeps it awake until released. */
  async function hold(id: string): Promise<Hold> {
    const session = live.get(id);
    if (!session || session.shelved) throw errors.session_not_found({ session: id });
    return awake(session);
  }

  function awake(session: LiveSession): Promise<Hold> {
    return session.hold().catch((error: Error) => {
      throw error instanceof SessionEnded ? errors.session_not_found({ session: session.id }) : error;
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
