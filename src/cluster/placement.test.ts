import { expect, test } from 'vitest';
import { mostRoom, nearestRoom, type Room } from './placement.ts';

const self = (free: number): Room => ({ id: 'self', free });
const others = (...free: number[]): Room[] => free.map((count, index) => ({ id: `other${index}`, free: count }));

test.each([
  ['alone', 0, [], 'self'],
  ['all equal', 4, [4, 4], 'self'],
  ['one has more', 4, [3, 5], 'other1'],
  ['all full', 0, [0, -1], 'self'],
])('the most room, %s', (_, free, rest, expected) => {
  expect(mostRoom(self(free), others(...rest)).id).toBe(expected);
});

test.each([
  ['here while the other has little more', 5, [9], 'self'],
  ['there when the other has twice the room', 5, [10], 'other0'],
  ['there when this node is full', 0, [1], 'other0'],
  ['here when all are full, to be refused here', 0, [0], 'self'],
  ['where the most room is', 1, [2, 8], 'other1'],
])('a session is made %s', (_, free, rest, expected) => {
  expect(nearestRoom(self(free), others(...rest)).id).toBe(expected);
});

test('one node that gets every request fills both before a request is refused', () => {
  const [here, there] = [self(20), { id: 'other', free: 20 }];
  for (let count = 0; count < 40; count++) (nearestRoom(here, [there]).id === 'self' ? here : there).free--;
  expect([here.free, there.free]).toEqual([0, 0]);
});
