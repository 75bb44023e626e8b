import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { fairPlaces } from './fair-places.ts';

const full = (waiting: number) => new Error(`${waiting} wait`);

test('an owner has one place, and owners that wait take turns', async () => {
  const inPlace = fairPlaces(2, full);
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'])
    void inPlace(name[0], async () => {
      started.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string) => (ends.get(name)!(), await turn());
  await turn();
  expect(started).toEqual(['a1', 'b1']);
  await end('a1');
  expect(started.slice(2)).toEqual(['c1']);
  await end('b1');
  expect(started.slice(3)).toEqual(['a2']);
  await end('c1');
  expect(started.slice(4)).toEqual(['b2']);
});

test('work that fails gives its place to the next', async () => {
  const inPlace = fairPlaces(1, full);
  await expect(inPlace('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await inPlace('a', async () => 1)).toBe(1);
});

test('fifty pieces of work of one owner wait at most', async () => {
  const inPlace = fairPlaces(1, full);
  let end = () => {};
  const first = inPlace('a', () => new Promise<void>((resolve) => (end = resolve)));
  const others = Array.from({ length: 50 }, (_, at) => inPlace('a', async () => at));
  await expect(inPlace('a', async () => 0)).rejects.toThrow('50 wait');
  expect(await Promise.race([inPlace('b', async () => 'b'), turn('b waits')])).toBe('b waits');
  end();
  await first;
  expect(await Promise.all(others)).toHaveLength(50);
});
