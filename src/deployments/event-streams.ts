import { setTimeout as sleep } from 'node:timers/promises';
import { started } from '../lib/started.ts';
import type { Hub } from './hub.ts';
import { toInvocation } from './invocation-service.ts';
import type { InvocationRow, InvocationStore, Light } from './invocation-store.ts';
import type { LogStore } from './log-store.ts';
import type { App, DeploymentEvent, InvocationEvent } from './schema.ts';
import { toDeployment } from './service.ts';
import { deploymentLife, invocationLife } from './state.ts';
import type { DeploymentRow } from './store.ts';

const linesAtOnce = 500;
/** Notifications may be missed; so it looks this often anyway. */
const lookMs = 2000;
/** The readers of one project together look once in this time: each look is a few queries, and two hundred readers delayed all requests. */
const shareMs = 10;

interface FollowDeps {
  logs: Pick<LogStore, 'after'>;
  hub: Pick<Hub, 'wait'>;
  deployment: (id: string) => Promise<DeploymentRow | undefined>;
  invocations: Pick<InvocationStore, 'find' | 'withTexts' | 'statusOf'>;
  appsOf: (deploymentId: string) => AsyncIterable<App>;
}

/** A client that reads the events of one deployment or invocation. */
interface Reader {
  id: string;
  /** Lines before this time are left out. */
  since: Date | null;
  signal: AbortSignal;
  project: string;
  /** Waits for room for an event of so many bytes. */
  reserve: (bytes: number) => Promise<void>;
}

/** The events of deployments and invocations: their lines, and each state that is seen. Both end with a state in which nothing follows. */
export function following(deps: FollowDeps) {
  const now = () => new Date().toISOString();
  /** How many readers each project has. */
  const readers = new Map<string, number>();

  function count(project: string, more: 1 | -1): void {
    const sum = (readers.get(project) ?? 0) + more;
    if (sum > 0) readers.set(project, sum);
    else readers.delete(project);
  }

  /**
   * The state is read before the lines: all lines of a state that is final are stored by then. The row is read when its state is sent, and is
   * not kept: it may have megabytes, and there may be many readers, each as slow as it likes.
   */
  async function* follow<R extends { status: string }, E>(
    { id, since, signal, project }: Reader,
    how: {
      status: () => Promise<R['status'] | undefined>;
      read: () => Promise<R | undefined>;
      describe: (row: R) => AsyncIterable<E>;
      last: (status: R['status']) => boolean;
    },
  ): AsyncGenerator<E | { event: 'log'; timestamp: string; message: string }> {
    let sent: string | undefined;
    count(project, 1);
    try {
      for (let after = '0'; !signal.aborted;) {
        const heard = started(deps.hub.wait(id, lookMs, signal));
        const status = await how.status();
        if (status === undefined) return;
        for (;;) {
          const lines = await deps.logs.after(id, after, since, linesAtOnce);
          for (const { id, at, message } of lines) {
            yield { event: 'log', timestamp: at.toISOString(), message };
            after = id;
          }
          if (lines.length === 0) break;
        }
        if (status !== sent) {
          const events = await describeAs(status, how);
          if (!events) continue; // it has moved on: the lines before that come first
          yield* events;
          sent = status;
        }
        if (how.last(status)) return;
        await heard;
        await sleep(shareMs * readers.get(project)!, undefined, { signal }).catch(() => {});
      }
    } finally {
      count(project, -1);
    }
  }

  async function describeAs<R extends { status: string }, E>(
    status: R['status'],
    { read, describe }: { read: () => Promise<R | undefined>; describe: (row: R) => AsyncIterable<E> },
  ): Promise<AsyncIterable<E> | undefined> {
    const row = await read();
    return row?.status === status ? describe(row) : undefined;
  }

  return {
    ofDeployment: (reader: Reader): AsyncGenerator<DeploymentEvent> =>
      follow<DeploymentRow, DeploymentEvent>(reader, {
        status: async () => (await deps.deployment(reader.id))?.status,
        read: () => deps.deployment(reader.id),
        last: (status) => deploymentLife.isFinal(status),
        async *describe(row) {
          if (row.status === 'running')
            for await (const { deployment: _, ...app } of deps.appsOf(row.id))
              yield { event: 'app_version_summary', timestamp: now(), ...app };
          yield { event: 'deployment_state', timestamp: now(), deployment: toDeployment(row) };
        },
      }),

    ofInvocation: (reader: Reader): AsyncGenerator<InvocationEvent> =>
      follow<Light<InvocationRow>, InvocationEvent>(reader, {
        status: () => deps.invocations.statusOf(reader.id),
        read: () => deps.invocations.find(reader.id),
        last: (status) => invocationLife.isFinal(status),
        async *describe(row) {
          await reader.reserve(2 * row.bytes); // the texts, and the event
          if (reader.signal.aborted) return;
          const invocation = toInvocation(await deps.invocations.withTexts(row));
          yield { event: 'invocation_state', timestamp: now(), invocation };
        },
      }),
  };
}
