import { expect, test } from 'vitest';
import { itemLists } from './lists.ts';

const item = (title: string) => ({ id: title, title, vault_id: 'v', vault_name: 'V', path: `V/${title}` });

/** A store that counts how often it was listed. */
function setUp() {
  let now = 0;
  const has = [item('old')];
  let listed = 0;
  const lists = itemLists(() => now);
  const list = async () => {
    listed++;
    return [...has];
  };
  const find = (title: string, { revision = 'r1', ttlMs = 300_000 } = {}) =>
    lists.find({ id: 'p', revision, ttlMs }, (items) => items.find((each) => each.title === title), list);
  return { lists, find, list, has, listed: () => listed, later: (ms: number) => (now += ms) };
}

test('a list is kept for as long as the provider allows', async () => {
  const { find, listed, later } = setUp();
  await find('old');
  later(299_999);
  expect(await find('old')).toMatchObject({ title: 'old' });
  expect(listed()).toBe(1);
  later(1);
  await find('old');
  expect(listed()).toBe(2);
});

test('a provider that allows no cache is asked each time', async () => {
  const { find, listed } = setUp();
  await find('old', { ttlMs: 0 });
  await find('old', { ttlMs: 0 });
  expect(listed()).toBe(2);
});

test('an item that is missing from the kept list is looked for again, but not at once', async () => {
  const { find, has, listed, later } = setUp();
  await find('old');
  has.push(item('new'));
  expect(await find('new')).toBeUndefined();
  expect(listed()).toBe(1);
  later(10_000);
  expect(await find('new')).toMatchObject({ title: 'new' });
  expect(listed()).toBe(2);
});

test('a change of the provider makes the kept list worthless', async () => {
  const { find, listed } = setUp();
  await find('old');
  await find('old', { revision: 'r2' });
  expect(listed()).toBe(2);
});

test('lists that are asked for at the same time are read once, and a failed one is not kept', async () => {
  const { find, listed, lists } = setUp();
  await Promise.all([find('old'), find('old'), find('old')]);
  expect(listed()).toBe(1);
  await expect(lists.read('q', 'r', () => Promise.reject(new Error('down')))).rejects.toThrow('down');
  expect(await lists.read('q', 'r', async () => [item('up')])).toEqual([item('up')]);
});
