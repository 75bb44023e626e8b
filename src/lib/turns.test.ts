import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { onBehalfOf } from './scope.ts';
import { loopPace, nextTurn, pacedTasks } from './turns.ts';

/** Owners are compared by their kind and id: a session has an object for each piece of its work. */
const session = <T>(id: string, work: () => T) => onBehalfOf({ kind: 'session', id, end() {} }, work);

test('owners take turns, however many tasks of one wait', async () => {
  const order: string[] = [];
  const tasks = ['a', 'a', 'a', 'a', 'b', 'c', 'b'].map((id) => session(id, nextTurn).then(() => order.push(id)));
  await Promise.all(tasks);
  expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
});

test('one task continues in each turn', async () => {
  let done = 0;
  const tasks = Array.from({ length: 5 }, () => nextTurn().then(() => done++));
  await turn();
  const first = done;
  await turn();
  expect(done - first).toBeLessThan(2);
  await Promise.all(tasks);
  expect(done).toBe(5);
});

test('a turn is over for all tasks that take what arrives, until the next one', async () => {
  await turn();
  expect(loopPace.isOver()).toBe(false);
  for (const until = performance.now() + 10; performance.now() < until;);
  expect(loopPace.isOver()).toBe(true);
  expect(session('a', () => loopPace.isOver())).toBe(true);
  await turn();
  expect(loopPace.isOver()).toBe(false);
});

test('a task that throws keeps no other from running, and its error is thrown after them', async () => {
  const paced = pacedTasks();
  const ran: number[] = [];
  const fails = () => {
    throw new Error('broken');
  };
  await expect(paced([() => ran.push(1), fails, () => ran.push(2)])).rejects.toThrow('broken');
  await paced([() => ran.push(3)]);
  expect(ran).toEqual([1, 2, 3]);
});
