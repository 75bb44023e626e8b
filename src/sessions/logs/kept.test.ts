import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../../test/support/store.ts';
import { silent } from '../../lib/log.ts';
import { sql } from '../../store/sql.ts';
import { consoleLine, hearConsole } from './console.ts';
import { keptLogs, newest } from './kept.ts';
import { lineLogs } from './line-logs.ts';
import { keptLogStore } from './store.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => void (store = await openTestStore()));
afterAll(() => store.close());

async function ended(id: string): Promise<void> {
  await store.db.rows(sql`insert into projects (id, name) values ('proj_logs', 'logs') on conflict do nothing`);
  await store.db
    .rows(sql`insert into sessions (id, project_id, node_id, state, headless, stealth, gpu, kiosk_mode, timeout_seconds,
      viewport_width, viewport_height, deleted_at)
    values (${id}, 'proj_logs', 'n', 'stopped', true, false, false, false, 60, 1, 1, now())`);
}

function house({ short = false } = {}) {
  const [recorder, pageConsole] = [lineLogs(), lineLogs()];
  const logs = keptLogs({ store: keptLogStore(store.db), recorder, pageConsole, short: () => short, log: silent });
  return { logs, recorder, pageConsole };
}

test('keeps the last lines of a session, and forgets them with its row', async () => {
  const { logs, recorder, pageConsole } = house();
  await ended('s1');
  recorder.say('s1', 'a frame');
  hearConsole(pageConsole)(
    's1',
    'console_log',
    '{"seq":1,"event":{"ts":0,"data":{"level":"log","args":["a\\u0000","b"]}}}',
  );
  hearConsole(pageConsole)('s1', 'network_request', '{}');
  await logs.keep({ id: 's1', lastLines: () => ({ chromium: ['x', 'y'], processes: [] }) });
  expect(await logs.read('s1')).toEqual({
    at: expect.any(Date),
    lines: { chromium: ['x', 'y'], recorder: ['a frame'], console: ['1970-01-01T00:00:00.000Z log: a\u0000 b'] },
  });
  await store.db.rows(sql`delete from sessions where id = 's1'`);
  expect(await logs.read('s1')).toBeUndefined();
});

test('keeps nothing of a session without lines or without a row, nor while the disk is short', async () => {
  await ended('s2');
  await house().logs.keep({ id: 's2', lastLines: () => ({ chromium: [] }) });
  await house({ short: true }).logs.keep({ id: 's2', lastLines: () => ({ chromium: ['x'] }) });
  await house().logs.keep({ id: 'none', lastLines: () => ({ chromium: ['x'] }) });
  expect(await house().logs.read('s2')).toBeUndefined();
  expect(await house().logs.read('none')).toBeUndefined();
});

test('a session ends without its log when its lines cannot be read', async () => {
  const lastLines = () => {
    throw new URIError('URI malformed');
  };
  await expect(house().logs.keep({ id: 's2', lastLines })).resolves.toBeUndefined();
});

test('of a project with too many bytes the oldest go', async () => {
  const kept = keptLogStore(store.db);
  for (const id of ['p1', 'p2', 'p3']) {
    await ended(id);
    await kept.insert(id, Buffer.alloc(10));
  }
  await kept.prune(20);
  expect([await kept.find('p1'), (await kept.find('p2')) && true, (await kept.find('p3')) && true]).toEqual([
    undefined,
    true,
    true,
  ]);
});

test('the newest lines are those that fit', () => {
  expect(newest(['aaa', 'é', 'b'], 5)).toEqual(['é', 'b']);
  expect(newest(['aaa', 'é', 'b'], 100)).toEqual(['aaa', 'é', 'b']);
  expect(newest(['too long'], 3)).toEqual([]);
});

test('an exception in the console says where it was thrown', () => {
  const data = { text: 'Uncaught Error: no\n    at f', source_url: 'https://a.example/x.js', line: 4 };
  expect(consoleLine({ ts: 1e6, data })).toBe(
    '1970-01-01T00:00:01.000Z exception: Uncaught Error: no ⏎ at f (https://a.example/x.js:5)',
  );
});
