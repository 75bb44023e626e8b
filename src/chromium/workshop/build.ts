import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Value } from 'typebox/value';
import { Type, type Static } from 'typebox';
import type { DiskSpace } from '../../lib/disk-space.ts';
import { isLight } from '../../lib/json-weight.ts';
import type { Log } from '../../lib/log.ts';
import { Pieces } from '../../lib/pieces.ts';
import type { Destinations } from '../egress/destinations.ts';
import type { Limits } from '../sandbox/cgroup-limits.ts';
import type { DiskTaker } from '../sandbox/disk-use.ts';
import type { Isolation } from '../sandbox/isolation.ts';
import { TOOLS } from '../sandbox/mounts.ts';
import { removeTree } from '../sandbox/outside.ts';
import type { PackageCaches } from './caches.ts';
import { only } from './only.ts';
import { proxied } from './proxied.ts';
import { openCell } from './cell.ts';
import type { Workbench } from './workbench.ts';

export interface Built {
  readonly entry: string;
  readonly apps: { name: string; actions: { name: string }[] }[];
}

/** Why a build failed: a sentence that its user can act on. */
export class BuildError extends Error {
  override readonly name = 'BuildError';
}

export interface BuildJob {
  readonly id: string;
  /** Builds of one project share a cache of packages, which no other project's build sees. */
  readonly projectId: string;
  readonly entrypoint: string;
  /** The zip, on the service's disk. */
  readonly zip: string | null;
  readonly git: { url: string; ref: string; path: string | null; token: string | null } | null;
  readonly env: Record<string, string>;
  readonly onLine: (line: string) => void;
  /** Called with the pieces of the archive. Its error ends the build. */
  readonly take: (piece: Buffer) => Promise<void>;
  readonly signal: AbortSignal;
}

interface BuildOptions {
  readonly dir: string;
  readonly isolation: Isolation;
  readonly workbench: Workbench;
  readonly caches: PackageCaches;
  readonly limits: Limits & { diskBytes: number };
  readonly disk: DiskSpace;
  readonly cells: Set<DiskTaker>;
  readonly relieve: () => void;
  readonly registry: { url: string; by: Destinations };
  readonly allow: Destinations;
  readonly seconds: number;
  readonly log: Log;
}

const MOST_HEADER = 2 ** 20;
const MOST_APPS = 100;
/** Of all apps together. */
const MOST_ACTIONS = 1000;
/** Of one app, as JSON: a list of apps shows them. */
const MOST_ACTION_BYTES = 64 * 1024;
/** More than so many apps and actions have. */
const MOST_WEIGHT = 10_000;
/** Its words are searched for every secret; the program cuts them to this. */
const LONGEST_ERROR = 4000;
/** With the flag `u`, only unpaired surrogates match. */
const LABEL = /^[^\u0000-\u001f\u007f\ud800-\udfff]{1,255}$/u; // oxlint-disable-line no-control-regex
const PATH = /^[^\0\ud800-\udfff]+$/u; // oxlint-disable-line no-control-regex

const Report = Type.Union([
  Type.Object({ error: Type.String({ maxLength: LONGEST_ERROR }) }),
  Type.Object({ fetched: Type.Literal(true) }),
  Type.Object({
    entry: Type.String({ minLength: 1, maxLength: 4096 }),
    apps: Type.Array(
      Type.Object({
        name: Type.String(),
        actions: Type.Array(Type.Object({ name: Type.String() })),
      }),
      { minItems: 1 },
    ),
  }),
]);

/** A program of a build, in a cell. */
interface Step {
  readonly at: string;
  /** On the clock of `performance`. */
  readonly until: number;
  readonly program: string;
  readonly allow: Destinations;
  readonly what: object;
  readonly take: BuildJob['take'];
}

/** Builds deployments, each in cells of its own. */
export function builder({
  dir,
  isolation,
  workbench,
  caches,
  limits,
  disk,
  cells,
  relieve,
  registry,
  allow,
  seconds,
  log,
}: BuildOptions) {
  return async function build(job: BuildJob): Promise<Built> {
    await workbench.ready();
    const at = join(dir, 'cells', `build-${job.id}`);
    await mkdir(join(at, 'home'), { recursive: true, mode: 0o700 });
    try {
      if (job.zip !== null) await copyFile(job.zip, join(at, 'home/source.zip'));
      await caches.take(job.projectId, at);
      const built = await inCells(job, at);
      await caches.keep(job.projectId, at);
      return built;
    } finally {
      await removeTree(at, isolation).catch((error: Error) =>
        log.error({ build: job.id, error: error.message }, 'build.directory_left'),
      );
    }
  };

  /** The source of a repository is fetched in a cell of its own: no process of it is left, and its token with none, when a package's code runs. */
  async function inCells(job: BuildJob, at: string): Promise<Built> {
    const until = performance.now() + seconds * 1000;
    const { entrypoint, git, env } = job;
    if (git) {
      const { url, ref, token } = git;
      const what = { url, ref, token };
      const allowed = only([{ url, by: allow }]);
      const report = await inCell(job, { at, until, program: 'fetch', allow: allowed, what, take: refusePieces });
      if (!('fetched' in report)) throw new BuildError('The source cannot be fetched.');
    }
    const fetched = git && { path: git.path };
    const what = { entrypoint, fetched, env, npm: workbench.npm(TOOLS), registry: registry.url };
    const report = await inCell(job, { at, until, program: 'build', allow: only([registry]), what, take: job.take });
    if (!('apps' in report)) throw new BuildError('The build reported an invalid result.');
    refuseNames(report);
    return report;
  }

  async function inCell(
    job: BuildJob,
    { at, until, program, allow, what, take }: Step,
  ): Promise<Exclude<Static<typeof Report>, { error: string }>> {
    const cell = await openCell({
      projectId: job.projectId,
      dir: at,
      command: ['env', ...proxied([]), ...workbench.trusting(TOOLS), ...workbench.program(TOOLS, program)],
      isolation,
      limits,
      disk,
      cells,
      relieve,
      tools: workbench.dir,
      allow,
      onLine: job.onLine,
      log,
    });
    const late = setTimeout(
      () => void cell.stop(`It took longer than the ${seconds} s that a build may take.`),
      Math.max(0, until - performance.now()),
    );
    const givenUp = () => void cell.stop('It was cancelled.');
    job.signal.addEventListener('abort', givenUp, { once: true });
    if (job.signal.aborted) givenUp();
    try {
      cell.toCommand.write(`${JSON.stringify(what)}\n`);
      const report = await readReport(cell.fromCommand, take);
      cell.toCommand.end(); // the program ends when all of its answer was read
      const { code } = await cell.exited;
      job.signal.throwIfAborted();
      const complaint = cell.complaint();
      if (complaint !== undefined) throw new BuildError(complaint);
      if (report && 'error' in report) throw new BuildError(report.error);
      if (!report || code !== 0) throw new BuildError(`The build ended with code ${code} before it was complete.`);
      return report;
    } finally {
      clearTimeout(late);
      job.signal.removeEventListener('abort', givenUp);
      await cell.stop();
    }
  }
}

async function refusePieces(): Promise<void> {
  throw new BuildError('The source cannot be fetched: git reported an invalid result.');
}

/** What an app registers is stored, listed and sent in requests. The database takes no NUL and no half of a character. */
export function refuseNames({ entry, apps }: Built): void {
  if (apps.length > MOST_APPS) throw new BuildError(`The entry point registers more than ${MOST_APPS} apps.`);
  if (apps.reduce((sum, { actions }) => sum + actions.length, 0) > MOST_ACTIONS)
    throw new BuildError(`The entry point registers more than ${MOST_ACTIONS} actions.`);
  for (const { name, actions } of apps) {
    for (const label of [name, ...actions.map((action) => action.name)])
      if (!LABEL.test(label))
        throw new BuildError(
          `The entry point registers ${JSON.stringify(label.slice(0, 80))}. Names of apps and actions have 1 to 255 characters and no control characters.`,
        );
    if (Buffer.byteLength(JSON.stringify(actions)) > MOST_ACTION_BYTES)
      throw new BuildError(
        `The names of the actions of app '${name}' have more than ${MOST_ACTION_BYTES / 1024} KiB together. Choose shorter names.`,
      );
  }
  if (!PATH.test(entry)) throw new BuildError('The entry point has a name that no file should have.');
}

/** The first line, and then the archive, to the end of the pipe. The program is not trusted: it runs beside a stranger's code. */
export async function readReport(from: AsyncIterable<Buffer>, take: (piece: Buffer) => Promise<void>) {
  let head: Pieces | undefined = new Pieces();
  let report: unknown;
  for await (const piece of untilBroken(from)) {
    if (head === undefined) {
      await take(piece);
      continue;
    }
    const end = piece.indexOf(10);
    head.add(end === -1 ? piece : piece.subarray(0, end));
    if (head.length > MOST_HEADER) throw new BuildError('The build reported an invalid result.');
    if (end === -1) continue;
    const text = head.take();
    if (!isLight(text, MOST_WEIGHT))
      throw new BuildError(
        `The build reported an invalid result, or more than ${MOST_APPS} apps and ${MOST_ACTIONS} actions.`,
      );
    report = parse(text.toString());
    head = undefined;
    if (end + 1 < piece.length) await take(piece.subarray(end + 1));
  }
  return Value.Check(Report, report) ? report : undefined;
}

/** A pipe breaks off when its program is killed. The reason is reported elsewhere. */
async function* untilBroken(from: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* from;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
