import { conflict, entry, final } from './entry.ts';

/** Errors that any route may return: about the request, the key and the state of the service. */
export const requestErrors = {
  bad_request: entry(400, 'The request could not be read.', (p: { detail: string }) => p.detail),
  invalid_input: entry(
    400,
    'A field is missing, of the wrong type or out of bounds.',
    (p: { detail: string }) => p.detail,
  ),
  feature_not_available: entry(
    400,
    'The field is for a part of the interface that this version does not have yet.',
    (p: { field: string; remedy?: string }) =>
      `${p.field} is not available in this version. ${p.remedy ?? 'Leave it out.'}`,
  ),
  unauthorized: entry(401, 'The key is missing, unknown, revoked or expired.', (p: { detail: string }) => p.detail),
  forbidden: entry(403, 'The key is valid, but may not do this.', (p: { detail: string }) => p.detail),
  not_found: entry(404, 'The path or the resource does not exist.', (p: { detail: string }) => p.detail),
  body_timeout: {
    ...entry(
      408,
      'The body stopped, or arrived too slowly. The connection is closed, and nothing was done.',
      (p: { seconds: number }) =>
        `The body did not arrive: the service waited ${p.seconds} s for the rest of it (CORRAL_BODY_SECONDS). Send the request again.`,
    ),
    retriable: true,
  },
  already_exists: conflict(
    'The name is in use.',
    (p: { thing: string; name: string }) =>
      `${/^[aeio]/.test(p.thing) ? 'An' : 'A'} ${p.thing} named '${p.name}' exists already (case and accents do not count). Choose another name.`,
  ),
  payload_too_large: entry(
    413,
    'The body exceeds the limit of this path.',
    (p: { limit: number; unit?: 'values' | 'escapes' }) => {
      if (p.unit === 'values') return `The body has more than ${p.limit} names and values. Send less at once.`;
      if (p.unit === 'escapes')
        return `The texts of the body have more than ${p.limit} escapes (\\). Send less at once.`;
      return `The body is larger than ${p.limit} bytes, the limit of this path.`;
    },
  ),
  unsupported_media_type: entry(
    415,
    'This path does not accept the type of the body.',
    (p: { type: string }) => `This path does not accept bodies of type '${p.type}'; send application/json.`,
  ),
  websocket_version: entry(
    426,
    'The websocket handshake asks for a version that is not supported.',
    (p: { detail: string }) => p.detail,
  ),
  too_many_bad_keys: entry(
    429,
    'This address sent too many unknown keys. Requests with a valid key are still accepted.',
    (p: { seconds: number }) =>
      `Your address sent too many unknown keys. Try again in ${p.seconds} s with a valid key.`,
  ),
  client_hung_up: entry(
    499,
    'The client disconnected before the response. Only the audit log shows this code.',
    () => 'The client disconnected before the response, and the work for it was undone.',
  ),
  internal: entry(
    500,
    'The service failed unexpectedly.',
    (p: { requestId: string }) => `Something broke on our side. Quote request ${p.requestId} when you report it.`,
  ),
  node_unreachable: entry(
    502,
    'The node that runs the session does not answer.',
    (p: { node: string; detail: string }) =>
      `The node ${p.node}, which handles this request, cannot be reached (${p.detail}). If it is gone, its sessions are ended within seconds. Try again in a moment.`,
  ),
  storage_full: {
    ...entry(
      503,
      'The disk is full. The service deletes caches and ends the largest sessions of the project that uses most, so a retry may succeed.',
      (p: { path: string }) =>
        `There is no space left in ${p.path}, except the reserve of the database (CORRAL_DISK_RESERVE_MB). Try again in a moment. If that does not help, make room, or set CORRAL_DATA_DIR to another disk.`,
    ),
    headers: { 'Retry-After': '5' },
  },
  memory_full: {
    ...final(
      503,
      'The memory of the node for large answers was in use for too long. The operation may have been carried out.',
      () =>
        'The memory of this node for large answers is in use, and the answer waited 30 s for a part of it. The operation may have been carried out. Try again in a moment, or ask for less at once.',
    ),
    headers: { 'Retry-After': '5' },
  },
  search_too_slow: final(
    503,
    'The search took too long, or too many searches of the project wait.',
    (p: { seconds: number } | { waiting: number }) =>
      'waiting' in p
        ? `${p.waiting} searches of this project wait. Search again when they are answered.`
        : `The search took longer than ${p.seconds} s and was cancelled. Filter by more fields, or search a shorter time.`,
  ),
  store_unavailable: entry(
    503,
    'The database does not answer.',
    () => 'The database does not answer. Try again in a moment.',
  ),
  shutting_down: entry(
    503,
    'The node is shutting down.',
    () =>
      'This node is shutting down and starts no more browsers. Try again in a moment: another node, or this node after its restart, will answer.',
  ),
};
