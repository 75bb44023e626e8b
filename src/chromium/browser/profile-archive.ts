import { spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Readable, Transform, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { andNoOther } from '../sandbox/descriptors.ts';
import type { Owner } from '../sandbox/owners.ts';
import { makeHome } from '../sandbox/furnish.ts';
import { move, removeTree } from '../sandbox/outside.ts';
import { onHome } from '../sandbox/entry.ts';
import { withFilter } from '../sandbox/seccomp.ts';

/**
 * A profile as one file: the content of a session's `home/user-data` as tar.zst. tar runs in a separate sandbox (`onHome`), since
 * the session's client controls the contents of the home. Only files and directories are packed, so nothing else can be unpacked.
 */

/** Whether there are sandboxes, and the home's owner. */
interface Confinement {
  readonly sandboxed: boolean;
  readonly owner: Owner;
}

/** Files that Chromium recreates. A profile without these is a tenth of the size and works the same. */
const BALLAST = [
  'Cache',
  'Code Cache',
  'GPUCache',
  'GPUPersistentCache',
  'DawnCache',
  'DawnGraphiteCache',
  'DawnWebGPUCache',
  'GrShaderCache',
  'GraphiteDawnCache',
  'ShaderCache',
  'Shared Dictionary',
  'blob_storage',
  'BudgetDatabase',
  'BrowserMetrics*',
  'Crash Reports',
  'Crashpad',
  'component_crx_cache',
  'extensions_crx_cache',
  'optimization_guide_*',
  'OptimizationGuide*',
  'segmentation_platform',
  'Segmentation Platform',
  'Safe Browsing*',
  'OnDeviceHeadSuggestModel',
  'OriginTrials',
  'PKIMetadata',
  'Subresource Filter',
  'WidevineCdm',
  'ZxcvbnData',
  'hyphen-data',
  'Singleton*',
  'DevToolsActivePort',
  '*.tmp',
];

/** Where Chromium stores the open tabs between runs. */
const TABS = ['Default/Sessions', 'Default/Sessions_Encrypted'];

/** Limit of the unpacked size. A larger directory holds other files than a profile. */
const MOST_BYTES = 4 * 2 ** 30;

export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

const PACK = `
[ ! -L user-data ] && cd user-data || exit 1
find . -mindepth 1 \\( ${BALLAST.map((name) => `-name '${name}'`).join(' -o ')} \\) -prune -o \\( -type f -o -type d \\) -print0 |
  exec tar --create --file=- --null --no-recursion --files-from=- --hard-dereference --owner=0 --group=0 --numeric-owner
`;
const UNPACK = `mkdir -m 700 user-data && cd user-data && exec tar --extract --file=- --no-same-owner "$@"`;
const FORGET = `cd user-data && exec rm -rf -- "$@"`;

/** The bytes of the archive, as fast as the caller reads them. Throws when it is incomplete; the bytes before that are then useless. */
export async function* packProfile(
  dir: string,
  isolation: Confinement,
  signal: AbortSignal,
  mostBytes = MOST_BYTES,
): AsyncGenerator<Buffer> {
  const tar = inHome(dir, isolation, ['sh', '-c', PACK], signal);
  const zstd = compressor(['-3', '-T0'], signal);
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes <= mostBytes) return done(null, chunk);
      done(new ArchiveError(`The profile has more than ${mostBytes / 2 ** 20} MiB.`));
    },
  });
  // zstd's input is ended only after tar has succeeded.
  const whole = pipeline(tar.output, counted, zstd.input, { end: false })
    .then(() => tar.ended)
    .then(() => void zstd.input.end());
  yield* outputOf(zstd, whole, tar);
}

/**
 * Creates a session's `home/user-data` from an archive, before a browser runs there. When it throws, the directory is
 * incomplete, and the caller removes it.
 */
export async function unpackProfile(
  { dir, isolation, bytes, tabs }: { dir: string; isolation: Confinement; bytes: AsyncIterable<Buffer>; tabs: boolean },
  signal: AbortSignal,
): Promise<void> {
  await makeHome(dir, isolation.owner);
  const leaveOut = tabs ? [] : TABS.map((name) => `--exclude=./${name}`);
  const tar = inHome(dir, isolation, ['sh', '-c', UNPACK, 'sh', ...leaveOut], signal);
  const zstd = compressor(['-d'], signal);
  // A program that ends early reports its own error, so its broken pipe is ignored.
  const fed = Promise.all([
    pipeline(Readable.from(bytes), zstd.input).catch(unlessBroken),
    pipeline(zstd.output, tar.input).catch(unlessBroken),
  ]);
  try {
    await fed;
    await Promise.all([zstd.ended, tar.ended]);
  } finally {
    tar.kill();
    zstd.kill();
    await Promise.allSettled([zstd.ended, tar.ended]);
  }
}

/**
 * Unpacks a profile (or none) beside the home of a running browser, where the session does not see it. `swap` puts it in place once
 * that browser has exited.
 */
export async function unpackBeside(
  {
    dir,
    isolation,
    bytes,
    tabs,
  }: { dir: string; isolation: Confinement; bytes: AsyncIterable<Buffer> | undefined; tabs: boolean },
  signal: AbortSignal,
): Promise<{ swap(): Promise<void>; discard(): Promise<void> }> {
  const beside = join(dir, 'next');
  const discard = () => removeTree(beside, isolation);
  await discard();
  try {
    await makeHome(beside, isolation.owner);
    if (bytes) await unpackProfile({ dir: beside, isolation, bytes, tabs }, signal);
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    async swap() {
      const place = { dir, within: ['home'], name: 'user-data' };
      await move(place, { dir: beside, within: [], name: 'old' });
      if (bytes) await move({ dir: beside, within: ['home'], name: 'user-data' }, place);
      await discard();
    },
    discard,
  };
}

/** Tabs that were open when the browser crashed are not reopened: one of them may be the cause. */
export async function forgetTabs(dir: string, isolation: Confinement, signal: AbortSignal): Promise<void> {
  await inHome(dir, isolation, ['sh', '-c', FORGET, 'sh', ...TABS], signal).ended;
}

/** The tar inside a tar.zst. */
export async function* decompress(bytes: AsyncIterable<Buffer>, signal: AbortSignal): AsyncGenerator<Buffer> {
  const zstd = compressor(['-d'], signal);
  yield* outputOf(zstd, pipeline(Readable.from(bytes), zstd.input));
}

/** The output of a program. `fed` resolves when it has received all of its input: otherwise its output is incomplete. */
async function* outputOf(program: Program, fed: Promise<void>, ...others: Program[]): AsyncGenerator<Buffer> {
  fed.catch(() => program.kill());
  try {
    for await (const chunk of program.output) yield chunk as Buffer;
    await fed;
    await program.ended;
  } finally {
    for (const one of [program, ...others]) one.kill();
  }
}

interface Program {
  readonly input: Writable;
  readonly output: Readable;
  /** Rejects with the program's stderr. */
  readonly ended: Promise<void>;
  /** Kills the whole process group, at any stage of its start. */
  kill(): void;
}

const PROGRAMS = '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin';

export function inHome(
  dir: string,
  { owner, sandboxed }: Confinement,
  command: string[],
  signal: AbortSignal,
): Program {
  if (sandboxed) {
    return withFilter('helper', 3, (filter, words) => {
      const { file, args } = onHome(dir, owner, command, words);
      return program('tar', file, args, signal, { filter });
    });
  }
  const [file, ...args] = command;
  const user = process.getuid?.() === 0 ? { uid: owner.uid, gid: owner.gid } : {};
  return program('tar', file!, args, signal, { options: { cwd: join(dir, 'home'), ...user } });
}

const compressor = (args: string[], signal: AbortSignal) => program('zstd', 'zstd', ['-q', '-c', ...args], signal);

function program(
  name: string,
  file: string,
  args: string[],
  signal: AbortSignal,
  { options = {}, filter = [] }: { options?: SpawnOptions; filter?: readonly number[] } = {},
): Program {
  // A separate process group: a sandbox that is killed during its start has children that do not yet die with it.
  const stdio = andNoOther('pipe', 'pipe', 'pipe', ...filter);
  const child = spawn(file, args, { stdio, env: { PATH: PROGRAMS }, cwd: '/', detached: true, ...options });
  let over = false;
  child.once('close', () => (over = true));
  const kill = () => {
    if (over || child.pid === undefined) return; // another process may have the pid by now
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // already removed
    }
  };
  let complaint = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (complaint = (complaint + text).slice(-2000)));
  for (const stream of child.stdio) stream?.on('error', () => {});
  if (signal.aborted) kill();
  signal.addEventListener('abort', kill, { once: true });
  const ended = (async () => {
    try {
      const [code, by] = (await once(child, 'close')) as [number | null, string | null];
      if (signal.aborted) throw signal.reason;
      if (code !== 0)
        throw new ArchiveError(`${name} ended with ${by ?? `code ${code}`}${complaint && `: ${complaint.trim()}`}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw new ArchiveError(`There is no ${name} on this machine. Install the package ${name}.`, { cause: error });
    } finally {
      signal.removeEventListener('abort', kill);
    }
  })();
  ended.catch(() => {}); // callers that await it get the error
  return { input: child.stdin!, output: child.stdout!, ended, kill };
}

function unlessBroken(error: NodeJS.ErrnoException) {
  if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
}
