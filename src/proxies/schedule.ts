import { ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import type { ProxyRow, ProxyStore } from './store.ts';

/** How often a node looks for due checks, and how many it runs at a time. */
const lookMs = 30_000;
const atOnce = 4;

/** Checks proxies every `minutes` minutes; 0 for never. The database says which are due, so any node may check them. */
export function checkSchedule({
  store,
  check,
  minutes,
  log,
}: {
  store: Pick<ProxyStore, 'takeDue'>;
  /** Throws when the check failed, after recording that. */
  check: (row: ProxyRow) => Promise<ProxyRow>;
  minutes: number;
  log: Log;
}) {
  let looking: Promise<void> | undefined;
  let lookAgain = false;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** Runs the due checks, a few at a time, until there are none. */
  async function checkDue(): Promise<void> {
    for (;;) {
      const due = closed ? [] : await store.takeDue(atOnce, minutes);
      if (due.length === 0) return;
      await Promise.all(
        due.map(async (row) => {
          const before = row.status;
          const after = await check(row).catch((error: Error) => {
            const code = error instanceof ServiceError ? error.extras.details?.[0]?.code : undefined;
            log.debug({ proxy: row.id, code, error: error.message }, 'proxy.check_failed');
            return undefined;
          });
          const status = after?.status ?? 'unavailable';
          if (before !== status) log.info({ proxy: row.id, status }, 'proxy.status');
        }),
      );
    }
  }

  /** Starts a run, or another one after the current. */
  function look() {
    if (closed || minutes === 0) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    clearTimeout(timer);
    looking = checkDue()
      .catch((error: Error) => log.warn({ error: error.message }, 'proxy.checks_not_done'))
      .finally(() => {
        looking = undefined;
        if (closed) return;
        if (lookAgain) look();
        else timer = setTimeout(look, lookMs).unref();
      });
    lookAgain = false;
  }

  return {
    look,

    async close(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      await looking;
    },
  };
}
