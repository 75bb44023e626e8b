import type { IncomingMessage } from 'node:http';
import { ownWork } from './scope.ts';
import { loopPace, nextTurn } from './turns.ts';

/**
 * Handles requests in pieces of some milliseconds. Node reads all connections that have data in one turn of the event loop: 500 connections
 * with eight requests each stopped the service for 0.4 s. Clients take turns. A request that finds nothing waiting is handled at once.
 */
export function pacedRequests<Rest extends unknown[]>(
  handle: (request: IncomingMessage, ...rest: Rest) => void,
  clientOf: (request: IncomingMessage) => unknown = ({ socket }) => socket.remoteAddress,
): (request: IncomingMessage, ...rest: Rest) => void {
  const waiting = new Map<unknown, (() => void)[]>();

  async function handleInTurns(client: unknown, tasks: (() => void)[]): Promise<void> {
    waiting.set(client, tasks);
    try {
      while (tasks.length > 0) {
        await nextTurn(client);
        while (tasks.length > 0 && !loopPace.isOver()) {
          tasks.shift()!();
          await new Promise((resolve) => process.nextTick(resolve)); // its hooks run now, in the time of this turn
        }
      }
    } finally {
      waiting.delete(client);
    }
  }

  return (request, ...rest) => {
    const client = clientOf(request);
    const tasks = waiting.get(client);
    if (!tasks && !loopPace.isOver()) return handle(request, ...rest);
    const run = ownWork();
    const task = () => {
      if (!request.socket.destroyed) run(() => handle(request, ...rest));
    };
    if (tasks) tasks.push(task);
    else void handleInTurns(client, [task]);
  };
}
