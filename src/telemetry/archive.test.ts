import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestStore } from '../../test/support/store.ts';
import { silent } from '../lib/log.ts';
import type { EventCategory, TelemetryCategory, TelemetryEvent } from '../lib/telemetry.ts';
import { telemetryCategories } from '../lib/telemetry.ts';
import type { Line } from './live-events.ts';
import { telemetryService, type SessionJournal } from './service.ts';
import { sql } from '../store/sql.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store.close());

const everything = new Set(telemetryCategories);
let sessions = 0;

function house(bounds: { sessionBytes?: number; projectBytes?: number; countMs?: number; short?: () => boolean } = {}) {
  const service = telemetryService({
    db: store.db,
    days: 30,
    sessionBytes: 2 ** 30,
    projectBytes: 2 ** 30,
    log: silent,
    ...bounds,
  });
  const id = `session${++sessions}`;
  const journal = service.open(id, `project${sessions}`);
  journal.capture = everything;
  const page = (query: object = {}) => service.page(id, { limit: 100, ...query });
  const seqs = async (query: object = {}) => (await page(query)).lines.map((line) => JSON.parse(line).seq as number);
  return { service, id, journal, page, seqs };
}

const event = (text: string, category: EventCategory = 'console', ts = Date.now() * 1000): TelemetryEvent => ({
  ts,
  type: 'console_log',
  category,
  source: { kind: 'cdp' },
  data: { text },
});

const add = (journal: SessionJournal, count: number, category?: EventCategory) => {
  for (let n = 0; n < count; n++) journal.add(event(`line ${n}`, category));
};

async function take(lines: AsyncIterable<Line>, count: number): Promise<number[]> {
  const seqs: number[] = [];
  for await (const { seq } of lines) if (seqs.push(seq) === count) break;
  return seqs;
}

test('events that are added are read back at once, in both orders, page by page, and by another node', async () => {
  const { service, id, journal, page, seqs } = house();
  add(journal, 250);
  expect(await seqs({ limit: 3 })).toEqual([1, 2, 3]);
  expect(await seqs({ limit: 3, order: 'desc' })).toEqual([250, 249, 248]);
  for (const order of ['asc', 'desc'] as const) {
    const found: number[] = [];
    let offset: number | undefined;
    for (let pages = 0; pages < 10; pages++) {
      const { lines, next } = await page({ limit: 60, order, ...(offset ? { offset } : {}) });
      found.push(...lines.map((line) => JSON.parse(line).seq as number));
      offset = next;
      if (!next) break;
    }
    const expected = Array.from({ length: 250 }, (_, index) => index + 1);
    expect(found).toEqual(order === 'asc' ? expected : expected.toReversed());
  }
  const other = telemetryService({ db: store.db, days: 30, sessionBytes: 1e9, projectBytes: 1e9, log: silent });
  expect((await other.page(id, { limit: 100, order: 'desc' })).lines[0]).toContain('"seq":250');
  const all: number[] = [];
  for await (const { seq } of service.read(id)) all.push(seq);
  expect(all).toHaveLength(250);
});

test('only captured categories are kept, and the monitor with any of them', async () => {
  const { journal, page } = house();
  journal.capture = new Set<TelemetryCategory>(['network']);
  add(journal, 1, 'console');
  add(journal, 1, 'network');
  add(journal, 1, 'monitor');
  journal.capture = new Set();
  add(journal, 1, 'monitor');
  const { lines } = await page();
  expect(lines.map((line) => JSON.parse(line).event.category)).toEqual(['network', 'monitor']);
});

test('events are found by category and by time', async () => {
  const { journal, page, seqs } = house();
  const now = Date.now() * 1000;
  const minutesAgo = (minutes: number) => now - minutes * 60e6;
  journal.add(event('long ago', 'console', minutesAgo(60)));
  journal.add(event('before', 'network', minutesAgo(10)));
  journal.add(event('now', 'console', now));
  expect(await seqs()).toEqual([3]);
  expect(await seqs({ since: '15m' })).toEqual([2, 3]);
  expect(await seqs({ since: '1h30m', category: ['console'] })).toEqual([1, 3]);
  expect(await seqs({ order: 'desc', category: ['network', 'page'] })).toEqual([2]);
  const until = new Date(minutesAgo(10) / 1000).toISOString();
  expect(await seqs({ since: '2h', until })).toEqual([1]);
  const { next } = await page({ since: '2h', limit: 1 });
  expect(await seqs({ offset: next, since: '1s' })).toEqual([2, 3]); // `since` is not looked at
});

test.each([
  [{ since: 'yesterday' }, /since/],
  [{ since: '2026-13-01T00:00:00Z' }, /since/],
  [{ until: '5m' }, /until/],
  [{ order: 'desc', since: '5m' }, /since.*desc/],
  [{ offset: 12_345 }, /offset/],
])('%j is refused, and the field is named', async (query, message) => {
  const { page } = house();
  await expect(page(query)).rejects.toThrow(message);
});

test('a cursor of another session is refused', async () => {
  const [one, other] = [house(), house()];
  add(one.journal, 3);
  add(other.journal, 3);
  const { next } = await one.page({ limit: 1 });
  expect(await one.seqs({ offset: next })).toEqual([2, 3]);
  await expect(other.page({ offset: next })).rejects.toThrow(/offset/);
});

test('a record that is too large loses its data and says so', async () => {
  const { journal, page } = house();
  journal.add(event('x'.repeat(1_000_001)));
  journal.add(event('ä'.repeat(499_000)));
  const [large, fits] = (await page()).lines.map((line) => JSON.parse(line).event);
  expect(large).toMatchObject({ type: 'console_log', truncated: true });
  expect(large).not.toHaveProperty('data');
  expect(fits.data.text).toHaveLength(499_000);
});

test('known secrets are cut out of values, in every spelling, and leave the event whole', async () => {
  const { journal, page } = house();
  journal.hide([
    { username: 'me', password: 'p"ss wörd/1' },
    { username: 'me', password: 'type' },
  ]);
  const data = {
    plain: 'a p"ss wörd/1 b',
    url: `http://x/?k=${encodeURIComponent('p"ss wörd/1')}`,
    header: { 'proxy-authorization': `Basic ${Buffer.from('me:p"ss wörd/1').toString('base64')}` },
    body: JSON.stringify({ password: 'p"ss wörd/1' }),
    list: ['p"ss wörd/1'],
  };
  journal.add({ ...event(''), data });
  const [line] = (await page()).lines;
  expect(JSON.parse(line!).event).toMatchObject({ type: 'console_log', data: { plain: 'a [redacted] b' } });
  for (const form of ['ss w', 'ss%20w', Buffer.from('me:p"ss wörd/1').toString('base64').slice(0, 12)])
    expect(line).not.toContain(form);
});

test('small chunks become few rows, and nothing is lost or doubled by it', async () => {
  const { service, id, journal, seqs } = house();
  for (let n = 0; n < 40; n++) {
    add(journal, 2);
    await service.page(id, { limit: 1 }); // written by now
  }
  const [{ count }] = (await store.db.rows<{ count: number }>(
    sql`select count(*)::integer as count from telemetry_chunks where session_id = ${id}`,
  )) as [{ count: number }];
  expect(count).toBeLessThan(20);
  expect(await seqs()).toEqual(Array.from({ length: 80 }, (_, index) => index + 1));
});

test('a session and a project keep to their bytes: the oldest events go', async () => {
  const noise = () => Array.from({ length: 3000 }, () => Math.random().toString(36)).join('');
  for (const bound of ['sessionBytes', 'projectBytes']) {
    const { journal, seqs } = house({ [bound]: 100_000, countMs: 0 });
    for (let n = 1; n <= 10; n++) {
      journal.add(event(noise()));
      await seqs({ limit: 1 });
    }
    const left = await seqs();
    expect(left.length, bound).toBeLessThan(8);
    expect(left, bound).toEqual(Array.from(left, (_, index) => 11 - left.length + index));
  }
});

const draftsOf = (id: string) =>
  store.db.rows<{ first_seq: string }>(sql`select first_seq from telemetry_chunks where session_id = ${id} and draft`);

test('an event of which a part is to come is kept as it is, unseen, until the whole of it takes its place', async () => {
  const { id, journal, page, seqs } = house();
  add(journal, 2);
  const finish = journal.draft(event('half'));
  const giveUp = journal.draft(event('given up'));
  await expect.poll(() => draftsOf(id)).toEqual([{ first_seq: '3' }]);
  add(journal, 1);
  expect(await seqs()).toEqual([1, 2, 3]);
  await expect.poll(() => draftsOf(id)).toEqual([{ first_seq: '4' }]);
  giveUp();
  finish(event('whole'));
  finish(event('twice'));
  expect((await page()).lines.map((line) => JSON.parse(line).event.data.text).slice(3)).toEqual(['whole']);
  await expect.poll(() => draftsOf(id)).toEqual([]);

  journal.draft(event('half at the end'));
  await expect.poll(() => draftsOf(id)).toHaveLength(1);
  journal.end();
  await expect.poll(() => draftsOf(id)).toEqual([]);
  expect((await page()).lines.at(-1)).toContain('half at the end');
  expect(await seqs()).toEqual([1, 2, 3, 4, 5]);
});

test('an export waits a moment for pending events, and no longer', async () => {
  const { service, id, journal } = house();
  const finish = journal.draft(event('half'));
  const exported = async () => {
    let events = 0;
    for await (const { seq } of service.read(id)) events = seq;
    return events;
  };
  const whole = exported();
  finish(event('whole'));
  expect(await whole).toBe(1);
  journal.draft(event('never whole'));
  expect(await exported()).toBe(1);
});

test('a write with an unknown outcome leaves no draft in the place of an event', async () => {
  let fail = false;
  const db = {
    ...store.db,
    transaction: async <T>(work: (within: typeof store.db) => Promise<T>): Promise<T> => {
      const done = await store.db.transaction(work);
      if (fail) throw new Error('The connection was lost after the commit.');
      return done;
    },
  };
  const service = telemetryService({ db, days: 30, sessionBytes: 1e9, projectBytes: 1e9, log: silent });
  const journal = service.open('unknown', 'project');
  journal.capture = everything;
  fail = true;
  const finish = journal.draft(event('half'));
  await expect.poll(() => draftsOf('unknown')).toHaveLength(1);
  fail = false;
  finish(event('whole'));
  journal.end();
  await expect.poll(() => service.counts().journals).toBe(0);
  const { lines } = await service.page('unknown', { limit: 10 });
  expect(lines.map((line) => JSON.parse(line).event.data.text)).toEqual(['whole']);
  expect(await draftsOf('unknown')).toEqual([]);
});

test('a draft of a category that is not captured, or of the last holder, is not kept', async () => {
  const { id, journal, seqs } = house();
  journal.capture = new Set<TelemetryCategory>(['network']);
  journal.draft(event('other', 'console'))(event('other', 'console'));
  const finish = journal.draft(event('of the holder before', 'network'));
  await expect.poll(() => draftsOf(id)).toHaveLength(1);
  journal.capture = new Set();
  finish(event('of the holder before', 'network'));
  await expect.poll(() => draftsOf(id)).toEqual([]);
  expect(await seqs()).toEqual([]);
});

test('a full disk loses events, and nothing else', async () => {
  let full = true;
  const { journal, seqs } = house({ short: () => full });
  add(journal, 2);
  expect(await seqs()).toEqual([]);
  full = false;
  add(journal, 1);
  expect(await seqs()).toEqual([3]);
});

test('a reader gets the events after its last one, the kept ones, or the next ones; and the end', async () => {
  const { service, id, journal } = house();
  const never = new AbortController().signal;
  add(journal, 5);
  expect(await take(service.follow(id, 'oldest', never)!, 5)).toEqual([1, 2, 3, 4, 5]);
  expect(await take(service.follow(id, { after: 3 }, never)!, 2)).toEqual([4, 5]);
  const coming = take(service.follow(id, 'now', never)!, 2);
  await service.page(id, { limit: 1 }); // archived by now
  add(journal, 2);
  expect(await coming).toEqual([6, 7]);
  expect(await take(service.follow(id, { after: 2 }, never)!, 5)).toEqual([3, 4, 5, 6, 7]);
  const ahead = take(service.follow(id, { after: 99_999 }, never)!, 1);
  add(journal, 1);
  expect(await ahead).toEqual([8]);

  const toTheEnd = take(service.follow(id, { after: 6 }, never)!, 99);
  journal.end();
  expect(await toTheEnd).toEqual([7, 8]);
  expect(service.follow(id, 'now', never)).toBeUndefined();
});

test('a slow reader gets the last 1,024 events, sees the gap, and holds nothing up', async () => {
  const { service, id, journal } = house();
  const lines = service.follow(id, 'now', new AbortController().signal)![Symbol.asyncIterator]();
  const first = lines.next();
  add(journal, 1);
  expect((await first).value).toMatchObject({ seq: 1 });
  add(journal, 5000);
  await service.page(id, { limit: 1 });
  const seqs: number[] = [];
  while (seqs.at(-1) !== 5001) seqs.push((await lines.next()).value!.seq);
  expect(seqs[0]).toBe(5001 - 1024 + 1);
  expect(seqs).toHaveLength(1024);
});

test('readers of one holder do not see what the next one does', async () => {
  const { service, id, journal } = house();
  const seen = take(service.follow(id, 'now', new AbortController().signal)!, 99);
  add(journal, 1);
  await service.page(id, { limit: 1 });
  journal.endReaders();
  add(journal, 1);
  expect((await seen).length).toBeLessThan(2);
});

test('events older than they are to be kept are removed', async () => {
  const { service, id, journal, seqs } = house();
  add(journal, 1);
  expect(await seqs()).toEqual([1]);
  await store.db.rows(
    sql`update telemetry_chunks set written_at = now() - interval '31 days' where session_id = ${id}`,
  );
  await service.expire();
  expect(await seqs()).toEqual([]);
});

test('events that were not written when the session ended are written when the database is back', async () => {
  const flaky = { down: true };
  const db = {
    ...store.db,
    transaction: <T>(work: (within: typeof store.db) => Promise<T>): Promise<T> =>
      flaky.down ? Promise.reject(new Error('The database is away.')) : store.db.transaction(work),
  };
  const service = telemetryService({ db, days: 30, sessionBytes: 1e9, projectBytes: 1e9, log: silent });
  const journal = service.open('flaky', 'project');
  journal.capture = everything;
  add(journal, 3);
  journal.end();
  expect((await service.page('flaky', { limit: 10 })).lines).toEqual([]);
  flaky.down = false;
  await expect.poll(async () => (await service.page('flaky', { limit: 10 })).lines.length, { timeout: 60_000 }).toBe(3);
  await expect.poll(() => service.counts().journals, { timeout: 60_000 }).toBe(0);
});
