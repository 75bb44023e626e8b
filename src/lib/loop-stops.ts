import { performance } from 'node:perf_hooks';

/** At rest. A stop of at least this long is always seen; a shorter one may fall between two ticks. */
const QUIET_MS = 100;
/** While the loop has work. An idle service would be woken up for nothing by a timer this short. */
const BUSY_MS = 20;
/** What a timer is late by without anybody's fault. */
const LATE_MS = 2;

const HOUR_MS = 3_600_000;
const SLOTS = 12;

interface Stop {
  ms: number;
  at: Date;
}

/**
 * Measures how long the event loop is blocked: all requests, sockets and timers of the process wait for it. A late timer shows
 * that there was a stop, and the time that the loop was not idle since the tick before says how long it was. It measures from `start()`
 * on: the start of a service compiles all schemas at once, while no client waits.
 */
export function watchLoop(onStop: (ms: number) => void = () => {}) {
  let longest: Stop | undefined;
  /** The longest of each five minutes of the last hour, by the number of these five minutes. */
  const slots = new Map<number, number>();
  let before: ReturnType<typeof performance.eventLoopUtilization>;
  let timer: NodeJS.Timeout | undefined;

  function tick(due: number) {
    const late = performance.now() - due;
    const now = performance.eventLoopUtilization();
    const { active } = performance.eventLoopUtilization(now, before);
    before = now;
    if (late > LATE_MS && active > BUSY_MS) keep(active);
    next(active > BUSY_MS / 4 ? BUSY_MS : QUIET_MS);
  }

  function next(ms: number) {
    timer = setTimeout(tick, ms, performance.now() + ms).unref();
  }

  function keep(ms: number) {
    if (!longest || ms > longest.ms) longest = { ms, at: new Date() };
    const slot = slotOf(Date.now());
    slots.set(slot, Math.max(slots.get(slot) ?? 0, ms));
    if (slots.size > SLOTS + 1) slots.delete(slots.keys().next().value!);
    onStop(ms);
  }

  return {
    start() {
      before = performance.eventLoopUtilization();
      next(QUIET_MS);
    },
    /** Since `start()`. */
    longest: (): Stop | undefined => longest,
    /** In the last hour; 0 when there was none. */
    longestMs(): number {
      const oldest = slotOf(Date.now() - HOUR_MS);
      return Math.max(0, ...[...slots].filter(([slot]) => slot >= oldest).map(([, ms]) => ms));
    },
    close: () => clearTimeout(timer),
  };
}

export type LoopWatch = ReturnType<typeof watchLoop>;

const slotOf = (time: number) => Math.floor(time / (HOUR_MS / SLOTS));
