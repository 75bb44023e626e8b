import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inHome } from '../browser/profile-archive.ts';
import { makeHome } from '../sandbox/furnish.ts';
import { diskUse } from '../sandbox/disk-use.ts';
import type { Isolation } from '../sandbox/isolation.ts';
import { removeTree } from '../sandbox/outside.ts';
import { run } from '../sandbox/run.ts';
import { withInodes } from './disk-watch.ts';
import { WorkerError } from './worker.ts';

/** tar keeps names in memory, and an archive may claim that one has gigabytes. In KiB. */
const UNPACK = 'ulimit -v 1048576; exec tar --extract --gzip --file=- --no-same-owner --no-same-permissions';
const LOOK_MS = 500;
const MIB = 2 ** 20;

/**
 * Unpacks a build into `dir` and returns the directory that workers mount. The archive was written by a stranger's code, so tar runs in a
 * sandbox that sees nothing else, as a user that has nothing else. Afterwards the files belong to the service, and workers only read them.
 * The archive may be made to unpack to a thousand times its size: it may take what the sandbox of its build could have.
 */
export async function unpackBuild(
  dir: string,
  bytes: AsyncIterable<Buffer>,
  isolation: Isolation,
  {
    diskBytes,
    short,
    signal,
  }: { diskBytes: number; /** The disk has only its reserve left. */ short: () => boolean; signal: AbortSignal },
): Promise<string> {
  const owner = isolation.owners.claim(dir);
  const most = withInodes(diskBytes);
  let refused: string | undefined;
  const look = async () => {
    const { bytes, inodes } = await diskUse(dir, [], most);
    if (bytes > most.bytes || inodes > most.inodes)
      refused ??= `The build has more on the disk than the ${Math.round(diskBytes / MIB)} MiB that it may have.`;
    else if (short()) refused ??= 'The disk of the node is full. Run it again later.';
    return refused !== undefined;
  };
  try {
    await mkdir(dir, { recursive: true, mode: 0o711 });
    await makeHome(dir, owner);
    const tar = inHome(dir, { owner, sandboxed: isolation.sandboxed }, ['sh', '-c', UNPACK], signal);
    const timer = setInterval(
      () =>
        void look().then(
          (over) => over && tar.kill(),
          () => {},
        ),
      LOOK_MS,
    );
    try {
      tar.output.resume();
      await pipeline(Readable.from(bytes), tar.input).catch(unlessBroken);
      await tar.ended;
      await look();
    } finally {
      clearInterval(timer);
      tar.kill();
      await tar.ended.catch(() => {});
    }
    if (refused !== undefined) throw new Error('tar was ended.');
    const home = join(dir, 'home');
    if (process.getuid?.() === 0) await run('chown', ['-R', '-P', '-h', '0:0', '--', home]);
    await run('chmod', ['-R', 'u+rwX,go+rX,go-w,u-s,g-s', '--', home]);
    await chmod(dir, 0o711);
    return home;
  } catch (error) {
    await removeTree(dir, isolation).catch(() => {});
    throw refused === undefined ? error : new WorkerError(refused, { cause: error });
  } finally {
    owner.release();
  }
}

function unlessBroken(error: NodeJS.ErrnoException) {
  if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error; // tar reports why it ended
}
