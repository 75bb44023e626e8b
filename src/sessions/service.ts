import type { DiskTaker, DiskUse } from '../chromium/sandbox/disk-use.ts';
import type { EventBus } from '../events.ts';
import type { ExtensionService } from '../extensions/service.ts';
import type { DiskSpace } from '../lib/disk-space.ts';
import type { Log } from '../lib/log.ts';
import type { ProfileService } from '../profiles/service.ts';
import type { ProxyService } from '../proxies/service.ts';
import type { TelemetryService } from '../telemetry/service.ts';
import { closedProjects } from './closed-projects.ts';
import type { Addresses } from './addresses.ts';
import { admission as sessionAdmission } from './admission.ts';
import type { Browsers } from './browsers.ts';
import { sessionChanging } from './session-update.ts';
import { diskGuard } from './disk-guard.ts';
import { diskOffenders } from './disk-offenders.ts';
import { sessionEnding } from './session-end.ts';
import { sessionFinding } from './session-lookup.ts';
import { holdForms } from './forms.ts';
import { sessionLaunching } from './session-launch.ts';
import { sessionLending } from './session-loans.ts';
import type { LiveSession } from './live-session.ts';
import { loadedExtensions } from './loaded-extensions.ts';
import { restarts as sessionRestarts } from './restarts.ts';
import { sessionRoster } from './roster.ts';
import type { CreateSession, Session } from './schema.ts';
import type { Shape } from './spares.ts';
import type { SessionStore } from './store.ts';
import type { Collect } from './telemetry.ts';
import type { SessionTimings } from './timings.ts';

export type SessionService = ReturnType<typeof sessionService>;

/** On a disk with less free space than this, in reserves above the reserve, sessions that write too much are a danger to others. */
const nearReserve = 4;

/** The operations on sessions, composed of one file per noun: admission, launching, changing, lending, ending, finding. */
export function sessionService(deps: {
  store: SessionStore;
  browsers: Browsers;
  profiles: Pick<ProfileService, 'choose' | 'open' | 'save'>;
  extensions: Pick<ExtensionService, 'choose'>;
  addresses: Addresses;
  sessionCap: (projectId: string) => Promise<number | null>;
  proxies: Pick<ProxyService, 'endpoint' | 'defaultEndpoint'>;
  telemetry: Pick<TelemetryService, 'open'>;
  collect: Collect;
  /** Writes down what an ended session's processes said at last. */
  keepLog: (session: LiveSession) => Promise<void>;
  /** Throws unless the invocation is one of the project that has not ended. */
  refuseInvocation: (projectId: string, id: string) => Promise<void>;
  nodeId: string;
  /** The most browsers this node runs, spares included. */
  capacity: number;
  spares: Record<Shape, number>;
  disk: DiskSpace;
  /** The most disk space one session may use. */
  mostOnDisk: DiskUse;
  /** What else is ended, as sessions are, when the disk is short. */
  takers: () => Iterable<DiskTaker>;
  /** Removes from the disk what can be made again. Never rejects. */
  makeRoom: () => Promise<void>;
  timings?: Partial<SessionTimings> | undefined;
  events: EventBus;
  log: Log;
}) {
  const { store, browsers, nodeId, log } = deps;
  const roster = sessionRoster();
  browsers.onOutOfMemory((id, report) => roster.live.get(id)?.telemetry.outOfMemory(report));
  const extensions = loadedExtensions({ browsers, log });
  const parts = { ...deps, library: deps.extensions, extensions, roster };
  const offenders = diskOffenders();
  deps.events.on('session.ended', ({ projectId, reason }) => {
    if (reason === 'disk_limit' && deps.disk.distance() < nearReserve) offenders.add(projectId);
  });
  const admission = sessionAdmission({ ...parts, offenders, relieve: () => guard.relieve() });
  const ending = sessionEnding({
    ...parts,
    onGone(id) {
      extensions.forget(id);
      guard.forget(id);
      admission.freePlace();
    },
  });
  const { stop } = ending;
  browsers.onFault(
    (id) => void (admission.dropSpare(id) || stop(id, 'fault', 'The log of the service has the fault.')),
  );
  const guard = diskGuard({
    space: deps.disk,
    most: deps.mostOnDisk,
    sessions: () => roster.live.values(),
    takers: deps.takers,
    makeRoom: deps.makeRoom,
    end: stop,
    blame: offenders.add,
    log,
  });
  const restarts = sessionRestarts(parts);
  const { make } = sessionLaunching({ ...parts, admission, ending, guard, asItIsNow: restarts.asItIsNow });
  const { find, toSession, ...finding } = sessionFinding(parts);
  const changing = sessionChanging({ ...parts, restarts, finding: { find, toSession } });
  const lending = sessionLending({ ...parts, make, toSession });
  const closed = closedProjects({
    here: roster.ids,
    closedAmong: (ids) => store.ofClosedProjects(ids),
    end: (id) => void stop(id, 'project_closed'),
    log,
  });

  return {
    ...finding,
    ...changing,
    ...lending,
    stop,

    /** `keyId` is the key of the request: the addresses in the answer are valid for as long as it is. */
    async create(projectId: string, keyId: string, request: CreateSession, hungUp?: AbortSignal): Promise<Session> {
      const row = await make(projectId, request, { hungUp });
      // If the invocation has ended, it has ended only the browsers that it had by then.
      if (row.invocation_id !== null)
        await deps.refuseInvocation(projectId, row.invocation_id).catch(async (error: Error) => {
          await stop(row.id, 'deleted');
          throw error;
        });
      return toSession(row, keyId);
    },

    async remove(projectId: string, idOrName: string): Promise<void> {
      await ending.remove((await find(projectId, idOrName)).id);
    },
    removeAndSave: ending.removeAndSave,

    /** The disk of this node, for builds and invocations. */
    disk: { wait: admission.waitForDisk, relieve: () => void guard.relieve(), offenders: offenders.waiting },

    running: roster.running,
    /** Runs work that lasts longer than the request that asked for it. A fault in it ends the session. */
    workFor: browsers.workFor,
    hold: roster.hold,
    /** For logins: what the session's pages ask for, and filling it in. The session is on this node, or is not found. */
    forms: (id: string) => holdForms(() => roster.hold(id)),

    /** Call it when a project was closed, or may have been closed without this node receiving the event. */
    endClosedProjects: closed.sweep,

    counts() {
      const live = [...roster.live.values()];
      return {
        ...admission.counts(),
        live: live.length,
        standby: live.filter((session) => session.standingBy).length,
        clients: live.reduce((sum, session) => sum + session.clientCount, 0),
      };
    },

    /** Other nodes took this node for lost: ends the sessions that they have settled. Rows of settled sessions are final. */
    async endSettled(): Promise<void> {
      const settled = await store.settledAmong(roster.ids());
      await Promise.all(settled.map((id) => stop(id, 'node_lost')));
    },

    /** After a crash of the service: kills its leftover processes and settles its rows. Runs before anything is served. */
    async start(): Promise<void> {
      await browsers.sweep();
      const lost = await store.settleAll(nodeId, 'service_restarted');
      if (lost.length > 0) log.warn({ sessions: lost.length }, 'sessions.settled_after_restart');
      admission.fill();
    },

    async close(): Promise<void> {
      roster.closed = true;
      closed.close();
      await Promise.all([admission.close(), ...roster.ids().map((id) => stop(id, 'shutdown'))]);
      await Promise.all(Array.from(roster.ends.values(), ({ over }) => over));
      guard.close();
    },
  };
}
