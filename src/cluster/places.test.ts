import { expect, test } from 'vitest';
import { places } from './places.ts';

const node = (id: string, capacity: number, running = 0, beat = 1) => ({
  id,
  capacity,
  running,
  heartbeat_at: new Date(beat),
});

function trio() {
  const own = { capacity: 2, running: 0 };
  const others = [node('b', 4), node('c', 3)];
  return { own, others, where: places({ id: 'a', load: () => own, others: () => others }) };
}

test('a burst of sessions is spread, although no node has reported them yet', () => {
  const { own, where } = trio();
  const chosen = Array.from({ length: 10 }, () => {
    const best = where.place();
    if (best === 'a') own.running++;
    return best;
  });
  expect(chosen.filter((id) => id === 'b')).toHaveLength(4);
  expect(chosen.filter((id) => id === 'c')).toHaveLength(3);
  expect(chosen.filter((id) => id === 'a')).toHaveLength(2);
  expect(chosen[9]).toBeUndefined();
});

test('nodes that are not to be asked are passed over', () => {
  const { where } = trio();
  expect(where.place(new Set(['b']))).toBe('c');
  expect(where.place(new Set(['b', 'c']))).toBe('a');
  expect(where.place(new Set(['a', 'b', 'c']))).toBeUndefined();
});

test('a session that was requested here stays here while the others have less than twice the room', () => {
  const { own, where } = trio();
  own.capacity = 3;
  expect(where.placeElsewhere()).toBeUndefined();
  own.running = 2;
  expect(where.placeElsewhere()).toBe('b');
});

test('a placed session is counted until the next heartbeat of its node reports it', () => {
  const others = [node('b', 1)];
  const where = places({ id: 'a', load: () => ({ capacity: 0, running: 0 }), others: () => others });
  expect(where.place()).toBe('b');
  where.read(others); // the same heartbeat, read again
  expect(where.place()).toBeUndefined();
  others[0] = node('b', 2, 1, 2);
  where.read(others);
  expect(where.place()).toBe('b');
  where.read([]); // the node has left, and comes back
  expect(where.place()).toBe('b');
});
