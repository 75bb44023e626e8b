import { connect, type Socket } from 'node:net';
import type { Destination } from './destinations.ts';
import { EgressError } from './refusals.ts';

/**
 * Opens a connection to a checked destination. It throws an `EgressError`, and closes everything it opened when the
 * signal aborts.
 */
export type Dial = (destination: Destination, options: DialOptions) => Promise<Socket>;

export interface DialOptions {
  signal: AbortSignal;
  onread?: Reading;
}

/**
 * Receives data directly from a reused buffer, which is cheaper than a socket's events. Where a dial does not support it,
 * the socket emits as usual.
 */
export interface Reading {
  buffer(): Uint8Array;
  /** Returns false to stop reading until the socket is resumed. */
  callback(length: number, bytes: Uint8Array): boolean;
  /** Receives bytes that arrived together with the proxy's last answer, before the caller has the connection. */
  early(bytes: Buffer): void;
}

/**
 * Connects only to the addresses that were checked. IPv6 and IPv4 alternate (RFC 8305); the next attempt
 * starts when the last has failed or takes too long. The first to connect wins and the others are dropped.
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
        // Never a name: only the checked address is dialled.
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

/** Alternates the families, beginning with the first address's. Within a family the resolver's order is kept. */
function inTurns(addresses: readonly string[]): string[] {
  const v6First = addresses[0]?.includes(':') ?? false;
  const firstFamily = addresses.filter((address) => address.includes(':') === v6First);
  const otherFamily = addresses.filter((address) => address.includes(':') !== v6First);
  return firstFamily
    .flatMap((address, i) => [address, ...otherFamily.slice(i, i + 1)])
    .concat(otherFamily.slice(firstFamily.length));
}
