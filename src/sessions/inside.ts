import { Value } from 'typebox/value';
import type { Static, TSchema } from 'typebox';
import { ChannelClosed, NoGuest, Refusal, type Guest, type Stream } from '../chromium/guest/guest.ts';
import { errors, ServiceError } from '../errors.ts';
import type { MemoryShare } from '../lib/memory-share.ts';
import { GrowingBytes } from '../lib/growing-bytes.ts';

/** Runs `work` inside a session, and translates its errors into those of the API. */
export async function inside<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw inOurWords(error);
  }
}

/** The session's own processes may control what the guest sends: a message that does not fit the schema ends the guest. */
export function checked<S extends TSchema>(guest: Guest, schema: S, said: unknown): Static<S> {
  if (Value.Check(schema, said)) return said;
  guest.distrust('its answer does not have the expected shape.');
  throw errors.guest_lost();
}

/** The next message of a stream. It has to exist and to fit the schema. */
export async function nextOf<S extends TSchema>(guest: Guest, schema: S, stream: Stream): Promise<Static<S>> {
  const item = await stream.next();
  return checked(guest, schema, item?.json);
}

/** The `size` bytes that the guest announced, as one buffer, in however many pieces they arrive. */
export async function bytesFrom(guest: Guest, stream: Stream, size: number, room: MemoryShare): Promise<Buffer> {
  const whole = new GrowingBytes();
  while (whole.size < size) {
    const item = await stream.next();
    if (!item?.bytes || item.bytes.length > size - whole.size) {
      guest.distrust('it sent other bytes than it said.');
      throw new ChannelClosed('It sent other bytes than it said.');
    }
    whole.add(item.bytes);
    await room.add(item.bytes.length);
  }
  return whole.all();
}

/** A stream canceled by the service is not a fault of the guest. */
export function inOurWords(error: unknown): unknown {
  if (error instanceof ServiceError) return error;
  if (error instanceof NoGuest) return error.code === 'unsandboxed' ? errors.sandbox_unavailable() : error;
  if (error instanceof ChannelClosed) return errors.guest_lost({}, { cause: error });
  if (!(error instanceof Refusal)) return error;
  const detail = error.message;
  switch (error.code) {
    case 'ENOENT':
      return errors.path_not_found({ detail: sentence(detail) });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'EBUSY':
      return errors.permission_denied({ detail: sentence(detail) });
    case 'ENOTDIR':
    case 'EISDIR':
    case 'ERR_FS_EISDIR':
    case 'not_a_file':
    case 'ENXIO':
    case 'ENODEV':
      return errors.wrong_kind_of_file({ detail: sentence(detail) });
    case 'EEXIST':
    case 'ENOTEMPTY':
      return errors.path_exists({ detail: sentence(detail) });
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return errors.session_storage_full({ detail: sentence(detail) });
    case 'ENAMETOOLONG':
    case 'ELOOP':
    case 'EINVAL':
    case 'ERR_INVALID_ARG_VALUE':
      return errors.bad_path({ detail: sentence(detail) });
    case 'empty':
      return errors.empty_file();
    case 'bad_archive':
      return errors.bad_archive({ detail });
    case 'archive_too_large':
      return errors.archive_too_large({ detail });
    case 'no_user':
      return errors.invalid_input({ detail });
    case 'bad_cwd':
    case 'no_command':
    case 'not_started':
      return errors.process_not_started({ detail });
    case 'exited':
    case 'stdin_closed':
      return errors.process_exited({ detail });
    case 'no_tty':
      return errors.no_terminal();
    case 'stdin_full':
      return errors.stdin_full();
    case 'busy':
      return errors.guest_busy({ detail });
    case 'too_many_watches':
      return errors.too_many_watches({ detail });
    default:
      // Any other error of the file system: it concerns the path.
      if (/^E[A-Z0-9]+$|^ERR_FS_/.test(error.code)) return errors.bad_path({ detail: sentence(detail) });
      return errors.guest_lost({}, { cause: error });
  }
}

/** `ENOENT: no such file or directory, open '/x'` as a readable sentence. */
function sentence(text: string): string {
  const [, what, where] = /^E[A-Z]+: ([^,]+), \w+ (.*)$/s.exec(text) ?? [];
  return what === undefined ? text : `${where}: ${what}.`;
}
