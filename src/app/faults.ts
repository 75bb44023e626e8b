import { Counter, type Registry } from 'prom-client';
import { isMapperFault } from '../chromium/bidi/bidi.ts';
import type { Log } from '../lib/log.ts';
import { currentOwner } from '../lib/scope.ts';

type Kind = 'rejection' | 'exception';

/** Of this process: a fault that nothing caught does not say which service it belongs to. */
const counts = new Map<string, { kind: Kind; owner: string; count: number }>();

function count(kind: Kind, owner: string): void {
  const known = counts.get(`${kind} ${owner}`);
  if (known) known.count += 1;
  else counts.set(`${kind} ${owner}`, { kind, owner, count: 1 });
}

/**
 * Takes what nothing caught: rejections without a handler, and exceptions in callbacks. Whose work failed is ended with an error, and the
 * service goes on. Without an owner a rejection is logged and counted. An exception without one ends the service: it came from what all
 * tenants share, and that may be half changed.
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
    help: 'Rejections and exceptions that no code caught, by what they were the work of and were ended with: a session, a request.',
    labelNames: ['kind', 'owner'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { kind, owner, count } of counts.values()) this.inc({ kind, owner }, count);
    },
  });
}
