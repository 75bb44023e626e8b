import { setTimeout as delay } from 'node:timers/promises';
import type { AttachedPage } from './attached-pages.ts';
import type { FrameWorld, PageFrames } from './frames.ts';
import { FormsError } from './types.ts';
import type { WorldCalls } from './world-calls.ts';

/** How long nothing may happen before a page is at rest. */
const QUIET_MS = 120;
/** From here on a quiet document is enough, or the lack of requests: the page polls or animates. */
const PATIENCE_MS = 3000;
/** The same while a request is in flight that sends something: the server may compute the hash of a password. */
const POSTING_MS = 8000;
/** A document that is still being parsed after this time may never end. */
const LOADING_MS = 8000;
/** How long a frame may take to say when it last changed. */
const ASK_MS = 1000;

interface SettleDeps {
  frames: PageFrames;
  calls: WorldCalls;
}

/**
 * Waits until the page is at rest after an act or a navigation: no document on its way, no request of it in flight, and the documents
 * have stopped changing. Each step waits for a condition, and none for a fixed time.
 */
export async function settle(
  page: AttachedPage,
  { deadlineMs, signal }: { deadlineMs: number; signal?: AbortSignal },
  { frames, calls }: SettleDeps,
): Promise<void> {
  const { traffic } = page;
  const started = performance.now();
  const left = () => started + deadlineMs - performance.now();
  let worlds: readonly FrameWorld[] = [];
  let documents = -1;
  let fresh = true;

  /** How long the documents have not changed; a negative number while the main one is being parsed, or cannot be asked. */
  async function stillFor(mayLoad: boolean): Promise<number> {
    if (documents !== traffic.documents || worlds.length === 0) {
      documents = traffic.documents;
      worlds = await frames.worlds(page);
    }
    const ms = Math.max(1, Math.min(ASK_MS, left()));
    const answers = await Promise.all(
      worlds.map((frame) => calls.call(frame, ms, 'stillSince', fresh).catch(() => undefined)),
    );
    fresh = false;
    const [main] = answers;
    if (!main) worlds = []; // another document has come
    if (!main || (main.state === 'loading' && !mayLoad)) return -1;
    return answers.reduce((least, answer) => Math.min(least, answer?.still ?? Infinity), Infinity);
  }

  while (left() > 0 && !page.gone) {
    signal?.throwIfAborted();
    // Each document starts its own patience: it has scripts to load.
    const waited = performance.now() - Math.max(started, traffic.committedAt);
    const patience = traffic.posting > 0 ? POSTING_MS : PATIENCE_MS;
    const patient = waited < patience;
    if (traffic.navigating || (patient && traffic.waiting > 0)) {
      await change(traffic.listen, traffic.navigating ? left() : Math.min(left(), patience - waited), signal);
      continue;
    }
    if (documents !== traffic.documents) {
      // Asked early, so that from here on the document's changes are noted.
      await stillFor(false).catch(notYet);
      continue;
    }
    const rest = performance.now() - traffic.lastAt;
    if (rest < QUIET_MS && patient) {
      await change(traffic.listen, Math.min(left(), QUIET_MS - rest), signal);
      continue;
    }
    const still = await stillFor(waited > LOADING_MS).catch(notYet);
    if (traffic.navigating || (patient && traffic.waiting > 0)) continue;
    if (still >= QUIET_MS || (!patient && still >= 0 && traffic.waiting === 0)) {
      traffic.takeForBackground();
      return;
    }
    await delay(Math.max(1, Math.min(left(), QUIET_MS - Math.max(0, still) + 1)), undefined, signal && { signal });
  }
}

/** A page that has no document right now, or hangs, may have one again; a closed page will not. */
function notYet(error: unknown): number {
  if (error instanceof FormsError && error.fault === 'page_gone') throw error;
  return -1;
}

/** Resolves at the next change, or after this time. */
function change(listen: (listener: () => void) => () => void, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (error?: Error) => {
      clearTimeout(timer);
      stop();
      signal?.removeEventListener('abort', abort);
      if (error) reject(error);
      else resolve();
    };
    const abort = () => finish(signal!.reason as Error);
    const stop = listen(() => finish());
    const timer = setTimeout(finish, Math.max(1, ms));
    signal?.addEventListener('abort', abort, { once: true });
  });
}
