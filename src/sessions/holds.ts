import type { Engine } from '../chromium/engine.ts';
import { SessionEnded, type Ending } from './state.ts';
import { timings } from './timings.ts';

/** A use of the session. While there is one, the session stays awake and does not time out. */
export interface Hold {
  engine: Engine;
  /** Aborts when the browser is returned to its pool: streams to the last holder must not show the next holder's session. */
  until: AbortSignal;
  /** Idempotent. */
  release(): void;
  /** Keeps the session awake for work that no request waits for, until the returned function is called. The session may still time out. */
  stayAwake(): () => void;
}

/** The uses of one session. Without any the session goes to sleep, and later times out. */
export function sessionHolds({
  wake,
  dozeOff,
  stayUp,
  timeoutSeconds,
  secondMs = timings.secondMs,
  until,
  ending,
  onHold,
  onIdle,
}: {
  /** Resolves with the browser once it answers. */
  wake: () => Promise<Engine>;
  /** Lets the session sleep after a delay, unless it is held by then. */
  dozeOff: () => void;
  stayUp: () => void;
  /** Undefined: the session does not time out. */
  timeoutSeconds: () => number | undefined;
  secondMs?: number | undefined;
  until: () => AbortSignal;
  ending: () => Ending | undefined;
  onHold: () => void;
  onIdle: () => void;
}) {
  let holds = 0;
  let busy = 0;
  let idle: NodeJS.Timeout | undefined;
  let endsAt: Date | undefined;

  /** The last hold was released. */
  function rest() {
    if (ending()) return;
    dozeOff();
    const seconds = timeoutSeconds();
    if (seconds === undefined) return;
    idle = setTimeout(onIdle, seconds * secondMs);
    endsAt = new Date(Date.now() + seconds * secondMs);
  }

  function stopTimers() {
    stayUp();
    clearTimeout(idle);
    endsAt = undefined;
  }

  function stayAwake(): () => void {
    busy++;
    return once(() => {
      busy--;
      if (busy === 0 && holds === 0 && !ending()) dozeOff();
    });
  }

  return {
    /** Wakes the session and keeps it awake. Rejects when the session has ended or its browser cannot be restarted. */
    async hold(): Promise<Hold> {
      const ended = ending();
      if (ended) throw new SessionEnded(ended);
      holds++;
      onHold();
      stopTimers();
      const release = once(() => {
        holds--;
        if (holds === 0) rest();
      });
      try {
        return { engine: await wake(), until: until(), release, stayAwake };
      } catch (error) {
        release();
        const ended = ending();
        throw ended ? new SessionEnded(ended) : error;
      }
    },

    get any() {
      return holds > 0;
    },
    get count() {
      return holds;
    },
    /** When the idle timeout runs out, if the session is not used until then; undefined while it is used. */
    get endsAt() {
      return endsAt;
    },
    /** Whether the session has to stay awake. */
    get inUse() {
      return holds > 0 || busy > 0;
    },

    stopTimers,
    /** Restarts the idle timeout. */
    restartTimers() {
      stopTimers();
      if (holds === 0) rest();
    },
  };
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    work();
  };
}
