import type { Writable } from 'node:stream';

/** How long a browser may take to exit after its pipe has ended. */
const LINGER_MS = 20_000;

interface Piped {
  readonly toBrowser: Writable;
  readonly exited: Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * Ends a browser that does not exit when its pipe ends: its processes are stopped, or hang. Without a pipe nothing can use it, and clients
 * would wait for its replacement for ever.
 */
export function endWithPipe({ toBrowser, exited, stop }: Piped): void {
  toBrowser.once('close', () => {
    const late = setTimeout(() => void stop(), LINGER_MS);
    void exited.then(() => clearTimeout(late));
  });
}
