import type { Readable } from 'node:stream';
import type { Guest, Stream } from '../../chromium/guest/guest.ts';
import { Done, FileInfos, FileOpened, WatchEvent, type Args, type FileInfo } from '../../chromium/guest/protocol.ts';
import { errors } from '../../errors.ts';
import { memoryShare } from '../../lib/memory-share.ts';
import { turns } from '../../lib/turns.ts';
import { checked, inOurWords, inside, nextOf } from '../inside.ts';
import type { Hold } from '../holds.ts';
import type { FileEvent } from './schema.ts';

/** The most files of a directory in one answer. */
const MOST_LISTED = 100_000;
/** The most bytes of such an answer, as JSON writes them: a control character of a name takes six. */
const LONGEST_LIST = 64 * 1024 * 1024;

/** Changes by one guest call with an empty answer. */
type Change = 'create_directory' | 'delete_file' | 'delete_directory' | 'move' | 'set_permissions';

/** The arguments are a body of the API; the guest's protocol checks them. */
export function change({ engine: { guest } }: Hold, what: Change, args: object): Promise<void> {
  return inside(async () => void (await guest.call(what, args as Args<Change>)));
}

export function info({ engine: { guest } }: Hold, path: string): Promise<FileInfo> {
  return inside(() => guest.call('info', { path }));
}

/** The files of a directory, part by part. */
export async function* eachListed(
  { engine: { guest } }: Hold,
  path: string,
  gone?: AbortSignal,
): AsyncGenerator<FileInfo[]> {
  const turn = turns();
  let stream: Stream | undefined;
  try {
    stream = await guest.open('list', { path }, gone);
    stream.end();
    for (let item; (item = await stream.next());) {
      yield checked(guest, FileInfos, item.json);
      await turn();
    }
  } catch (error) {
    throw inOurWords(error);
  } finally {
    stream?.reset();
  }
}

/** The files of a directory as the JSON of an answer, in parts. */
export async function list(held: Hold, path: string, gone?: AbortSignal): Promise<Buffer[]> {
  const stop = new AbortController();
  const until = gone ? AbortSignal.any([gone, stop.signal]) : stop.signal;
  const room = memoryShare(held.engine.memory, () => stop.abort(errors.memory_full()), until);
  const parts: Buffer[] = [];
  let files = 0;
  let bytes = 0;
  try {
    for await (const some of eachListed(held, path, until)) {
      if (some.length === 0) continue;
      const part = Buffer.from(`${files === 0 ? '[' : ','}${some.map(written).join(',')}`);
      files += some.length;
      bytes += part.length;
      if (files > MOST_LISTED || bytes > LONGEST_LIST)
        throw errors.bad_path({
          detail: `'${path}' holds more than ${MOST_LISTED} files, or too long names; list it with process/exec.`,
        });
      parts.push(part);
      await room.add(part.length);
    }
  } finally {
    room.close();
  }
  return [...parts, Buffer.from(files === 0 ? '[]' : ']')];
}

/** The guest may have sent more fields. */
const written = ({ name, path, size_bytes, is_dir, mod_time, mode }: FileInfo) =>
  JSON.stringify({ name, path, size_bytes, is_dir, mod_time, mode });

/** A file's bytes, or a directory's as an archive, at the reader's speed. */
export function download(
  { engine: { guest } }: Hold,
  what: 'read' | 'zip' | 'pack',
  args: object,
  hungUp?: AbortSignal,
): Promise<{ size: number | undefined; content: AsyncIterable<Buffer>; close(): void }> {
  return inside(async () => {
    const stream = await guest.open(what, args as Args<typeof what>, hungUp);
    stream.end();
    try {
      const size = what === 'read' ? (await nextOf(guest, FileOpened, stream)).size_bytes : undefined;
      if (size === undefined) await nextOf(guest, Done, stream);
      return { size, content: bytesOf(guest, stream), close: () => stream.reset() };
    } catch (error) {
      stream.reset();
      throw error;
    }
  });
}

async function* bytesOf(guest: Guest, stream: Stream): AsyncGenerator<Buffer> {
  try {
    for (let item; (item = await stream.next());) {
      if (!item.bytes) {
        guest.distrust('it sent something else than bytes.');
        throw errors.guest_lost();
      }
      yield item.bytes;
    }
  } catch (error) {
    throw inOurWords(error);
  } finally {
    stream.reset();
  }
}

/** The archives that can be unpacked: the guest call, and the form field that holds the archive. */
const archives = { zip: { ask: 'unzip', field: 'zip_file' }, zstd: { ask: 'unpack', field: 'archive' } } as const;

/** Uploads the archive of a form, and unpacks it at the path that the form names. */
export function uploadArchive(
  held: Hold,
  kind: keyof typeof archives,
  parts: AsyncIterable<Part>,
  hungUp: AbortSignal,
): Promise<void> {
  const { ask, field } = archives[kind];
  return intoSession(held, ask, {}, hungUp, async (stream) => {
    const seen = new Set<string>();
    for await (const part of parts) {
      const { name } = part;
      if (seen.has(name)) throw errors.invalid_input({ detail: `The part '${name.slice(0, 100)}' is there twice.` });
      seen.add(name);
      if ('content' in part && name === field) await send(stream, part.content);
      else if ('value' in part && name === 'dest_path') await stream.json({ dest_path: absolute(part.value) });
      else if ('value' in part && name === 'strip_components' && kind === 'zstd')
        await stream.json({ strip_components: wholeNumber(name, part.value) });
      else throw errors.invalid_input({ detail: `'${name.slice(0, 100)}' is not a field here, or not of that kind.` });
    }
    for (const name of [field, 'dest_path'])
      if (!seen.has(name)) throw errors.invalid_input({ detail: `${name} is missing.` });
  });
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,3}$/.test(text)) throw errors.invalid_input({ detail: `${name} must be a whole number.` });
  return Number(text);
}

/** Streams a body into a file of the session, at the guest's speed. The file is written whole or not at all. */
export const upload = (held: Hold, args: object, content: Readable, hungUp: AbortSignal): Promise<void> =>
  intoSession(held, 'write', args, hungUp, (stream) => send(stream, content));

/** The one path for bytes into a session: `fill` sends them, and the promise resolves when the guest confirms. */
function intoSession(
  { engine: { guest } }: Hold,
  ask: 'write' | 'upload' | 'unzip' | 'unpack',
  args: object,
  hungUp: AbortSignal,
  fill: (stream: Stream) => Promise<void>,
): Promise<void> {
  return inside(async () => {
    const stream = await guest.open(ask, args, hungUp);
    try {
      await fill(stream);
      stream.end();
      await nextOf(guest, Done, stream);
    } catch (error) {
      throw hungUp.aborted ? hungUp.reason : error;
    } finally {
      stream.reset();
    }
  });
}

/** A part of a form. Parts come in any order. */
export type Part = { name: string; value: string } | { name: string; content: Readable };

/** Uploads several files of a form, each with its destination. */
export function uploadFiles(held: Hold, parts: AsyncIterable<Part>, hungUp: AbortSignal): Promise<void> {
  return intoSession(held, 'upload', {}, hungUp, async (stream) => {
    const files = new Set<string>();
    const places = new Set<string>();
    for await (const part of parts) {
      const { key, field } = fieldOf(part.name);
      if ('content' in part) {
        if (field !== 'file')
          throw errors.invalid_input({
            detail: `The part '${part.name}' has a file; files[n][file] is where those go.`,
          });
        if (files.has(key)) throw errors.invalid_input({ detail: `The part '${part.name}' is there twice.` });
        files.add(key);
        await stream.json({ file: key });
        await send(stream, part.content);
      } else {
        if (field !== 'dest_path')
          throw errors.invalid_input({ detail: `The part '${part.name}' needs a file, with a filename.` });
        places.add(key);
        await stream.json({ dest: key, path: absolute(part.value) });
      }
    }
    const astray = [...files].find((key) => !places.has(key)) ?? [...places].find((key) => !files.has(key));
    if (astray !== undefined)
      throw errors.invalid_input({
        detail: `files[${astray}] lacks its ${files.has(astray) ? 'dest_path' : 'file'}.`,
      });
    if (files.size === 0)
      throw errors.invalid_input({ detail: 'files is missing: send files[0][file] and files[0][dest_path].' });
  });
}

/** `files[0][file]`, `files[0].file`, `files.0.file`, and `file` for a single one. */
function fieldOf(name: string): { key: string; field: string } {
  const [, key, field] = /^files(?:\[(?=\d+\])|\.)(\d{1,4})\]?(?:\[(?=\w+\]$)|\.)(file|dest_path)\]?$/.exec(name) ?? [];
  if (key !== undefined && field !== undefined) return { key, field };
  if (name === 'file' || name === 'dest_path') return { key: '0', field: name };
  throw errors.invalid_input({
    detail: `'${name.slice(0, 100)}' is not a field here; send files[0][file] and files[0][dest_path].`,
  });
}

function absolute(path: string): string {
  if (!path.startsWith('/') || path.length > 4096 || path.includes('\0'))
    throw errors.invalid_input({
      detail: 'dest_path must be an absolute path of the session, such as /home/corral/file.',
    });
  return path;
}

async function send(stream: Stream, content: Readable): Promise<void> {
  // Not destroyed on failure: it is the client's connection, and the client still has to read the answer from it.
  const chunks = content.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { value, done } = await chunks.next();
      if (done) return;
      await stream.bytes(value as Buffer);
    }
  } finally {
    void chunks.return?.(); // otherwise it would hold back the rest, and with it the connection
  }
}

export function startWatch({ engine: { guest } }: Hold, args: { path: string; recursive: boolean }) {
  return inside(() => guest.call('watch', args));
}

export function stopWatch({ engine: { guest } }: Hold, id: string): Promise<void> {
  return inside(
    async () => void (await guest.call('unwatch', { watch_id: id }).catch((error: Error) => unknownWatch(id, error))),
  );
}

/** Events since the watch began or was last read, then events as they happen. Ends with the watch. */
export function readWatch(
  { engine: { guest } }: Hold,
  id: string,
  hungUp?: AbortSignal,
): Promise<{ next(): Promise<FileEvent | undefined>; close(): void }> {
  return inside(async () => {
    const stream = await guest.open('watch_events', { watch_id: id }, hungUp);
    stream.end();
    await nextOf(guest, Done, stream).catch((error: Error) => unknownWatch(id, error));
    return {
      async next() {
        const item = await stream.next().catch(() => undefined); // the session has ended, and the watch with it
        return item && checked(guest, WatchEvent, item.json);
      },
      close: () => stream.reset(),
    };
  });
}

function unknownWatch(id: string, error: Error & { code?: string }): never {
  throw error.code === 'no_watch' ? errors.watch_not_found({ id }) : error;
}
