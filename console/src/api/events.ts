import type { QueryClient } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import { streamHeartbeatMs } from '../../../src/lib/stream-heartbeat.ts';
import { useIdentity } from './identity.ts';
import { eventsOf } from './stream.ts';

interface ProjectEvent {
  id: number;
  type: string;
}

/** The queries to repeat when a resource of this kind changes, by the first word of the query's key. */
const readers: Record<string, readonly string[]> = {
  session: ['sessions', 'session', 'ready'],
  pool: ['pools'],
  profile: ['profiles', 'profile-versions'],
  extension: ['extensions'],
  proxy: ['proxies'],
  credential: ['credentials'],
  credential_provider: ['providers'],
  auth_connection: ['logins'],
  deployment: ['deployments'],
  invocation: ['invocations'],
  replay: ['replays'],
  api_key: ['keys'],
  project: ['projects'],
  node: ['ready'],
};

/** Queries that events keep up to date. */
export const keysWithEvents: ReadonlySet<string> = new Set(Object.values(readers).flat());

/** After this time without a byte the connection is lost: two heartbeats, and some time for a slow network. */
const QUIET_MS = 2 * streamHeartbeatMs + 10_000;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;
/** Changes within this time are read together. */
const GATHER_MS = 150;

let streaming = false;
const listeners = new Set<() => void>();

function setStreaming(next: boolean): void {
  if (streaming === next) return;
  streaming = next;
  for (const listener of listeners) listener();
}

/** Whether events arrive. Otherwise, screens poll. */
export const useStreaming = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => streaming,
  );

/** Follows `GET /events` while the tab is visible, and repeats the queries that an event concerns. Once for each tab. */
export function useEvents(client: QueryClient): void {
  const identity = useIdentity();
  useEffect(() => (identity ? followWhileVisible(client) : undefined), [identity, client]);
}

/** Browsers open at most six connections to a service for all tabs, so a hidden tab keeps none. It continues after the last event. */
function followWhileVisible(client: QueryClient): () => void {
  const changes = gather(client);
  let last: number | undefined;
  let running: AbortController | undefined;
  const update = () => {
    if (document.hidden) {
      running?.abort();
      running = undefined;
      return;
    }
    if (running) return;
    running = new AbortController();
    void follow(running.signal);
  };

  async function follow(signal: AbortSignal): Promise<void> {
    for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      try {
        const headers: Record<string, string> = last === undefined ? {} : { 'Last-Event-ID': String(last) };
        for await (const { id, type } of eventsOf<ProjectEvent>('/events', signal, { headers, quietMs: QUIET_MS })) {
          if (signal.aborted) return;
          wait = FIRST_WAIT_MS;
          const isFirst = last === undefined;
          last = id;
          if (type === 'stream.opened') setStreaming(true);
          const [kind = ''] = type.split('.');
          // There are no events for changes between a screen's first request and the start of the stream.
          if (type === 'stream.gap' || (type === 'stream.opened' && isFirst)) changes.add([...keysWithEvents]);
          else changes.add(readers[kind] ?? []);
        }
      } catch {
        // The stream was refused or broke. Screens poll until it is back, and show the error.
      }
      if (!signal.aborted) setStreaming(false);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }

  document.addEventListener('visibilitychange', update);
  update();
  return () => {
    document.removeEventListener('visibilitychange', update);
    running?.abort();
    changes.stop();
    setStreaming(false);
  };
}

/** Repeats queries after changes: several changes together, and not before the previous round is answered. */
function gather(client: QueryClient) {
  let pending = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;

  async function flush(): Promise<void> {
    const now = pending;
    pending = new Set();
    await client.invalidateQueries({ predicate: ({ queryKey }) => now.has(String(queryKey[1])) }).catch(() => {});
    timer = undefined;
    if (pending.size > 0) later();
  }
  function later(): void {
    if (!stopped) timer ??= setTimeout(() => void flush(), GATHER_MS);
  }

  return {
    add(names: readonly string[]) {
      for (const name of names) pending.add(name);
      if (pending.size > 0) later();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
