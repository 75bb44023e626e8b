import type { Isolation } from '../chromium/sandbox/isolation.ts';
import { WorkerError } from '../chromium/workshop/worker.ts';
import type { Cluster } from '../cluster/service.ts';
import { builds as buildLine, chunksOf } from '../deployments/builds.ts';
import { following as followRuns } from '../deployments/event-streams.ts';
import { runHub } from '../deployments/hub.ts';
import { invocationService } from '../deployments/invocation-service.ts';
import { invocationStore } from '../deployments/invocation-store.ts';
import { logStore } from '../deployments/log-store.ts';
import { lineWriter } from '../deployments/logs.ts';
import { publisher } from '../deployments/publisher.ts';
import { runHistoryStore } from '../deployments/run-history-store.ts';
import { runHistory } from '../deployments/run-history.ts';
import { runs as runLine } from '../deployments/runs.ts';
import { deploymentSecrets } from '../deployments/secrets.ts';
import { deploymentService } from '../deployments/service.ts';
import { deploymentStore } from '../deployments/store.ts';
import type { DeploymentStatus } from '../deployments/state.ts';
import type { Ending } from '../sessions/state.ts';
import type { SessionService } from '../sessions/service.ts';
import type { Egress } from './egress.ts';
import type { Ground } from './ground.ts';
import type { Organisation } from './organisation.ts';
import { openWorkshop } from './workshop.ts';

const mostAttempts = 3;
/** A build that is published right now is unpacked already. */
const alive = new Set<DeploymentStatus | undefined>(['queued', 'in_progress', 'running']);
const tidyMs = 30_000;
/** Since this service exists. */
const everyDay = 36_500;

export type Deployments = Awaited<ReturnType<typeof openDeployments>>;

/** Deployments, apps and invocations: builds, runs and their cleanup. */
export async function openDeployments(
  ground: Ground,
  deps: {
    nodes: Cluster;
    org: Organisation;
    egress: Egress;
    sessions: SessionService;
    isolation: Isolation;
    /** Ends a session, on whichever node it runs. */
    endSession: (id: string, reason: Ending) => Promise<void>;
    publicUrl: () => string;
    listensAt: () => string;
  },
) {
  const { config, store: database, secrets, events, opened, disk, log } = ground;
  const { org, sessions, isolation, publicUrl } = deps;
  const { db, nodeId, anchor } = database;
  const hub = runHub();
  const { logs, history, linesOf } = openHistory(ground);
  const deploymentRows = deploymentStore(db);
  const invocationRows = invocationStore(db);
  const sealed = deploymentSecrets({ secrets, publicUrl });

  async function endBrowsers(invocationId: string): Promise<void> {
    const tied = await sessions.tied(invocationId);
    await Promise.all(tied.map(({ id }) => deps.endSession(id, 'deleted')));
  }

  const room = { db, endBrowsers, disk, history, waitForDisk: sessions.disk.wait };
  const { keys, storage } = org;
  const { region } = config;
  const refusal = () => isolation.refusal;
  const deployments = deploymentService({ ...room, secrets: sealed, keys, storage, region, refusal });
  const invocations = invocationService({ ...room, hub, invocationCap: (id) => org.limits.invocationCap(id) });

  const { incoming, workers, build, tidyCaches, most, onDisk } = await openWorkshop(ground, {
    ...deps,
    async appOf(id) {
      const row = await deploymentRows.find(id);
      if (row?.status !== 'running') throw new WorkerError('Its deployment does not run any more.');
      const bytes = () => chunksOf(deploymentRows, id, 'build');
      return { projectId: row.project_id, entry: row.entry!, env: await sealed.workerEnv(id), bytes };
    },
  });
  const runs = runLine({
    store: invocationRows,
    workers,
    hub,
    nodeId,
    most,
    mostOfApp: config.appInvocations,
    short: () => disk.short(),
    offenders: sessions.disk.offenders,
    linesOf: (row) => linesOf(row.project_id, row.id, sealed.redactorOfRunning(row.deployment_id)),
    endBrowsers,
    onReplacedOver: () =>
      void deployments
        .stopReplaced()
        .catch((error: Error) => log.warn({ error: error.message }, 'deployments.replaced')),
    history,
    log,
  });
  const builds = buildLine({
    store: deploymentRows,
    hub,
    nodeId,
    build,
    uploads: incoming,
    storage: org.storage,
    offenders: sessions.disk.offenders,
    unpack: workers.prepare,
    linesOf: (row) => linesOf(row.project_id, row.id, sealed.redactorOf(row.id)),
    envOf: (row) => sealed.buildEnv(row.id),
    tokenOf: sealed.tokenOf,
    publish: publisher({ db, secrets: sealed, keys: org.keys, stopReplaced: deployments.stopReplaced }),
    fail: deployments.fail,
    log,
  });

  /** Fails the invocations of a lost node and lets another node run its builds. Its queue is served by every node. */
  async function nodeLost(lost: string, within = db): Promise<() => void> {
    const reason = lost === nodeId ? 'The service ended while it ran.' : 'The node that ran it was lost.';
    await invocationStore(within).failOn(lost, reason);
    await deploymentStore(within).releaseBuilds(lost, mostAttempts);
    return () => void Promise.all([deploymentRows.tell('queue'), deploymentRows.tell('build')]).catch(() => {});
  }

  /** What events may have missed: browsers of ended invocations, builds and workers of ended deployments, closed projects. */
  async function tidy(): Promise<void> {
    const tied = await sessions.tied();
    const over = new Set(await invocations.overAmong([...new Set(tied.map(({ invocationId }) => invocationId))]));
    for (const { id, invocationId } of tied) if (over.has(invocationId)) await deps.endSession(id, 'deleted');
    const here = workers.deployments();
    const statuses = await deploymentRows.statuses(here);
    for (const id of here) if (!alive.has(statuses.get(id))) await workers.forget(id);
    await tidyCaches((ids) => deploymentRows.closedAmong(ids));
    await deployments.endClosedProjects();
    await deployments.tidyEnded(1);
    await deployments.stopReplaced();
    await history.tidy();
  }
  const tidySafely = () => tidy().catch((error: Error) => log.warn({ error: error.message }, 'deployments.not_tidied'));

  await nodeLost(nodeId);
  await deployments.tidyEnded(everyDay);
  const closing = new AbortController();
  const timer = setInterval(() => void tidySafely(), tidyMs).unref();
  opened(async () => {
    clearInterval(timer);
    closing.abort();
    await builds.close();
    await runs.close();
    await workers.close();
    await history.close();
  });
  anchor.on('corral_runs', hub.hear);
  anchor.onGap(() => (hub.wakeAll(), void runs.pump(), void builds.look(), void runs.endSettled().catch(() => {})));
  hub.on('stop', (id) => {
    sealed.forget(id);
    void workers.forget(id).catch((error: Error) => log.warn({ error: error.message }, 'workers.left'));
  });
  events.on('project.closed', () => void tidySafely());

  const following = followRuns({
    logs,
    hub,
    deployment: deploymentRows.find,
    invocations: invocationRows,
    appsOf: deployments.appsOf,
  });
  return {
    deployments,
    invocations,
    following,
    browsers: { list: sessions.ofInvocation, end: endBrowsers },
    takeIn: async (projectId: string, content: AsyncIterable<Buffer>) =>
      incoming.take(content, org.storage.claim(projectId)),
    closing: closing.signal,
    nodeLost,
    onDisk,
    forgetLogs: (days: number) => logs.removeOlderThan(days),
    endSettled: () => runs.endSettled(),
    /** Once the service listens: workers need its address. */
    start() {
      void runs.pump();
      void builds.look();
    },
  };
}

/** What stays of builds and invocations: their logs, and a bound for all of it. */
function openHistory({ config, store: { db }, disk, log }: Ground) {
  const logs = logStore(db);
  const history = runHistory({
    store: runHistoryStore(db),
    projectBytes: config.invocationHistory * 2 ** 20,
    short: () => config.databaseUrl === '' && disk.short(),
    log,
  });

  async function linesOf(projectId: string, owner: string, redact: Promise<(text: string) => string>) {
    const count = async (owner: string, bytes: number) => {
      await logs.count(owner, bytes);
      history.note(projectId, bytes);
    };
    return lineWriter({ store: { ...logs, count }, log, short: () => disk.short() }, owner, await redact);
  }
  return { logs, history, linesOf };
}
