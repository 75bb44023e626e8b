import { randomBytes } from 'node:crypto';
import type { SessionFiles } from '../../chromium/pages/viewer-files.ts';
import { Done, type FileInfo } from '../../chromium/guest/protocol.ts';
import { ServiceError } from '../../errors.ts';
import { download, eachListed } from '../fs/service.ts';
import type { Hold } from '../holds.ts';
import { inOurWords, inside, nextOf } from '../inside.ts';

const HOME = '/home/corral';
const DOWNLOADS = `${HOME}/Downloads`;
/** Each upload has a directory of its own, so that a file keeps its name. */
const UPLOADS = `${HOME}/Uploads`;
/** The most files of the directory that are looked at, and the newest of them that are listed. */
const MOST_LOOKED_AT = 10_000;
const MOST_LISTED = 200;
/** In bytes. A directory takes 255, and a number may come before it. */
const LONGEST_NAME = 200;

/** A held session's files for a viewer of its live view. */
export function filesForViewer(held: Hold): SessionFiles {
  const { guest } = held.engine;
  return {
    upload: (names, signal) =>
      inside(async () => {
        const directory = `${UPLOADS}/${randomBytes(6).toString('hex')}`;
        const paths = distinct(names.map(plainName)).map((name) => `${directory}/${name}`);
        const stream = await guest.open('upload', {}, AbortSignal.any([signal, held.until]));
        let next = 0;
        return {
          async next() {
            const file = String(next);
            await stream.json({ dest: file, path: paths[next]! });
            await stream.json({ file });
            next += 1;
          },
          bytes: (chunk) => stream.bytes(chunk),
          end: () =>
            inside(async () => {
              stream.end();
              await nextOf(guest, Done, stream);
              return paths;
            }),
          reset: () => stream.reset(),
        };
      }),

    async downloads() {
      const newest = newestOf<FileInfo>(MOST_LISTED, ({ mod_time }) => mod_time);
      let seen = 0;
      try {
        for await (const some of eachListed(held, DOWNLOADS)) {
          for (const file of some) if (isDownloaded(file)) newest.add(file);
          seen += some.length;
          if (seen >= MOST_LOOKED_AT) break;
        }
      } catch (error) {
        // The first download makes the directory.
        if (!(error instanceof ServiceError) || error.code !== 'path_not_found') throw error;
      }
      return newest.all().map(({ name, size_bytes }) => ({ name, size: size_bytes }));
    },

    async read(name, signal) {
      const until = AbortSignal.any([signal, held.until]);
      const {
        size = 0,
        content,
        close,
      } = await download(held, 'read', { path: `${DOWNLOADS}/${plainName(name)}` }, until);
      return { size, content, close };
    },

    explain(error) {
      const ours = inOurWords(error);
      return ours instanceof ServiceError ? ours.message : 'The files could not be moved. Try again.';
    },
  };
}

const isDownloaded = ({ name, is_dir }: FileInfo) => !is_dir && !name.startsWith('.') && !name.endsWith('.crdownload');

/** Keeps no more than twice as many as it is to find. */
export function newestOf<T>(most: number, timeOf: (item: T) => string) {
  let kept: T[] = [];
  const cut = () => {
    kept.sort((one, other) => (timeOf(one) < timeOf(other) ? 1 : timeOf(one) > timeOf(other) ? -1 : 0));
    kept = kept.slice(0, most);
  };
  return {
    add(item: T): void {
      kept.push(item);
      if (kept.length >= 2 * most) cut();
    },
    /** The newest first. */
    all(): T[] {
      cut();
      return kept;
    },
  };
}

/** A name without a directory, that fits into one. */
export function plainName(name: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what it removes
  const bare = name.replace(/^.*[/\\]/s, '').replace(/[\u0000-\u001f\u007f]/g, '');
  let plain = bare.slice(0, LONGEST_NAME); // a character has a byte at least, so that the rest to cut is short
  while (Buffer.byteLength(plain) > LONGEST_NAME) plain = plain.slice(0, -1);
  return /^\.*$/.test(plain) ? 'file' : plain;
}

function distinct(names: readonly string[]): string[] {
  const seen = new Set<string>();
  return names.map((name, index) => {
    const free = seen.has(name) ? `${index}-${name}` : name;
    seen.add(free);
    return free;
  });
}
