import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { sweep } from '../chromium/browser/launch.ts';
import { destinations, parseAllowList } from '../chromium/egress/destinations.ts';
import type { DiskTaker } from '../chromium/sandbox/disk-use.ts';
import type { Isolation } from '../chromium/sandbox/isolation.ts';
import { builder } from '../chromium/workshop/build.ts';
import { packageCaches } from '../chromium/workshop/caches.ts';
import { withInodes } from '../chromium/workshop/disk-watch.ts';
import { openWorkbench } from '../chromium/workshop/workbench.ts';
import { workerStarter } from '../chromium/workshop/worker.ts';
import type { Cluster } from '../cluster/service.ts';
import { workerPool, type DeployedApp } from '../deployments/workers.ts';
import type { SessionService } from '../sessions/service.ts';
import { uploads } from '../uploads/uploads.ts';
import { serviceAddress, type Egress } from './egress.ts';
import type { Ground } from './ground.ts';
import type { Organisation } from './organisation.ts';
import type { OnDisk } from './sessions.ts';

const invocationsPerProcessor = 4;
const workerPids = 512;
/** npm needs this much for a large tree of packages, also where an app may have less. */
const leastForBuilds = 1024 * 2 ** 20;

/** What builds and runs apps on this machine: the tools, the sandboxes and their bounds. */
export async function openWorkshop(
  { config, disk, sessionDisk, log }: Ground,
  deps: {
    egress: Egress;
    isolation: Isolation;
    nodes: Cluster;
    publicUrl: () => string;
    listensAt: () => string;
    appOf: (deploymentId: string) => Promise<DeployedApp>;
    org: Organisation;
    sessions: Pick<SessionService, 'disk'>;
  },
) {
  const { egress, isolation, nodes, publicUrl } = deps;
  const { storage } = deps.org;
  const dir = join(config.dataDir, 'workshop');
  const incoming = uploads(join(dir, 'uploads'), disk);
  const workbench = openWorkbench(join(dir, 'bench'), config.extraCertificates);
  const diskBytes = sessionDisk * 2 ** 20;
  const memoryBytes = config.appMemory * 2 ** 20;
  const limits = { memoryBytes, pids: workerPids, cpus: config.sessionCpus, fileBytes: diskBytes, diskBytes };
  const cells = new Set<DiskTaker>();
  const { relieve } = deps.sessions.disk;
  const common = { dir, isolation, workbench, disk, cells, relieve, allow: egress.allow, log };
  const most = config.maxInvocations ?? availableParallelism() * invocationsPerProcessor;

  /** What an app has to reach: this node first, then the others, and the hosts of sessions. */
  const urls = () => [
    publicUrl(),
    ...nodes
      .members()
      .flatMap(({ id }) => nodes.publicUrlOf(id) ?? [])
      .sort(),
    ...(config.sessionHosts === '' ? [] : [config.sessionHosts]),
  ];
  const workers = workerPool({
    dir,
    isolation,
    start: workerStarter({ ...common, limits, urls, here: deps.listensAt }),
    appOf: deps.appOf,
    memoryBytes,
    diskBytes,
    short: () => disk.short(),
    mostIdle: most,
    log,
  });
  const { host, port } = serviceAddress(new URL(config.npmRegistry));
  const caches = packageCaches({
    dir: join(dir, 'caches'),
    isolation,
    most: withInodes(diskBytes),
    count: (projectId, bytes) => storage.countMadeAgain('cache', projectId, bytes),
    log,
  });
  const build = builder({
    ...common,
    caches,
    limits: { ...limits, memoryBytes: Math.max(memoryBytes, leastForBuilds) },
    // The operator has named the registry, so it may be on a private address.
    registry: { url: `${config.npmRegistry}/`, by: destinations({ allow: parseAllowList(`${host}:${port}`) }) },
    seconds: config.buildSeconds,
  });
  await incoming.sweep();
  await sweep(join(dir, 'cells'));
  await workers.sweep();
  void caches.weighAll();
  const onDisk: OnDisk = {
    takers: cells,
    makers: [() => caches.makeRoom(() => disk.short()), () => workers.makeRoom()],
  };

  /** Removes the caches of closed projects, and of projects that need the room for something else. */
  async function tidyCaches(closedAmong: (ids: string[]) => Promise<{ id: string }[]>): Promise<void> {
    for (const { id } of await closedAmong(await caches.projects())) await caches.remove(id);
    for (const id of await caches.projects()) if (await storage.overfull(id)) await caches.remove(id);
  }
  return { incoming, workers, build, tidyCaches, most, onDisk };
}
