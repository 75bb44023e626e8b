import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inHome } from '../browser/profile-archive.ts';
import { makeHome } from '../sandbox/furnish.ts';
import { fullUse } from '../sandbox/disk-use.ts';
import type { Isolation } from '../sandbox/isolation.ts';
import { removeTree } from '../sandbox/outside.ts';
import { run } from '../sandbox/run.ts';
import { withInodes } from './disk-watch.ts';
import { WorkerError } from './worker.ts';

/** tar keeps names in memory, and an archive may claim that one has gigabytes. In KiB. */
const UNPACK = 'ulimit -v 1048576; exec tar --extract --gzip --file=- --no-same-owner --no-same-permissions';
const LOOK_MS = 500;
const MIB = 2 ** 20;

export interface Unpacked {
  /** The directory that workers mount. */
  readonly home: string;
  /** What its files take, or seem to have, whichever is more. */
  readonly bytes: number;
}

/**
 * Unpacks a build into `dir`. The archive was written by a stranger's code, so tar runs in a sandbox that sees nothing else, as a user that
 * has nothing else. Afterwards the service owns the files, and workers only read them.
 * The archive may be made to unpack to a thousand times its size, or to files with holes: it may have what the sandbox of its build could
 * have, holes included.
 */
export async function unpackBuild(
  dir: string,
  bytes: AsyncIterable<Buffer>,
  isolation: Isolation,
  {
    diskBytes,
    short,
    cover,
    signal,
  }: {
    diskBytes: number;
    /** The disk has only its reserve left, and no room could be made. */
    short: () => Promise<boolean>;
    /** Called with the size unpacked so far. Throws when that is too much. */
    cover?: ((bytes: number) => Promise<void>) | undefined;
    signal: AbortSignal;
  },
): Promise<Unpacked> {
  const owner = isolation.owners.claim(dir);
  const most = withInodes(diskBytes);
  let refused: Error | undefined;
  const measure = async () => {
    const { bytes, inodes } = await fullUse(dir, most);
    if (bytes > most.bytes || inodes > most.inodes)
      refused ??= new WorkerError(
        `The build has more on the disk than the ${Math.round(diskBytes / MIB)} MiB that it may have.`,
      );
    else if (await short()) refused ??= new WorkerError('The disk of the node is full. Run it again later.');
    else await cover?.(bytes).catch((error: Error) => (refused ??= error));
    return bytes;
  };
  let looking: Promise<void> | undefined;
  try {
    await mkdir(dir, { recursive: true, mode: 0o711 });
    await makeHome(dir, owner);
    const tar = inHome(dir, { owner, sandboxed: isolation.sandboxed }, ['sh', '-c', UNPACK], signal);
    const look = () =>
      measure().then(
        () => {
          if (refused) tar.kill();
        },
        () => {}, // the next look, or the last one, finds it
      );
    const timer = setInterval(() => (looking ??= look().finally(() => (looking = undefined))), LOOK_MS);
    let taken = 0;
    try {
      tar.output.resume();
      await pipeline(Readable.from(bytes), tar.input).catch(unlessBroken);
      await tar.ended;
      clearInterval(timer);
      await looking; // a claim grows by one call at a time
      taken = await measure();
    } finally {
      clearInterval(timer);
      tar.kill();
      await tar.ended.catch(() => {});
      await looking;
    }
    if (refused !== undefined) throw refused;
    const home = join(dir, 'home');
    if (process.getuid?.() === 0) await run('chown', ['-R', '-P', '-h', '0:0', '--', home]);
    await run('chmod', ['-R', 'u+rwX,go+rX,go-w,u-s,g-s', '--', home]);
    await chmod(dir, 0o711);
    return { home, bytes: taken };
  } catch (error) {
    await removeTree(dir, isolation).catch(() => {});
    throw refused ?? error;
  } finally {
    owner.release();
  }
}

function unlessBroken(error: NodeJS.ErrnoException) {
  if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error; // tar reports why it ended
}
