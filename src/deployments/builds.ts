import { setTimeout as sleep } from 'node:timers/promises';
import { BuildError, type Built, type BuildJob } from '../chromium/workshop/build.ts';
import { WorkerError } from '../chromium/workshop/worker.ts';
import { errors, ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { mergedRuns } from '../lib/merged-runs.ts';
import { Pieces } from '../lib/pieces.ts';
import { onBehalfOf } from '../lib/scope.ts';
import type { ProjectStorage } from '../lib/storage.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { Hub } from './hub.ts';
import type { LineWriter } from './logs.ts';
import type { DeploymentRow, DeploymentStore, FileKind } from './store.ts';

const lookMs = 5000;
/** The most a build may have, compressed. */
const mostBuildBytes = 512 * 2 ** 20;
const chunkBytes = 2 ** 20;
const mostWords = 4000;
const broken = 'The service failed to run this build. Deploy it again.';

export interface BuildsDeps {
  store: DeploymentStore;
  hub: Pick<Hub, 'on'>;
  nodeId: string;
  build: (job: BuildJob) => Promise<Built>;
  uploads: Uploads;
  storage: ProjectStorage;
  /** Projects that wait because they have filled this node's disk. Their deployments stay in the queue, or are built by another node. */
  offenders: () => string[];
  linesOf: (row: DeploymentRow) => Promise<LineWriter>;
  /** The deployment's own variables, and those that every app gets. */
  envOf: (row: DeploymentRow) => Promise<Record<string, string>>;
  tokenOf: (id: string) => Promise<string | undefined>;
  /** Unpacks a stored build on this node. Resolves with the bytes that it takes there. */
  unpack: (
    id: string,
    how: { bytes: () => AsyncIterable<Buffer>; cover: (bytes: number) => Promise<void>; signal: AbortSignal },
  ) => Promise<number>;
  /** Makes a built deployment run. */
  publish: (row: DeploymentRow, built: Built, lines: LineWriter) => Promise<void>;
  fail: (id: string, reason: string) => Promise<void>;
  log: Log;
}

/** Builds the deployments that this node takes from the queue, one at a time: a build uses all processors that it gets. */
export function builds(deps: BuildsDeps) {
  const { store, hub, nodeId, log } = deps;
  let current: { id: string; giveUp: AbortController; over: Promise<void> } | undefined;
  let closed = false;

  /** Begins the next build if none is under way. Never rejects. */
  const look = mergedRuns(async () => {
    if (closed || current) return;
    try {
      const row = await store.claim(nodeId, deps.offenders());
      if (row) begin(row);
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'deployments.not_claimed');
    }
  });

  function begin(row: DeploymentRow): void {
    const giveUp = new AbortController();
    const broke = new AbortController();
    const owner = { kind: 'build', id: row.id, end: (error: Error) => broke.abort(error) } as const;
    const over = onBehalfOf(owner, () => buildOne(row, giveUp.signal, broke.signal))
      .catch((error: Error) => log.error({ deployment: row.id, error: error.message }, 'deployment.not_settled'))
      .finally(() => {
        current = undefined;
        void look();
      });
    current = { id: row.id, giveUp, over };
  }

  /** `broke` aborts when the service has failed in the work of this build. The build fails then. */
  async function buildOne(row: DeploymentRow, signal: AbortSignal, broke: AbortSignal): Promise<void> {
    const lines = await deps.linesOf(row).catch((error: Error) => {
      log.error({ deployment: row.id, error: error.message }, 'deployment.no_log');
      return undefined;
    });
    if (!lines) return signal.aborted ? undefined : fail(row.id, broken, signal);
    const claim = deps.storage.claim(row.project_id);
    let zip: Awaited<ReturnType<Uploads['take']>> | undefined;
    try {
      await store.removeFiles(row.id, 'build'); // of a build that was interrupted
      const git = row.source_type === 'github' ? await gitOf(row) : null;
      if (!git) zip = await deps.uploads.take(chunksOf(store, row.id, 'source'));
      const keep = keeper(row.id, (bytes) => claim.cover(bytes));
      const built = await deps.build({
        id: row.id,
        projectId: row.project_id,
        entrypoint: row.entrypoint,
        zip: zip?.path ?? null,
        git,
        env: await deps.envOf(row),
        onLine: (line) => lines.add(line),
        take: keep.take,
        signal: AbortSignal.any([signal, broke]),
      });
      const packed = await keep.end();
      // It counts for its project by what it unpacks to, which may be a thousand times more.
      const unpacked = await deps.unpack(row.id, {
        bytes: () => chunksOf(store, row.id, 'build'),
        cover: claim.cover,
        signal: AbortSignal.any([signal, broke]),
      });
      await store.setBuilt(row.id, Math.max(packed, unpacked));
      broke.throwIfAborted();
      await deps.publish(row, built, lines);
    } catch (error) {
      await store.removeFiles(row.id, 'build').catch(() => {}); // it may have been stopped, and tidied up, while pieces were stored
      if (signal.aborted) return; // it was stopped, or the service closes: then another start builds it
      const reason = broke.aborted ? undefined : reasonOf(error);
      if (reason === undefined) log.error({ deployment: row.id, error }, 'deployment.build_broke');
      await lines.flush();
      await fail(row.id, withLines(lines.hide(reason ?? broken), lines.tail(10)), signal);
    } finally {
      await lines.close();
      const left = (error: Error) => log.warn({ deployment: row.id, error: error.message }, 'deployment.upload_left');
      await zip?.remove().catch(left);
      await claim.release();
    }
  }

  /** The database may be away for a moment; the failure is written when it is back. */
  async function fail(id: string, reason: string, signal: AbortSignal): Promise<void> {
    for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 10_000)) {
      try {
        return await deps.fail(id, reason);
      } catch (error) {
        log.error({ deployment: id, error: (error as Error).message }, 'deployment.not_settled');
        if (closed || signal.aborted) return; // the next start builds it again, or it was stopped
        await sleep(pauseMs, undefined, { signal }).catch(() => {});
      }
    }
  }

  async function gitOf(row: DeploymentRow) {
    const token = (await deps.tokenOf(row.id)) ?? null;
    return { url: row.source_url!, ref: row.source_ref!, path: row.source_path, token };
  }

  /** Stores the archive in pieces of one size. */
  function keeper(id: string, cover: (bytes: number) => Promise<void>) {
    let [position, bytes] = [0, 0];
    const pieces = new Pieces();
    const flush = async () => {
      const piece = pieces.take();
      await cover(bytes);
      await store.addChunk(id, 'build', position++, piece);
    };
    return {
      async take(piece: Buffer) {
        bytes += piece.length;
        if (bytes > mostBuildBytes)
          throw new BuildError(
            `The built app has more than ${mostBuildBytes / 2 ** 20} MiB. Leave packages out that it does not need.`,
          );
        pieces.add(piece);
        if (pieces.length >= chunkBytes) await flush();
      },
      async end() {
        if (pieces.length > 0) await flush();
        return bytes;
      },
    };
  }

  hub.on('build', () => void look());
  hub.on('stop', (id) => void (current?.id === id && current.giveUp.abort()));
  const timer = setInterval(() => void look(), lookMs).unref();

  return {
    look,
    async close(): Promise<void> {
      closed = true;
      clearInterval(timer);
      await look(); // a claim that is under way may still begin a build
      if (!current) return;
      const { id, giveUp, over } = current;
      giveUp.abort();
      await over;
      await store.apply(id, 'build_lost').then(
        () => store.tell('build'),
        () => {}, // the next start does it
      );
    },
  };
}

/** The pieces of a stored file, one query each. */
export async function* chunksOf(
  store: Pick<DeploymentStore, 'chunk'>,
  id: string,
  kind: FileKind,
): AsyncGenerator<Buffer> {
  for (let position = 0; ; position++) {
    const piece = await store.chunk(id, kind, position);
    if (!piece && position === 0) throw errors.deployment_not_found({ id });
    if (!piece) return;
    yield piece;
  }
}

function reasonOf(error: unknown): string | undefined {
  const isForClients = error instanceof BuildError || error instanceof WorkerError || error instanceof ServiceError;
  return isForClients ? error.message : undefined;
}

function withLines(reason: string, lines: string[]): string {
  const words = reason.slice(0, mostWords);
  const log = lines.filter((line) => !words.includes(line));
  return log.length === 0 ? words : `${words}\nThe end of the log:\n${log.join('\n')}`;
}
