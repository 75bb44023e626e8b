import { isUtf8 } from 'node:buffer';
import { pacedTasks } from '../../lib/turns.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { cleanBody } from './redact.ts';
import { isBody } from './shapes.ts';
import { rootOf, type Target } from './target.ts';

/** Bodies are read whole before they are cut, so larger ones are left out. Compressed size, as the network counts it. */
const MOST_BYTES = 2 * 1024 * 1024;
/** The most bodies of one target that are read at once, so that a page that hangs holds up only itself. */
const MOST_AT_ONCE = 4;
/** The most responses that wait for their body, and the most memory of them in bytes; more are captured without. */
const MOST_WAITING = 1000;
const MOST_WEIGHT = 4 * 2 ** 20;

interface Wanted {
  target: Target;
  requestId: string;
  bytes: number;
  limit: number;
  /** About how many bytes of memory the response takes while it waits. */
  weight: number;
}

interface Line {
  reading: number;
  jobs: (() => void)[];
  left: Set<(body?: string) => void>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Reads the bodies of responses, and calls `done` once for each: with the redacted text, or without. Bodies wait while their page
 * has more to do, for as long as `patience` says, in milliseconds: reading them at once made a page of 300 requests load a fifth longer.
 */
export function bodies(client: LocalClient, patience: (target: Target) => number) {
  const waiting = new Map<Target, Line>();
  let [count, weight] = [0, 0];
  /** A page may close with a thousand responses, and a browser with all of its pages. */
  const inTurns = pacedTasks();

  function startLater(target: Target, line: Line): void {
    const ms = patience(target);
    if (ms === 0) start(line);
    else line.timer ??= setTimeout(() => start(line), ms).unref();
  }

  function start(line: Line): void {
    clearTimeout(line.timer);
    line.timer = undefined;
    while (line.reading < MOST_AT_ONCE && line.jobs.length > 0) line.jobs.shift()!();
  }

  function read({ target, requestId, bytes, limit, weight: own }: Wanted, emit: (body?: string) => void): void {
    if (bytes > MOST_BYTES || count >= MOST_WAITING || weight + own > MOST_WEIGHT) return emit();
    const line = waiting.get(target) ?? {
      reading: 0,
      jobs: [],
      left: new Set<(body?: string) => void>(),
      timer: undefined,
    };
    waiting.set(target, line);
    count += 1;
    weight += own;
    const done = (body?: string) => {
      if (!line.left.delete(done)) return;
      count -= 1;
      weight -= own;
      emit(body);
    };
    line.left.add(done);
    const finish = (body?: string) => {
      done(body);
      line.reading -= 1;
      start(line);
      if (line.left.size === 0 && waiting.get(target) === line) waiting.delete(target);
    };
    line.jobs.push(() => {
      line.reading += 1;
      client.ask(isBody, 'Network.getResponseBody', { requestId }, target.sessionId).then(
        ({ body, base64Encoded }) => finish(textOf(body, base64Encoded, limit)),
        () => finish(), // the page has moved on, or does not answer
      );
    });
    startLater(target, line);
  }

  /** Responses that wait are captured without a body. */
  function gone(target: Target): void {
    const line = waiting.get(target);
    waiting.delete(target);
    if (!line) return;
    clearTimeout(line.timer);
    line.jobs = [];
    void inTurns(Array.from(line.left, (done) => () => done()));
  }

  return Object.assign(read, {
    /** Reads what waits in a page. */
    now(page: Target): void {
      for (const [target, line] of waiting) if (rootOf(target) === page) start(line);
    },

    gone,

    /** Nothing more is read. */
    close(): void {
      for (const target of waiting.keys()) gone(target);
    },
  });
}

function textOf(body: string, isBase64: boolean, limit: number): string | undefined {
  if (!isBase64) return cleanBody(body, limit);
  const bytes = Buffer.from(body, 'base64');
  return isUtf8(bytes) ? cleanBody(bytes.toString(), limit) : undefined;
}
