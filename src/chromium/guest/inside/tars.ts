import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { opendir, stat } from 'node:fs/promises';
import type { Args } from '../protocol.ts';
import { Fault } from './fault.ts';
import type { Telling } from './answer-stream.ts';
import { Incoming, makeDirectories } from './partial-files.ts';

/** Tar archives compressed with zstd, by the programs tar and zstd. */
export const tarAsks = { pack, unpack };

const LEVELS: Record<string, string> = { fastest: '-1', default: '-3', better: '-9', best: '-19' };

async function pack({ path, level }: Args<'pack'>, stream: Telling<'pack'>): Promise<void> {
  if (!(await stat(path)).isDirectory()) throw new Fault('ENOTDIR', `'${path}' is not a directory.`);
  await opendir(path).then((directory) => directory.close());
  const tar = run(['-C', path, '-I', `zstd ${LEVELS[level] ?? '-3'}`, '--exclude=.corral-*.part', '-cf', '-', '.']);
  const giveUp = () => tar.child.kill('SIGKILL');
  stream.gone.addEventListener('abort', giveUp, { once: true });
  await stream.json({});
  for await (const chunk of tar.child.stdout!) await stream.bytes(chunk as Buffer);
  await tar.ended;
}

/** Checks the whole archive before anything is unpacked. */
async function unpack(_: Args<'unpack'>, stream: Telling<'unpack'>): Promise<void> {
  const archive = await Incoming.to(undefined);
  let dest: string | undefined;
  let strip = 0;
  try {
    for (let item; (item = await stream.next());) {
      if (item.bytes) await archive.add(item.bytes);
      else {
        const { dest_path = dest, strip_components = strip } = item.json as {
          dest_path?: string;
          strip_components?: number;
        };
        [dest, strip] = [dest_path, strip_components];
      }
    }
    await archive.close();
    if (dest === undefined) return;
    await refuse(archive.path);
    await makeDirectories(dest);
    const how = [
      '--no-same-owner',
      '--no-same-permissions',
      '--delay-directory-restore',
      `--strip-components=${strip}`,
    ];
    await run(['-C', dest, '-I', 'zstd', ...how, '-xf', archive.path]).ended;
  } finally {
    await archive.discard();
  }
  await stream.json({});
}

/** Refuses names and links that point outside of the archive, and special files. */
async function refuse(path: string): Promise<void> {
  const { child, ended } = run(['-I', 'zstd', '--quoting-style=escape', '-P', '-tvf', path]);
  let rest = '';
  for await (const chunk of child.stdout!.setEncoding('utf8')) {
    const lines = (rest + (chunk as string)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) look(line);
  }
  await ended;
}

function look(line: string) {
  const [, kind = '', name = ''] = /^(.)\S+ \S+ +\S+ \S+ \S+ (.*)$/.exec(line) ?? [];
  const [own = '', target] = name.split(/ -> | link to /);
  const astray = [own, target].some(
    (way) => way !== undefined && (way.startsWith('/') || way.split('/').includes('..')),
  );
  if (astray) throw new Fault('bad_archive', `The entry '${name}' leads out of the archive.`);
  if (!'-dlh'.includes(kind))
    throw new Fault('bad_archive', `The entry '${name}' is neither a file, a directory nor a link.`);
}

function run(args: string[]): { child: ChildProcess; ended: Promise<void> } {
  const child = spawn('tar', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let words = '';
  child.stderr.on('data', (chunk: Buffer) => (words = (words + chunk.toString()).slice(-2000)));
  const ended = once(child, 'close').then(([code]) => {
    if (code === 0) return;
    if (/No space left/i.test(words)) throw new Fault('ENOSPC', 'There is not enough space for the archive.');
    throw new Fault('bad_archive', `The archive is refused: ${words.trim().split('\n').at(-1)}`);
  });
  ended.catch(() => {}); // callers that await it get the error
  return { child, ended };
}
