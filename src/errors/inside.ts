import { entry, final } from './entry.ts';

/** Processes and files inside a session. */
export const insideErrors = {
  process_not_started: entry(400, 'The command could not be started.', (p: { detail: string }) => p.detail),
  process_exited: entry(400, 'The process has exited, or no longer listens.', (p: { detail: string }) => p.detail),
  no_terminal: entry(
    400,
    'The process has no terminal.',
    () => 'The process has no terminal to resize; spawn it with allocate_tty: true.',
  ),
  wrong_kind_of_file: entry(
    400,
    'The path is a directory where a file is needed, or a file where a directory is needed.',
    (p: { detail: string }) => p.detail,
  ),
  path_exists: entry(400, 'The path exists already.', (p: { detail: string }) => p.detail),
  bad_path: entry(400, 'The path cannot be used.', (p: { detail: string }) => p.detail),
  empty_file: entry(
    400,
    'The body is empty.',
    () => 'The body is empty. Send the file as the body; to create an empty file, use process/exec with touch.',
  ),
  bad_archive: entry(
    400,
    'The archive is damaged, or has entries that point outside of it.',
    (p: { detail: string }) => p.detail,
  ),
  archive_too_large: entry(400, 'The unpacked archive is too large.', (p: { detail: string }) => p.detail),
  too_many_watches: entry(
    400,
    'The session has its maximum of directory watches.',
    (p: { detail: string }) => p.detail,
  ),
  permission_denied: entry(
    403,
    'The session’s user may not do this with the file.',
    (p: { detail: string }) => p.detail,
  ),
  sandbox_unavailable: entry(
    403,
    'The machine does not support a sandbox, so processes and files in sessions are disabled.',
    () =>
      'This machine does not support a sandbox for sessions (GET /ready has the reason), so processes and files in sessions are disabled. CORRAL_ALLOW_UNSANDBOXED=true enables them without a sandbox.',
  ),
  process_not_found: entry(
    404,
    'No process of the session has that id.',
    (p: { id: string }) => `No process of this session has the id '${p.id}'. Ids end with their session.`,
  ),
  path_not_found: entry(404, 'The path does not exist in the session.', (p: { detail: string }) => p.detail),
  watch_not_found: entry(
    404,
    'No watch of the session has that id.',
    (p: { id: string }) => `No watch of this session has the id '${p.id}'; it was stopped, or never existed.`,
  ),
  stdin_full: {
    ...entry(
      409,
      'The process does not read its stdin.',
      () => 'The process has more than a megabyte of unread stdin. Try again when it has read some of it.',
    ),
    retriable: true,
  },
  process_timed_out: final(
    500,
    'The command exceeded its timeout_sec and was killed; details has its output.',
    (p: { seconds: number }) =>
      `The command was killed after ${p.seconds} s, its timeout_sec. Its output is in details.`,
  ),
  guest_busy: {
    ...entry(503, 'The session has its maximum of requests that wait in it.', (p: { detail: string }) => p.detail),
    headers: { 'Retry-After': '5' },
  },
  guest_lost: final(
    500,
    'The helper process inside the session ended before it answered.',
    () =>
      'The helper process inside the session ended before it answered. The operation may have been carried out. The next request starts the process again.',
  ),
  session_storage_full: final(507, 'The disk space of the session is full.', (p: { detail: string }) => p.detail),
};
