import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { readReport, refuseNames } from './build.ts';

const read = (text: string) => readReport(Readable.from([Buffer.from(text)]), async () => {});

test('a report that would take long to check is refused unread', async () => {
  const many = Array.from({ length: 80_000 }, () => '{"name":""}').join(',');
  await expect(read(`{"entry":"index.js","apps":[{"name":"a","actions":[${many}]}]}\n`)).rejects.toThrow(
    'invalid result',
  );
  expect(await read(`${JSON.stringify({ error: 'x'.repeat(4001) })}\n`)).toBeUndefined();
  expect(await read(`${JSON.stringify({ error: 'x'.repeat(4000) })}\n`)).toEqual({ error: expect.any(String) });
});

test('as many apps and actions as may be are read', async () => {
  const actions = Array.from({ length: 10 }, (_, at) => ({ name: `action ${at}` }));
  const built = { entry: 'index.js', apps: Array.from({ length: 100 }, (_, at) => ({ name: `app ${at}`, actions })) };
  expect(await read(`${JSON.stringify(built)}\n`)).toEqual(built);
  refuseNames(built);
  built.apps[7] = { name: 'more', actions: [...actions, { name: 'one more' }] };
  expect(() => refuseNames(built)).toThrow('more than 1000 actions');
});

test('the names of the actions of an app have a bounded size together', () => {
  const actions = Array.from({ length: 300 }, (_, at) => ({ name: `${at} ${'x'.repeat(220)}` }));
  const apps = [{ name: 'a', actions }];
  expect(() => refuseNames({ entry: 'index.js', apps })).toThrow('64 KiB');
  refuseNames({ entry: 'index.js', apps: [{ name: 'a', actions: actions.slice(0, 200) }] });
});
