import { conflict, entry } from './entry.ts';

/** Pools and leases. */
export const poolErrors = {
  pool_in_use: entry(
    400,
    'Browsers of the pool are leased.',
    (p: { leased: number }) =>
      `${p.leased} ${p.leased === 1 ? 'browser' : 'browsers'} of this pool ${p.leased === 1 ? 'is' : 'are'} leased. Release them first, or send force: true to end their leases.`,
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
  not_leased: entry(
    404,
    'The session is not leased from this pool.',
    (p: { session: string; pool: string }) =>
      `Session '${p.session}' is not leased from pool '${p.pool}': it never was, was released already, or its lease ended.`,
  ),
  pool_busy: entry(
    503,
    'No browser of the pool became free in time for a client that connects to the pool.',
    (p: { pool: string; ahead: number }) =>
      `No browser of pool '${p.pool}' became free in time; ${p.ahead} ${p.ahead === 1 ? 'client waits' : 'clients wait'} before you. Connect again, or make the pool larger.`,
  ),
  pool_full: conflict(
    'The pool has its maximum of browsers.',
    (p: { pool: string }) => `Pool '${p.pool}' has as many browsers as its size.`,
  ),
  project_limit_reached: entry(
    429,
    'A pool of this size would exceed the limit of the project.',
    (p: { size: number; others: number; cap: number }) =>
      `A pool of ${p.size} does not fit: the project may run ${p.cap} browsers at once (max_concurrent_sessions), and its sessions and other pools take ${p.others}.`,
  ),
  pool_limit_reached: entry(
    429,
    'All pools together would exceed the limit of the organisation.',
    (p: { size: number; others: number; most: number }) =>
      `A pool of ${p.size} does not fit: the other pools have ${p.others} browsers, and the maximum is ${p.most} (GET /org/limits).`,
  ),
};
