import { entry, final } from './entry.ts';

/** Processes and files inside a session. */
export const insideErrors = {
  process_not_started: entry(400, 'The command could not be started.', (p: { detail: string }) => p.detail),
  process_exited: entry(
    400,
    'The process has exited, or does not listen any more.',
    (p: { detail: string }) => p.detail,
  ),
  no_terminal: entry(
    400,
    'The process has no terminal.',
    () => 'The process has no terminal to resize; spawn it with allocate_tty: true.',
  ),
  wrong_kind_of_file: entry(
    400,
    'A directory where a file is needed, or the other way around.',
    (p: { detail: string }) => p.detail,
  ),
  path_exists: entry(400, 'Something else is there already.', (p: { detail: string }) => p.detail),
  bad_path: entry(400, 'The path cannot be used.', (p: { detail: string }) => p.detail),
  empty_file: entry(
    400,
    'There is nothing to write.',
    () => 'The body is empty. Send the file as the body; an empty file can be made with process/exec and touch.',
  ),
  bad_archive: entry(
    400,
    'The archive is broken, or has entries that lead out of it.',
    (p: { detail: string }) => p.detail,
  ),
  archive_too_large: entry(400, 'The archive unpacks to more than it may.', (p: { detail: string }) => p.detail),
  too_many_watches: entry(
    400,
    'The session watches as many directories as it may.',
    (p: { detail: string }) => p.detail,
  ),
  permission_denied: entry(
    403,
    'The session’s user may not do this with the file.',
    (p: { detail: string }) => p.detail,
  ),
  sandbox_unavailable: entry(
    403,
    'The machine gives sessions no sandbox, so they get no processes and files.',
    () =>
      'This machine gives sessions no sandbox (GET /ready says why), and without one their processes and files would be the machine’s. CORRAL_ALLOW_UNSANDBOXED=true allows it all the same.',
  ),
  process_not_found: entry(
    404,
    'No process of the session has that id.',
    (p: { id: string }) => `No process of this session has the id '${p.id}'. Ids end with their session.`,
  ),
  path_not_found: entry(404, 'There is nothing at that path in the session.', (p: { detail: string }) => p.detail),
  watch_not_found: entry(
    404,
    'No watch of the session has that id.',
    (p: { id: string }) => `No watch of this session has the id '${p.id}'; it was stopped, or never was.`,
  ),
  stdin_full: {
    ...entry(
      409,
      'The process does not read its stdin.',
      () => 'More than a megabyte waits in the stdin of this process already. Try again when it has read some of it.',
    ),
    retriable: true,
  },
  process_timed_out: final(
    500,
    'The command took longer than its timeout_sec, and was killed; details has what it printed.',
    (p: { seconds: number }) =>
      `The command was killed after ${p.seconds} s, its timeout_sec. What it printed is in details.`,
  ),
  guest_lost: final(
    500,
    'The helper process inside the session ended before it answered.',
    () =>
      'The helper process inside the session ended before it answered. The operation may have been carried out. The next request starts the process again.',
  ),
  session_storage_full: final(507, 'There is no room for it in the session.', (p: { detail: string }) => p.detail),
};
