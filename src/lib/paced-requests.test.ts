import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { pacedRequests } from './paced-requests.ts';

function busy(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until;);
}

/** Requests that arrive in one turn, each of which takes 10 ms. */
function arrive(paths: string[], clientOf?: () => unknown) {
  const handled: string[] = [];
  const paced = pacedRequests(({ url }) => {
    handled.push(url!);
    busy(10);
  }, clientOf);
  for (const url of paths) paced({ url, socket: { destroyed: url === '/gone' } } as never);
  return handled;
}

test('a request is handled at once, and those that arrive in the same turn later, in their order', async () => {
  await turn();
  const handled = arrive(['/1', '/2', '/gone', '/3']);
  expect(handled).toEqual(['/1']);
  await expect.poll(() => handled).toEqual(['/1', '/2', '/3']);
});

test('clients take turns', async () => {
  await turn();
  const clients = ['a', 'a', 'a', 'a', 'b'];
  const handled = arrive(['/a1', '/a2', '/a3', '/a4', '/b1'], () => clients.shift());
  await expect.poll(() => handled).toEqual(['/a1', '/a2', '/b1', '/a3', '/a4']);
});
