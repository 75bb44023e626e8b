import { expect, test } from 'vitest';
import type { Addresses } from './addresses.ts';
import { asSession, type Known } from './answer.ts';
import type { SessionRow } from './store.ts';

const row = {
  id: 's',
  node_id: 'node_a',
  state: 'live',
  telemetry: [],
  uptime_ms: '7',
  awake_since: new Date(),
  created_at: new Date(),
  deleted_at: null,
  refresh_rate: null,
  name: null,
  start_url: null,
  proxy_id: null,
  ended_reason: null,
  ended_detail: null,
} as unknown as SessionRow;

const known: Known = {
  uptimeMs: () => 12,
  standingBy: false,
  ending: undefined,
  sight: {
    uses: { cdp: 1, webdriver: 0, viewer: 2, terminal: 0, requests: 3 },
    endsAt: new Date('2026-01-01T00:00:00Z'),
    frontPage: { url: 'https://a.example/', title: 'A', seenAt: new Date('2026-01-01T00:00:01Z') },
  },
};

const answerOf = (changes: Partial<SessionRow>, here?: Known) =>
  asSession({ ...row, ...changes }, { of: () => ({}) } as unknown as Addresses, 'key', here);

test('the node that runs a session says what uses it, when it ends and which page is in front', () => {
  expect(answerOf({}, known)).toMatchObject({
    state: 'live',
    node_id: 'node_a',
    usage: { uptime_ms: 12 },
    clients: { cdp: 1, webdriver: 0, live_view: 2, terminal: 0, requests: 3 },
    ends_at: '2026-01-01T00:00:00.000Z',
    active_page: { url: 'https://a.example/', title: 'A', seen_at: '2026-01-01T00:00:01.000Z' },
  });
});

test('standby is known where the session runs, and elsewhere by its row', () => {
  expect(answerOf({}, { ...known, standingBy: true }).state).toBe('standby');
  expect(answerOf({ awake_since: null }).state).toBe('standby');
  expect(answerOf({})).toMatchObject({ state: 'live', usage: { uptime_ms: 7 } });
  expect(answerOf({})).not.toHaveProperty('clients');
  expect(answerOf({ state: 'starting', awake_since: null }).state).toBe('starting');
});

test('an ended session says why, and nothing of what it was doing', () => {
  const deleted_at = new Date();
  expect(answerOf({}, { ...known, ending: 'idle' })).toMatchObject({ state: 'stopping' });
  expect(answerOf({}, { ...known, ending: 'idle' })).not.toHaveProperty('active_page');
  const ended = answerOf({ state: 'failed', deleted_at, ended_reason: 'crashed', ended_detail: 'It crashed.' }, known);
  expect(ended).toMatchObject({ state: 'failed', ended_reason: 'crashed', ended_detail: 'It crashed.' });
  expect(ended).not.toHaveProperty('clients');
});
