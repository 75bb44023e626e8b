import type { Outcome } from '../chromium/workshop/worker-reports.ts';
import { WorkerError } from '../chromium/workshop/worker.ts';
import { ServiceError } from '../errors.ts';
import type { Log } from '../lib/log.ts';
import { mergedRuns } from '../lib/merged-runs.ts';
import { retried } from '../lib/retry.ts';
import { onBehalfOf } from '../lib/scope.ts';
import type { Hub } from './hub.ts';
import type { InvocationRow, InvocationStore } from './invocation-store.ts';
import type { LineWriter } from './logs.ts';
import type { RunHistory } from './run-history.ts';
import type { Workers } from './workers.ts';

/** Notifications can be missed while the connection to the database is lost; so the queue is looked at this often anyway. */
const lookMs = 5000;
const mostWords = 4000;
const notHere = 'The service failed to run this invocation. Invoke it again.';

export interface RunsDeps {
  store: Pick<InvocationStore, 'claim' | 'finish' | 'overAmong'>;
  workers: Pick<Workers, 'take' | 'giveBack'>;
  hub: Pick<Hub, 'on'>;
  nodeId: string;
  /** The most this node runs at once. */
  most: number;
  /** The most of one deployment, on all nodes together. */
  mostOfApp: number;
  /** Whether the disk has only its reserve left: queued invocations are not started then. */
  short?: () => boolean;
  /** Projects that wait because they have filled this node's disk. Their invocations stay in the queue, or run on another node. */
  offenders: () => string[];
  linesOf: (row: InvocationRow) => Promise<LineWriter>;
  /** Ends the browsers of an invocation that has ended. */
  endBrowsers: (id: string) => Promise<void>;
  /** Called when an invocation of a deployment that another has replaced has ended here. */
  onReplacedOver: () => void;
  history: Pick<RunHistory, 'note'>;
  log: Log;
}

/** Runs the invocations that this node takes from the queue. */
export function runs(deps: RunsDeps) {
  const { store, workers, hub, nodeId, log } = deps;
  const running = new Map<string, { cancel: (why: string) => void; over: Promise<void> }>();
  /** Invocations with an end that this node is writing. Notifications about them are ignored. */
  const settling = new Set<string>();
  let closed = false;

  /** Takes as many as there is room for. Never rejects. */
  const pump = mergedRuns(async () => {
    try {
      while (!closed && running.size < deps.most && !deps.short?.()) {
        const row = await store.claim(nodeId, deps.mostOfApp, deps.offenders());
        if (!row) return;
        begin(row);
      }
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'invocations.not_claimed');
    }
  });

  function begin(row: InvocationRow): void {
    let cancel = (_why: string) => {};
    const cancelled = new Promise<Outcome>((resolve) => (cancel = (failure) => resolve({ failure })));
    const owner = { kind: 'invocation', id: row.id, end: () => cancel(notHere) } as const;
    const over = onBehalfOf(owner, () => execute(row, cancelled))
      .catch((error: Error) => log.error({ invocation: row.id, error: error.message }, 'invocation.not_settled'))
      .finally(() => {
        running.delete(row.id);
        void pump();
      });
    running.set(row.id, { cancel, over });
  }

  async function execute(row: InvocationRow, cancelled: Promise<Outcome>): Promise<void> {
    const lines = await deps.linesOf(row).catch((error: Error) => {
      log.error({ invocation: row.id, error: error.message }, 'invocation.no_log');
      return undefined;
    });
    if (!lines) return settle(row.id, { status: 'failed', reason: notHere });
    const late = setTimeout(
      () => running.get(row.id)?.cancel(`It ran longer than ${row.timeout_seconds} s (async_timeout_seconds).`),
      row.timeout_seconds * 1000,
    );
    let outcome: Outcome;
    try {
      outcome = await act(row, lines, cancelled);
    } catch (error) {
      outcome = { failure: reasonOf(row, error) };
    } finally {
      clearTimeout(late);
    }
    await lines.close();
    const end =
      'failure' in outcome
        ? { status: 'failed' as const, reason: withLines(lines.hide(outcome.failure), lines.tail()) }
        : { status: 'succeeded' as const, output: outcome.output };
    await settle(row.id, end);
    await deps.endBrowsers(row.id);
  }

  /** Errors of the service are only logged: they may contain paths of this machine. */
  function reasonOf(row: InvocationRow, error: unknown): string {
    if (error instanceof WorkerError || error instanceof ServiceError) return error.message;
    log.error({ invocation: row.id, error: error as Error }, 'invocation.no_worker');
    return notHere;
  }

  /** From a worker to an outcome. If the action did not end by itself, the worker is ended with all its processes. */
  async function act(row: InvocationRow, lines: LineWriter, cancelled: Promise<Outcome>): Promise<Outcome> {
    const taking = workers.take(row.deployment_id, (line) => lines.add(line));
    const worker = await Promise.race([taking, cancelled]);
    if (!('run' in worker)) {
      taking
        .then((late) => workers.giveBack(row.deployment_id, late))
        .catch((error: Error) => log.warn({ error: error.message }, 'worker.not_kept'));
      return worker;
    }
    const { id, app_name: app, action_name: action, payload } = row;
    const done = worker.run({ id, app, action, payload }, (line) => lines.add(line));
    const first = await Promise.race([done.then((outcome) => ({ outcome })), cancelled]);
    if ('outcome' in first) {
      void workers
        .giveBack(row.deployment_id, worker)
        .catch((error: Error) => log.warn({ error: error.message }, 'worker.not_kept'));
      return first.outcome;
    }
    await worker.stop('It was cancelled.');
    return first;
  }

  /** The database may be away for a moment; the outcome is written when it is back. */
  async function settle(id: string, end: Parameters<InvocationStore['finish']>[1]): Promise<void> {
    settling.add(id);
    try {
      const write = async () => {
        const over = await store.finish(id, end, nodeId);
        if (over) deps.history.note(over.project_id, Number(over.kept_bytes));
        if (over?.replaced) deps.onReplacedOver();
      };
      await retried(write, ({ message }) => {
        log.error({ invocation: id, error: message }, 'invocation.not_settled');
        return closed ? 'stop' : 'again'; // the next start of the service fails it
      });
    } finally {
      settling.delete(id);
    }
  }

  /** Ends what runs here and has been ended in the database: by a client, with its deployment, or by other nodes. */
  async function endSettled(ids: string[] = [...running.keys()]): Promise<void> {
    for (const id of await store.overAmong(ids)) running.get(id)?.cancel('It was ended.');
  }

  hub.on('queue', () => void pump());
  hub.on('state', (id) => {
    if (settling.has(id)) return; // then the next is taken
    if (running.has(id)) void endSettled([id]).catch(() => {});
    else void pump(); // another may have made room
  });
  const timer = setInterval(() => {
    void pump();
    void endSettled().catch(() => {});
  }, lookMs).unref();

  return {
    pump,
    endSettled,
    count: () => running.size,
    async close(): Promise<void> {
      closed = true;
      clearInterval(timer);
      await pump();
      for (const { cancel } of running.values()) cancel('The service was stopped while it ran.');
      await Promise.all([...running.values()].map(({ over }) => over));
    },
  };
}

/** The app chose the words, and the lines are cut already. */
function withLines(failure: string, lines: string[]): string {
  const words = failure.slice(0, mostWords);
  return lines.length === 0 ? words : `${words}\nIts last lines:\n${lines.join('\n')}`;
}
