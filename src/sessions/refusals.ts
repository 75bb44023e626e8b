import type { ErrorCode } from '../errors.ts';

/** The errors of routes about a session: lists for their schemas, each of which includes the list that it builds on. */

/** Finding a session, on whichever node it runs. */
export const ofSession = ['session_not_found', 'node_unreachable'] as const satisfies ErrorCode[];

/** Waking the session's browser and calling it. */
export const ofBrowser = [...ofSession, 'browser_silent'] as const satisfies ErrorCode[];

/** Starting a browser, for a new session or for an existing one. */
export const ofLaunch = [
  'browser_did_not_start',
  'engine_unavailable',
  'gpu_unavailable',
  'no_sandbox',
  'profile_damaged',
  'storage_full',
] as const satisfies ErrorCode[];

/** Calling the guest, which runs inside the session. */
export const ofGuest = [...ofBrowser, 'sandbox_unavailable', 'guest_busy', 'guest_lost'] as const satisfies ErrorCode[];

/** Reading and removing files of the session. */
export const ofFiles = [
  ...ofGuest,
  'path_not_found',
  'permission_denied',
  'wrong_kind_of_file',
  'bad_path',
] as const satisfies ErrorCode[];

/** Writing files of the session. */
export const ofWriting = [...ofFiles, 'path_exists', 'session_storage_full'] as const satisfies ErrorCode[];
