import { connect, type Socket } from 'node:net';
import type { Destination } from './destinations.ts';
import { EgressError } from './refusals.ts';

/**
 * Opens a connection to a checked destination. It throws an `EgressError`, and lets go of everything it opened when the
 * signal aborts.
 */
export type Dial = (destination: Destination, options: DialOptions) => Promise<Socket>;

export interface DialOptions {
  signal: AbortSignal;
  onread?: Reading;
}

/**
 * Takes what is read straight from a buffer of its own, which is cheaper than a socket's events. A dial that can do it does;
 * with one that cannot, the socket emits as usual.
 */
export interface Reading {
  buffer(): Uint8Array;
  /** False: read no more until the socket is resumed. */
  callback(length: number, bytes: Uint8Array): boolean;
  /** What came along with a proxy's last word, before the caller has heard of the connection. */
  early(bytes: Buffer): void;
}

/**
 * Connects to the addresses that were checked, and only to those. IPv6 and IPv4 take turns (RFC 8305); each next one
 * starts when the last has failed or has kept us waiting, the first to answer wins and the others are dropped.
 */
export function directDial({ timeoutMs = 10_000, staggerMs = 250, attempts = 8 } = {}): Dial {
  return ({ host, port, addresses }, { signal, onread }) =>
    new Promise((resolve, reject) => {
      const waiting = inTurns(addresses).slice(0, attempts);
      const trying = new Set<Socket>();
      let next: NodeJS.Timeout | undefined;
      let lastError: NodeJS.ErrnoException | undefined;

      const finish = (settle: () => void) => {
        clearTimeout(next);
        clearTimeout(deadline);
        signal.removeEventListener('abort', abort);
        for (const socket of trying) socket.destroy();
        trying.clear();
        settle();
      };
      const abort = () => finish(() => reject(signal.reason));
      const deadline = setTimeout(() => {
        const message = `${host}:${port} did not answer within ${timeoutMs / 1000} s.`;
        finish(() => reject(new EgressError('connect_timeout', message)));
      }, timeoutMs);

      const tryNext = () => {
        clearTimeout(next);
        const address = waiting.shift();
        if (address === undefined) {
          if (trying.size > 0) return;
          const message = `${host}:${port} could not be reached (${lastError?.code ?? 'unknown'}).`;
          return finish(() => reject(new EgressError('connect_failed', message, { cause: lastError })));
        }
        // Never a name: the address that was checked is the address that is dialled.
        const socket = connect({
          host: address,
          port,
          ...(onread ? { onread } : {}),
          allowHalfOpen: true,
          noDelay: true,
          keepAlive: true,
          keepAliveInitialDelay: 60_000,
        });
        trying.add(socket);
        socket.on('error', (error) => {
          if (!trying.delete(socket)) return;
          lastError = error;
          tryNext();
        });
        socket.once('connect', () => {
          if (!trying.delete(socket)) return;
          finish(() => resolve(socket));
        });
        next = setTimeout(tryNext, staggerMs);
      };

      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      tryNext();
    });
}

/** The resolver's order within a family, the families alternating, the first one first. */
function inTurns(addresses: readonly string[]): string[] {
  const v6First = addresses[0]?.includes(':') ?? false;
  const firstFamily = addresses.filter((address) => address.includes(':') === v6First);
  const otherFamily = addresses.filter((address) => address.includes(':') !== v6First);
  return firstFamily
    .flatMap((address, i) => [address, ...otherFamily.slice(i, i + 1)])
    .concat(otherFamily.slice(firstFamily.length));
}
