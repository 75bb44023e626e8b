import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import { logStore } from './log-store.ts';
import { lineWriter } from './logs.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => (store = await openTestStore()));
afterAll(() => store?.close());

const linesOf = async (owner: string) =>
  (await logStore(store.db).after(owner, '0', null, 1000)).map(({ message }) => message);

test.each([
  [
    'of signs that mean something in SQL, arrays and JSON',
    ['"', '\\', '{a,"b"}', 'NULL', "it's", '\\n', '\ud83d\ude00'],
  ],
  ['that are empty, between others', ['', 'a', '', '', 'b', '']],
  ['of which one is all, and empty', ['']],
])('lines %s are stored as they are', async (name, lines) => {
  await logStore(store.db).add(
    name,
    lines.map((message) => ({ at: new Date(), message })),
  );
  expect(await linesOf(name)).toEqual(lines);
});

test('long lines are written in several statements, in their order', async () => {
  const batches: number[] = [];
  const { add, count } = logStore(store.db);
  const counted = {
    count,
    add: (owner: string, lines: Parameters<typeof add>[1]) => {
      batches.push(lines.reduce((sum, { message }) => sum + message.length, 0));
      return add(owner, lines);
    },
  };
  const lines = Array.from({ length: 50 }, (_, i) => `${i} ${'"'.repeat(64 * 1024)}`);
  const writer = lineWriter({ store: counted, log: silent }, 'long', (line) => line);
  for (const line of lines) writer.add(line);
  await writer.close();
  expect(Math.max(...batches)).toBeLessThan(2 * 2 ** 20);
  const stored = await store.db.rows<{ message: string }>({
    name: 'long lines',
    text: "select message from run_logs where owner = 'long' order by id",
    values: [],
  });
  expect(stored.map(({ message }) => message)).toEqual(lines);
});
