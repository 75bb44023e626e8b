import { totalmem } from 'node:os';

/** Left for the system, the service and its database when sessions take all they can. */
const RESERVED_BYTES = 2 ** 30;

/** What all sessions together may take of this machine, or of the service's container. Half of a small one. */
export function sessionsBytes(): number {
  const constrained = process.constrainedMemory();
  const bytes = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.floor(Math.max(bytes / 2, bytes - RESERVED_BYTES));
}
