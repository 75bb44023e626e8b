import { Readable } from 'node:stream';
import { beforeEach, afterEach, expect, test, vi } from 'vitest';
import { fakeEngine } from '../../test/support/fake-engine.ts';
import { fakeTelemetry } from '../../test/support/fake-telemetry.ts';
import { sessionRow } from '../../test/support/session-rows.ts';
import { silent } from '../lib/log.ts';
import { sessionEnding, whyNotStarted } from './session-end.ts';
import { liveSession } from './live-session.ts';
import { sessionRoster } from './roster.ts';
import { SessionEnded } from './state.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A session `s`, with a database and a disk that note what they are asked. */
function house() {
  const seen: string[] = [];
  const roster = sessionRoster();
  const faults = { database: false, disturbed: false, save: undefined as Promise<string | undefined> | undefined };
  const fake = fakeEngine();
  const ending = sessionEnding({
    store: {
      async apply(id, event, { reason, detail } = {}) {
        seen.push([event, reason, detail].filter(Boolean).join(' '));
        if (faults.database) throw new Error('The database is away.');
        return sessionRow({ id, pool_id: 'pool' });
      },
      saveAfterAll: async () => 'profile',
      saveIfUndisturbed: async () => (faults.disturbed ? undefined : 'profile'),
      find: async (id) => sessionRow({ id, ended_reason: 'deleted', ended_detail: (await faults.save) ?? null }),
    },
    browsers: {
      pack: () => Readable.from([]),
      remove: async (id) => void seen.push(`remove ${id}`),
    },
    profiles: {
      async save(profileId) {
        seen.push(`save ${profileId}`);
        return faults.save;
      },
    },
    roster,
    onGone: (id) => void seen.push(`gone ${id}`),
    keepLog: async (session) => void seen.push(`log ${session.lastLines().chromium?.join()}`),
    events: { publish: (name: string, facts: object) => void seen.push(`${name} ${JSON.stringify(facts)}`) } as never,
    log: silent,
  });
  const session = liveSession({
    id: 's',
    projectId: 'p',
    engine: fake.engine,
    timeoutSeconds: 60,
    mayStandBy: true,
    proxy: undefined,
    telemetry: fakeTelemetry().telemetry,
    relaunch: () => Promise.reject(new Error('no')),
    onIdle() {},
    onLost() {},
    log: silent,
  });
  roster.live.set('s', session);
  return { ...ending, roster, session, seen, faults, fake };
}

const ended = (reason: string) =>
  `session.ended {"sessionId":"s","projectId":"proj_test","poolId":"pool","reason":"${reason}"}`;

test('a session that is ended twice ends once, for the first reason; its place is free before its row is at rest', async () => {
  const { stop, roster, seen, fake } = house();
  await Promise.all([stop('s', 'idle'), stop('s', 'deleted')]);
  expect(seen).toEqual([
    'stop_requested idle',
    'remove s',
    'gone s',
    'log clean the last line',
    'cleaned_up idle',
    ended('idle'),
  ]);
  expect(fake.done).toEqual(['close']);
  expect(roster.ids()).toEqual([]);
  expect(roster.ends.size).toBe(0);
});

test('a profile is saved by ends that are meant, between the browser and its directory, and not after a crash', async () => {
  const meant = house();
  meant.roster.saving.set('s', 'prof');
  meant.faults.save = Promise.resolve('it is too large.');
  await meant.stop('s', 'idle');
  const why = 'The profile was not saved: it is too large.';
  expect(meant.seen).toEqual([
    'stop_requested idle',
    'save prof',
    'remove s',
    'gone s',
    'log clean the last line',
    `cleaned_up idle ${why}`,
    ended('idle'),
  ]);

  const crashed = house();
  crashed.roster.saving.set('s', 'prof');
  await crashed.stop('s', 'crashed', 'It crashed.');
  expect(crashed.seen).not.toContain('save prof');
  expect(crashed.seen[0]).toBe('remove s'); // the row still says live, so that it ends as lost

  const failed = house();
  failed.roster.saving.set('s', 'prof');
  await failed.stop('s', 'fault');
  expect(failed.seen).not.toContain('save prof');
});

test('a delete is answered when the row says so, and waits for a profile only so long', async () => {
  const { remove, roster, faults, session } = house();
  roster.saving.set('s', 'prof');
  let saved!: () => void;
  faults.save = new Promise<undefined>((resolve) => (saved = () => resolve(undefined)));
  let answered = false;
  const removing = remove('s').then(() => (answered = true));
  await vi.advanceTimersByTimeAsync(44_000);
  expect(session.ending).toBe('deleted');
  expect(answered).toBe(false);
  await vi.advanceTimersByTimeAsync(2000);
  await removing;
  expect(roster.live.has('s')).toBe(true); // it is still being saved
  saved();
  await vi.advanceTimersByTimeAsync(0);
  expect(roster.live.has('s')).toBe(false);
});

test('a database that is away hears of the end when it is back, unless the service stops before', async () => {
  const { stop, seen, faults, fake } = house();
  faults.database = true;
  const over = stop('s', 'deleted');
  await vi.advanceTimersByTimeAsync(1000);
  expect(fake.done).toEqual(['close']);
  expect(seen).not.toContain(ended('deleted'));
  faults.database = false;
  await vi.advanceTimersByTimeAsync(1000);
  await over;
  expect(seen.slice(-3)).toEqual(['stop_requested deleted', 'cleaned_up deleted', ended('deleted')]);

  const stopped = house();
  stopped.faults.database = true;
  stopped.roster.closed = true;
  await stopped.stop('s', 'shutdown');
  expect(stopped.seen).not.toContain(ended('shutdown'));
});

test('a session that is being started is called off, and ended if it is there all the same', async () => {
  const { stop, roster, session, seen } = house();
  roster.live.delete('s');
  const callOff = new AbortController();
  let over!: () => void;
  roster.launching.set('s', { callOff, over: new Promise<void>((resolve) => (over = resolve)) });
  const stopping = stop('s', 'project_closed');
  expect(whyNotStarted(callOff.signal)).toBe('project_closed');
  roster.launching.delete('s');
  roster.live.set('s', session);
  over();
  await stopping;
  expect(session.ending).toBe('project_closed');
  expect(seen.at(-1)).toBe(ended('project_closed'));
  await stop('unknown', 'deleted'); // nothing to end
});

test('a session that was started without save_changes can save its profile after all, and reports if that failed', async () => {
  const { removeAndSave, seen } = house();
  expect(await removeAndSave('s')).toBeUndefined();
  expect(seen).toContain('save profile');
  expect(seen.at(-1)).toBe(ended('deleted'));

  const full = house();
  full.faults.save = Promise.resolve('The disk is full.');
  expect(await full.removeAndSave('s')).toBe('The disk is full.');
  expect(await full.removeAndSave('unknown')).toBe('The browser had ended.');

  const disturbed = house();
  disturbed.faults.disturbed = true;
  expect(await disturbed.removeAndSave('s', { giveWay: true })).toContain('Another session');
  expect(disturbed.seen).not.toContain('save profile');
  expect(disturbed.seen.at(-1)).toBe(ended('deleted'));
});

test('a start that fails says why: ended by a request, given up by its client, or by itself', () => {
  const reason = (abort?: unknown) => {
    const controller = new AbortController();
    if (abort !== undefined) controller.abort(abort);
    return whyNotStarted(controller.signal);
  };
  expect(reason(new SessionEnded('shutdown'))).toBe('shutdown');
  expect(reason(new Error('The client hung up.'))).toBe('deleted');
  expect(reason()).toBe('did_not_start');
});
