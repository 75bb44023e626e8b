import { Counter, type Registry } from 'prom-client';
import { isMapperFault } from '../chromium/bidi/bidi.ts';
import type { Log } from '../lib/log.ts';
import { currentOwner } from '../lib/scope.ts';

type Kind = 'rejection' | 'exception';

/** Counted for the process: an uncaught fault does not name its service. */
const counts = new Map<string, { kind: Kind; owner: string; count: number }>();

function count(kind: Kind, owner: string): void {
  const known = counts.get(`${kind} ${owner}`);
  if (known) known.count += 1;
  else counts.set(`${kind} ${owner}`, { kind, owner, count: 1 });
}

/**
 * Handles uncaught faults: rejections without a handler, and exceptions in callbacks. The owner of the failed work (a session or a request)
 * is ended with an error, and the service continues. A rejection without an owner is logged and counted. An exception without an owner ends
 * the service: it may have left shared state half changed.
 */
export function takeFaults({ log, onFatal }: { log: Log; onFatal: (error: Error) => void }): void {
  const take = (kind: Kind, error: Error): void => {
    const owner = currentOwner();
    count(kind, owner?.kind ?? 'none');
    log.error({ kind, owner: owner?.kind, id: owner?.id, error }, 'fault');
    if (!owner) return kind === 'exception' ? onFatal(error) : undefined;
    try {
      owner.end(error);
    } catch (failed) {
      onFatal(failed as Error);
    }
  };
  process.on('uncaughtException', (error) => take('exception', asError(error)));
  process.on('unhandledRejection', (reason) => {
    if (isMapperFault(reason)) log.warn({ error: reason }, 'bidi.rejection_unhandled');
    else take('rejection', asError(reason));
  });
}

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

export function measureFaults(registry: Registry): Counter {
  return new Counter({
    name: 'corral_faults_total',
    help: 'Rejections and exceptions that no code caught, by the kind of their owner, which was ended: a session, a request.',
    labelNames: ['kind', 'owner'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { kind, owner, count } of counts.values()) this.inc({ kind, owner }, count);
    },
  });
}
