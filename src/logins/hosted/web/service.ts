/** The service, as this page uses it: one connection, by a token that is part of no address. */
import { streamHeartbeatMs } from '../../../lib/stream-heartbeat.ts';
import type { Connection, ConnectionEvent, Exchanged, StateEvent } from '../../schema.ts';
import type { News, Submit } from './state.ts';

const LONGEST_WAIT_MS = 10_000;
const SILENCE_MS = 3 * streamHeartbeatMs;

/** The service refused. `final`: asking again is of no use. */
export class Refused extends Error {
  readonly status: number;
  readonly final: boolean;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
    this.final = [401, 403, 404, 410].includes(status);
  }
}

export const isFinal = (error: unknown): error is Refused => error instanceof Refused && error.final;

type Ask = (path: string, options?: { body?: object; signal?: AbortSignal }) => Promise<Response>;

export function service(connectionId: string) {
  // Relative to this page, to work behind any proxy path.
  const at = (path: string) => new URL(`../connections/${encodeURIComponent(connectionId)}${path}`, location.href);
  const kept = keptText(`login ${connectionId}`);
  const ended = keptText(`outcome ${connectionId}`);
  let token = kept.read();

  const ask: Ask = async (path, { body, signal } = {}) => {
    const headers = new Headers(token ? { Authorization: `Bearer ${token}` } : {});
    const posting = body && { method: 'POST', body: JSON.stringify(body) };
    if (posting) headers.set('Content-Type', 'application/json');
    const options: RequestInit = { ...posting, headers, cache: 'no-store', credentials: 'omit' };
    const response = await fetch(at(path), signal ? { ...options, signal } : options);
    if (response.ok) return response;
    const { message = '' } = (await response.json().catch(() => ({}))) as { message?: string };
    throw new Refused(response.status, message);
  };
  const state = async () => (await (await ask('')).json()) as Connection;

  return {
    get hasToken(): boolean {
      return Boolean(token);
    },

    /** Exchanges the code of the address. A tab that did so before keeps its token. */
    async exchange(code: string): Promise<void> {
      const response = await ask('/exchange', { body: { code } });
      const { jwt } = (await response.json()) as Exchanged;
      token = jwt;
      kept.write(jwt);
      ended.remove();
    },

    state,
    submit: (body: Submit) => ask('/submit', { body }),
    cancel: () => ask('/cancel', { body: {} }),

    /** At the end: the token is of no use any more, and the outcome is for a page that is loaded again. */
    end(outcome: object): void {
      kept.remove();
      ended.write(JSON.stringify(outcome));
    },
    forget: () => kept.remove(),
    outcome: () => JSON.parse(ended.read() ?? 'null') as unknown,

    /** Reports each state until `isOver` returns true. Reconnects for as long as that may help. */
    async follow({
      onState,
      onLost,
      isOver,
    }: {
      onState(news: News): void;
      onLost(lost: boolean): void;
      isOver(): boolean;
    }): Promise<void> {
      for (let attempt = 0; !isOver(); attempt += 1) {
        try {
          await eachState(ask, (event) => {
            attempt = 0;
            onLost(false);
            onState(event);
          });
          if (isOver()) return;
          onState(await state());
        } catch (error) {
          if (isFinal(error)) throw error;
          onLost(true);
        }
        if (!isOver()) await pause(Math.min(LONGEST_WAIT_MS, 500 * 2 ** attempt));
      }
    },
  };
}

async function eachState(ask: Ask, onState: (event: StateEvent) => void): Promise<void> {
  const silence = new AbortController();
  let timer: number | undefined;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  heard();
  try {
    const { body } = await ask('/events', { signal: silence.signal });
    if (!body) return; // no answer that has events
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (let read; !(read = await reader.read()).done;) {
      heard();
      const frames = (text + read.value).split('\n\n');
      text = frames.pop() ?? '';
      for (const event of frames.map(eventOf)) if (event?.event === 'managed_auth_state') onState(event);
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

function eventOf(frame: string): ConnectionEvent | undefined {
  const data = frame
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5))
    .join('\n');
  try {
    return JSON.parse(data) as ConnectionEvent;
  } catch {
    return undefined; // a comment
  }
}

/** Ends early when the person comes back to the page or the network returns. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
      removeEventListener('online', done);
      resolve();
    };
    const seen = () => document.visibilityState === 'visible' && done();
    const timer = setTimeout(done, ms * (0.75 + Math.random() / 2));
    document.addEventListener('visibilitychange', seen);
    addEventListener('online', done);
  });
}

/** The token or the outcome, for as long as the tab is open, so that the page can be loaded again. Browsers may forbid it. */
function keptText(name: string) {
  const tryTo = <T>(use: () => T): T | undefined => {
    try {
      return use();
    } catch {
      return undefined;
    }
  };
  return {
    read: () => tryTo(() => sessionStorage.getItem(name)),
    write: (text: string) => tryTo(() => sessionStorage.setItem(name, text)),
    remove: () => tryTo(() => sessionStorage.removeItem(name)),
  };
}
