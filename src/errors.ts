/**
 * Every refusal of this service. A code is part of the API: codes may be added, never renamed. Messages are for the
 * person who sent the request, in the words of the API reference. `docs/errors.md` is this table; `npm run check`
 * compares the two.
 */
const catalogue = {
  bad_request: entry(400, 'The request could not be read.', (p: { detail: string }) => p.detail),
  invalid_input: entry(
    400,
    'A field is missing, of the wrong type or out of bounds.',
    (p: { detail: string }) => p.detail,
  ),
  cannot_delete_current_key: entry(
    400,
    'A key cannot delete itself.',
    () => 'This key is the one you are using. Delete it with another key, or rotate it instead.',
  ),
  pool_in_use: entry(
    400,
    'Browsers of the pool are leased.',
    (p: { leased: number }) =>
      `${p.leased} ${p.leased === 1 ? 'browser' : 'browsers'} of this pool ${p.leased === 1 ? 'is' : 'are'} leased. Release them first, or send force: true to end their leases.`,
  ),
  feature_not_available: entry(
    400,
    'The field belongs to a part of the interface that this version does not serve yet.',
    (p: { field: string }) => `${p.field} is not available in this version. Leave it out.`,
  ),
  extension_refused: entry(
    400,
    'Chromium does not load the extension.',
    (p: { extension: string; detail: string }) => `Extension '${p.extension}' was not loaded: ${p.detail}`,
  ),
  proxy_type_unavailable: entry(
    400,
    'The operator has configured no upstream for proxies of that type.',
    (p: { type: string }) =>
      `This service has no upstream for ${p.type} proxies. The operator can configure one (CORRAL_PROXY_UPSTREAMS); or use type custom with a proxy of your own.`,
  ),
  proxy_host_refused: entry(
    400,
    'The proxy is at an address that the service may not connect to.',
    (p: { host: string; remedy: string }) =>
      `config.host: ${p.host} is on a private network, this machine or another address that is not public. ${p.remedy}`.trim(),
  ),
  gpu_unavailable: entry(400, 'There is no GPU to run on.', (p: { detail: string }) => p.detail),
  engine_unavailable: entry(400, 'This machine lacks what the session needs.', (p: { detail: string }) => p.detail),
  process_not_started: entry(400, 'A command cannot be run as it was asked for.', (p: { detail: string }) => p.detail),
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
  unauthorized: entry(401, 'No key, or one that does not fit.', (p: { detail: string }) => p.detail),
  forbidden: entry(403, 'The key is good, but not for this.', (p: { detail: string }) => p.detail),
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
  not_found: entry(404, 'No such path, or no such thing.', (p: { detail: string }) => p.detail),
  project_not_found: entry(
    404,
    'No active project has that id or name.',
    (p: { project: string }) => `No active project is '${p.project}'. GET /org/projects lists them.`,
  ),
  api_key_not_found: entry(
    404,
    'No API key within reach has that id.',
    (p: { id: string }) => `No API key has the id '${p.id}'. GET /org/api_keys lists them.`,
  ),
  session_not_found: entry(
    404,
    'No active session has that id or name.',
    (p: { session: string }) =>
      `No active session is '${p.session}'. GET /browsers lists them; status=deleted shows those that ended.`,
  ),
  replay_not_found: entry(
    404,
    'The session has no such replay, or its video is gone.',
    (p: { detail: string }) => p.detail,
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
  proxy_not_found: entry(
    404,
    'No proxy of the project has that id.',
    (p: { id: string }) => `No proxy has the id '${p.id}'. GET /proxies lists them; names do not stand in paths.`,
  ),
  pool_deleted: entry(
    404,
    'The pool was deleted while a client waited for one of its browsers.',
    (p: { pool: string }) => `Pool '${p.pool}' was deleted while you waited.`,
  ),
  pool_not_found: entry(
    404,
    'No pool has that id or name.',
    (p: { pool: string }) => `No pool is '${p.pool}'. GET /browser_pools lists them.`,
  ),
  profile_not_found: entry(
    404,
    'No profile has that id or name.',
    (p: { profile: string }) => `No profile is '${p.profile}'. GET /profiles lists them.`,
  ),
  profile_version_not_found: entry(
    404,
    'The profile has no such version, or not any more.',
    (p: { profile: string; version: string }) =>
      `Profile '${p.profile}' has no version '${p.version}'. GET /profiles/${p.profile}/versions lists those that are kept.`,
  ),
  extension_not_found: entry(
    404,
    'No extension has that id or name.',
    (p: { extension: string }) => `No extension is '${p.extension}'. GET /extensions lists them.`,
  ),
  not_leased: entry(
    404,
    'The session is not leased from this pool.',
    (p: { session: string; pool: string }) =>
      `Session '${p.session}' is not leased from pool '${p.pool}': it never was, was released already, or its lease ended.`,
  ),
  pool_full: conflict(
    'The pool has all the browsers it may have.',
    (p: { pool: string }) => `Pool '${p.pool}' has as many browsers as its size.`,
  ),
  recording_limit_reached: conflict(
    'The session is being recorded as often as it may.',
    (p: { most: number }) => `${p.most} recordings of this session are running, which is the most. Stop one first.`,
  ),
  stdin_full: {
    ...entry(
      409,
      'The process does not read its stdin.',
      () => 'More than a megabyte waits in the stdin of this process already. Try again when it has read some of it.',
    ),
    retriable: true,
  },
  viewport_in_use: conflict(
    'The live view has viewers.',
    (p: { viewers: number }) =>
      `${p.viewers} live ${p.viewers === 1 ? 'view shows' : 'views show'} this session; changing the viewport would jump under their hands. Send viewport.force: true to do it all the same.`,
  ),
  profile_in_use: conflict(
    'Another session saves to this profile.',
    (p: { profile: string; session: string }) =>
      `Session '${p.session}' saves to profile '${p.profile}' when it ends. End it first, leave out save_changes, or send profile.force: true to let whoever ends last win.`,
  ),
  profile_loaded: conflict(
    'The session has a profile already.',
    (p: { session: string; profile: string }) =>
      `Session '${p.session}' runs with profile '${p.profile}'; a profile is attached to a session that has none.`,
  ),
  already_exists: conflict(
    'Something of that name is there already.',
    (p: { thing: string; name: string }) =>
      `${/^[aeio]/.test(p.thing) ? 'An' : 'A'} ${p.thing} named '${p.name}' exists already (case and accents do not count). Choose another name.`,
  ),
  project_not_empty: conflict(
    'A project that holds things cannot be deleted.',
    (p: { holds: string }) => `The project still holds ${p.holds}. Delete those first, or archive the project.`,
  ),
  last_active_project: conflict(
    'One project has to stay active.',
    () => 'This is the last active project. Create another one first.',
  ),
  default_project: conflict(
    'The default project stays.',
    () => 'The default project serves every request that names none; it can be renamed, not archived or deleted.',
  ),
  payload_too_large: entry(
    413,
    'The body is larger than this path takes.',
    (p: { limit: number }) => `The body is larger than the ${p.limit} bytes this path takes.`,
  ),
  unsupported_media_type: entry(
    415,
    'The body is of a type this path does not read.',
    (p: { type: string }) => `Bodies of type '${p.type}' are not read here; send application/json.`,
  ),
  proxy_check_failed: entry(
    422,
    'The check of a proxy failed; `details` has the code of the reason.',
    (p: { detail: string }) => `The check failed: ${p.detail}`,
  ),
  websocket_version: entry(
    426,
    'The websocket handshake asks for a version that is not spoken here.',
    (p: { detail: string }) => p.detail,
  ),
  session_limit_reached: entry(
    429,
    'The project has as many sessions as it may.',
    (p: { active: number; kept: number; cap: number }) =>
      `The project has ${p.active} active sessions${p.kept ? ` and keeps ${p.kept} places for its pools` : ''}, and may have ${p.cap}. Delete one, or raise max_concurrent_sessions of the project.`,
  ),
  project_limit_reached: entry(
    429,
    'A pool of this size does not fit into what the project may run.',
    (p: { size: number; others: number; cap: number }) =>
      `A pool of ${p.size} does not fit: the project may run ${p.cap} browsers at once (max_concurrent_sessions), and its sessions and other pools take ${p.others}.`,
  ),
  pool_limit_reached: entry(
    429,
    'All pools together would hold more browsers than the organisation may run.',
    (p: { size: number; others: number; most: number }) =>
      `A pool of ${p.size} does not fit: the other pools hold ${p.others}, and ${p.most} browsers are the most (GET /org/limits).`,
  ),
  too_many_connections: entry(
    429,
    'The session has as many websockets as it may.',
    (p: { most: number }) => `This session has ${p.most} open websockets, which is the most. Close one first.`,
  ),
  rate_limit_exceeded: entry(
    429,
    'Too many sessions were created in the last minute.',
    (p: { perMinute: number; seconds: number }) =>
      `At most ${p.perMinute} sessions a minute are created here. Try again in ${p.seconds} s.`,
  ),
  too_many_bad_keys: entry(
    429,
    'Too many keys that are not known came from this address. A key that is known is let in all the same.',
    (p: { seconds: number }) =>
      `Too many keys that are not known here came from your address. Try again in ${p.seconds} s, with a key that is.`,
  ),
  client_hung_up: entry(
    499,
    'The client hung up before it was answered. No client reads this; the audit log shows it.',
    () => 'The client hung up before it was answered, and what was being made for it was undone.',
  ),
  internal: entry(
    500,
    'Our fault.',
    (p: { requestId: string }) => `Something broke on our side. Quote request ${p.requestId} when you report it.`,
  ),
  browser_did_not_start: entry(
    500,
    'The browser did not come up.',
    (p: { detail: string }) => `The browser did not start: ${p.detail}`,
  ),
  chrome_store_unavailable: entry(
    500,
    'The Chrome web store does not answer as it should.',
    (p: { detail: string }) => `The Chrome web store cannot be used (CORRAL_CHROME_STORE_URL): ${p.detail}.`,
  ),
  profile_damaged: entry(
    500,
    'What is stored of the profile is not what was saved.',
    (p: { profile: string; version: string; detail: string }) =>
      `Version '${p.version}' of profile '${p.profile}' does not open: ${p.detail} Restore an earlier one (GET /profiles/${p.profile}/versions).`,
  ),
  process_timed_out: final(
    500,
    'The command took longer than its timeout_sec, and was killed; details has what it printed.',
    (p: { seconds: number }) =>
      `The command was killed after ${p.seconds} s, its timeout_sec. What it printed is in details.`,
  ),
  guest_lost: final(
    500,
    'What works inside the session ended before it answered.',
    () =>
      'What works inside the session ended before it answered, and is started again with the next request. What was asked for may have been done.',
  ),
  storage_full: entry(
    500,
    'The disk is full.',
    (p: { path: string }) =>
      `There is no space left below ${p.path}, except what is reserved for the database (CORRAL_DISK_RESERVE_MB). Make room, or set CORRAL_DATA_DIR to another disk.`,
  ),
  transport_failed: entry(
    502,
    'A request through the browser got no answer; net_error_name is Chromium’s word for why.',
    (p: { detail: string }) => p.detail,
  ),
  node_unreachable: entry(
    502,
    'The node that runs the session does not answer.',
    (p: { node: string; detail: string }) =>
      `The node ${p.node}, which has to answer this, cannot be reached (${p.detail}). If it is gone, its sessions are ended within seconds. Try again in a moment.`,
  ),
  store_unavailable: entry(
    503,
    'The database does not answer.',
    () =>
      'The database does not answer right now; the request changed nothing that was answered. Try again in a moment.',
  ),
  shutting_down: entry(
    503,
    'The node is being stopped.',
    () =>
      'This node is being stopped and starts no more browsers. Try again in a moment: another node, or this one after its restart, answers then.',
  ),
  browser_silent: entry(
    504,
    'The browser, or its display, did not answer in time.',
    (p: { detail: string }) => `${p.detail} It hangs, was stopped, or its machine is too busy.`,
  ),
  no_sandbox: entry(
    503,
    'The machine gives browsers no sandbox, so none is started.',
    (p: { reason: string }) =>
      `This machine gives browsers no sandbox, so none is started: ${p.reason} The operator finds the remedy with 'npm run doctor'; the service tries again by itself. CORRAL_ALLOW_UNSANDBOXED=true runs browsers without one.`,
  ),
  project_storage_full: final(
    507,
    'The project has stored as much as it may.',
    (p: { used: number; most: number }) =>
      `The project stores ${p.used} MiB of replays, extensions and profile versions, what is under way included, and may store ${p.most} MiB (CORRAL_PROJECT_STORAGE_MB). Delete profiles or extensions, or wait until replays expire.`,
  ),
  session_storage_full: final(507, 'There is no room for it in the session.', (p: { detail: string }) => p.detail),
  capacity_exhausted: entry(
    529,
    'This node runs as many browsers as it may.',
    (p: { running: number; most: number }) =>
      `This node runs ${p.running} browsers, and ${p.most} is the most (CORRAL_MAX_SESSIONS). Try again when one has ended.`,
  ),
};

export type ErrorCode = keyof typeof catalogue;
export const errorCodes = Object.keys(catalogue) as [ErrorCode, ...ErrorCode[]];

export interface ErrorExtras {
  details?: { code: string; message: string }[];
  /** Further top-level fields of the body, where the interface has them. */
  body?: Record<string, unknown>;
  headers?: Record<string, string>;
  cause?: unknown;
}

export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.code = code;
    this.status = catalogue[code].status;
    this.extras = extras;
  }

  /** False where the same request would fail again: clients of this interface retry every 409 and 5xx otherwise. */
  get retriable(): boolean {
    return catalogue[this.code].retriable;
  }
}

type Throwers = {
  [C in ErrorCode]: (
    ...args: Parameters<(typeof catalogue)[C]['message']> extends [infer P]
      ? [params: P, extras?: ErrorExtras]
      : [params?: Record<string, never>, extras?: ErrorExtras]
  ) => ServiceError;
};

/** `throw errors.project_not_found({ project })`: the compiler knows the codes and their parameters. */
export const errors = Object.fromEntries(
  Object.entries(catalogue).map(([code, { message }]) => [
    code,
    (params: never, extras?: ErrorExtras) => new ServiceError(code as ErrorCode, message(params), extras),
  ]),
) as Throwers;

export const statusOf = (code: ErrorCode) => catalogue[code].status;
export const meaningOf = (code: ErrorCode) => catalogue[code].meaning;

/** The text of docs/errors.md. */
export function describeErrors(): string {
  const rows = Object.entries(catalogue).map(
    ([code, { status, meaning, retriable }]) =>
      `| \`${code}\` | ${status} | ${retriable ? 'may help' : 'no'} | ${meaning} |`,
  );
  return [
    '# Errors',
    '',
    'Every refusal is `{ "code", "message", "details"?, "inner_error"? }`. Codes are part of the API: new ones may come, none is renamed.',
    'The request id in `X-Request-Id` is also in the service’s log.',
    '',
    '| Code | Status | Retry | Meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function entry<P extends unknown[]>(status: number, meaning: string, message: (...params: P) => string) {
  return { status, meaning, message, retriable: status === 429 || status >= 500 };
}

/** The same request would fail again, or repeat what it has already done. */
function final<P extends unknown[]>(status: number, meaning: string, message: (...params: P) => string) {
  return { ...entry(status, meaning, message), retriable: false };
}

function conflict<P extends unknown[]>(meaning: string, message: (...params: P) => string) {
  return final(409, meaning, message);
}
