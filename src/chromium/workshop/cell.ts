import net from 'node:net';
import type { Readable, Writable } from 'node:stream';
import type { DiskSpace } from '../../lib/disk-space.ts';
import type { Log } from '../../lib/log.ts';
import { undoOnFailure } from '../../lib/undo.ts';
import { cgroupName, remember } from '../browser/launch.ts';
import type { Destinations } from '../egress/destinations.ts';
import { startGateway } from '../egress/gateway.ts';
import { splice } from '../egress/splice.ts';
import type { Limits } from '../sandbox/cgroup-limits.ts';
import { diskUse, type DiskTaker } from '../sandbox/disk-use.ts';
import { addHosts, addNameServer, furnish, makeDirectories } from '../sandbox/furnish.ts';
import type { Isolation } from '../sandbox/isolation.ts';
import { lowered } from '../sandbox/lowered.ts';
import { watchMemory } from '../sandbox/memory-watch.ts';
import { removeTree } from '../sandbox/outside.ts';
import { running, type Exit } from '../sandbox/sandboxed-process.ts';
import { sandboxed } from '../sandbox/sandbox.ts';
import type { Way } from './ways.ts';
import { watchDisk, withInodes } from './disk-watch.ts';
import { cutLines } from './lines.ts';
import { answerNames, NAMES } from './names.ts';

/**
 * A cell: a sandbox for code of a deployment. It is the sandbox of a session's browser, with the same limits. Its way to the network is a
 * gateway, and listeners for this service.
 */
interface Cell {
  readonly toCommand: Writable;
  readonly fromCommand: Readable;
  /** Its first process has exited; the others are being ended. */
  readonly ended: Promise<Exit>;
  /** Every process has exited and all lines were passed on. The directory remains. Never rejects. */
  readonly exited: Promise<Exit>;
  /** What the service did to it, such as ending it for lack of memory: a sentence. */
  complaint(): string | undefined;
  memory(): Promise<number>;
  stop(why?: string): Promise<void>;
  /** Stops it and removes its directory. */
  remove(): Promise<void>;
}

interface CellOptions {
  /** The owner of the code that runs in it. */
  readonly projectId: string;
  /** Its directory. Files already in `home` are given to its user. */
  readonly dir: string;
  readonly command: readonly string[];
  readonly isolation: Isolation;
  readonly limits: Limits & { diskBytes: number };
  readonly disk: DiskSpace;
  readonly tools: string;
  readonly app?: string;
  /** All cells that are open. */
  readonly cells: Set<DiskTaker>;
  /** Makes room on a disk that is short. */
  readonly relieve: () => void;
  readonly allow: Destinations;
  readonly ways?: readonly Way[];
  readonly onLine: (line: string) => void;
  readonly log: Log;
}

const HALF_OPEN_MS = 60_000;
/** Each takes three descriptors of the service. */
export const MOST_CONNECTIONS = 256;
const MIB = 2 ** 20;

/** Starts a command in a cell. If it throws, nothing is left. */
export async function openCell(options: CellOptions): Promise<Cell> {
  const { dir, isolation, limits, log } = options;
  if (!isolation.sandboxed) throw new Error(isolation.refusal ?? 'This machine gives no sandbox.');
  return undoOnFailure(async (undo) => {
    const owner = isolation.owners.claim(dir);
    undo(() => owner.release());
    undo(() => removeTree(dir, isolation));
    await makeDirectories(dir);
    await furnish(dir, owner, undefined);
    const ways = options.ways ?? [];
    const named = ways.flatMap(({ name, listener }) =>
      name === undefined ? [] : [{ name, address: listener.address }],
    );
    const endings = named
      .filter(({ name }) => name.startsWith('*'))
      .map(({ name, address }) => ({ suffix: name.slice(1), address }));
    addHosts(
      dir,
      named.filter(({ name }) => !name.startsWith('*')),
    );
    if (endings.length > 0) addNameServer(dir, NAMES.address);
    const place = sandboxed(dir, owner);
    undo(() => place.close());
    const cgroup = isolation.cgroups?.create(cgroupName(dir), limits);
    undo(() => cgroup?.remove());
    const lower = lowered(isolation.cgroups?.controllers ?? [], limits);
    const { tools, app } = options;
    const listeners = [...ways.map(({ listener }) => listener), ...(endings.length > 0 ? [NAMES] : [])];
    const process = place.start(options.command, { tools, app, listeners, lower });
    let complaint: string | undefined;
    let starved = false;
    const closers: (() => unknown)[] = [];
    const run = running(process, cgroup, async () => {
      for (const close of closers) await close();
      place.close();
      owner.release(); // free once the directory is removed
    });
    undo(() => run.stop());
    cutLines(process.child.stderr, options.onLine);
    if (run.pid !== undefined) {
      remember(dir, run.pid);
      await cgroup?.add(run.pid);
    }
    const stop = async (why?: string) => {
      complaint ??= why;
      await run.stop();
    };
    if (limits.memoryBytes !== undefined) {
      const mostBytes = limits.memoryBytes;
      closers.push(
        watchMemory({
          leaders: () => run.leaders(),
          mostBytes,
          outOfMemory: () => cgroup?.outOfMemory(),
          memory: () => cgroup?.memory(),
          pids: () => cgroup?.pids() ?? [],
          onKill: () => void (starved = true),
        }),
      );
    }
    // Read before the group is removed. A process may end for another reason after one of its children ran out of memory.
    void run.ended.then(({ code, signal }) => {
      if (code !== 137 && signal !== 'SIGKILL') return;
      if (!starved && !((cgroup?.outOfMemory() ?? 0) > 0)) return;
      complaint ??= `It needed more than the ${Math.round((limits.memoryBytes ?? 0) / MIB)} MiB of memory that it may take.`;
    });
    const most = withInodes(limits.diskBytes);
    const measure = async () => diskUse(dir, await run.pids(), most);
    closers.push(watchDisk({ space: options.disk, most, measure, stop, relieve: options.relieve, log }));
    const taker: DiskTaker = {
      projectId: options.projectId,
      use: measure,
      async end(detail) {
        await stop(`The disk of the node was full. ${detail} Run it again later.`);
        await removeTree(dir, isolation);
      },
    };
    options.cells.add(taker);
    closers.push(() => options.cells.delete(taker));
    process.go();
    const [egress, opened] = await Promise.all([process.egress, process.listeners]);
    const gateway = startGateway(egress(), { allow: options.allow, log });
    closers.push(() => gateway.close());
    opened.forEach((open, index) => {
      const way = ways[index];
      closers.push(way ? openListener(open(), way) : answerNames(open(), endings));
    });
    const { toCommand, fromCommand } = process;
    return {
      toCommand,
      fromCommand,
      ended: run.ended,
      exited: run.exited,
      complaint: () => complaint,
      memory: () => run.memory(),
      stop,
      async remove() {
        await stop();
        await removeTree(dir, isolation).catch((error: Error) =>
          log.error({ dir, error: error.message }, 'workshop.directory_left'),
        );
      },
    };
  });
}

/** Every connection to the listener goes to the service. */
export function openListener(server: net.Server, { target }: Way): () => void {
  const sockets = new Set<net.Socket>();
  server.maxConnections = MOST_CONNECTIONS;
  server.on('connection', (client) => {
    const upstream = net.connect({ host: target.host, port: target.port, noDelay: true });
    client.setNoDelay(true);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => sockets.delete(socket));
    }
    splice(client, upstream, HALF_OPEN_MS);
  });
  server.on('error', () => {});
  return () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
}
