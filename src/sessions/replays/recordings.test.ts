import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Recording } from '../../chromium/recorder/recorder.ts';
import { errors } from '../../errors.ts';
import { silent } from '../../lib/log.ts';
import type { Recorded } from '../live-session.ts';
import { replayRecordings } from './recordings.ts';

let dir: string;
beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), 'recordings-'))));
afterAll(() => rm(dir, { recursive: true }));

type How = Awaited<Recording['ended']>['how'];

/** An encoder that gives what the test writes, and ends when it is stopped. */
function encoder() {
  const output = new PassThrough();
  let resolve = (_how: How) => {};
  const promise = new Promise<How>((settle) => (resolve = settle));
  const end = (how: How) => {
    output.end();
    resolve(how);
  };
  const ended = promise.then((how) => ({ how, lastWords: ['last words'] }));
  return { output, stop: () => end('stopped'), end, ended };
}

const soon = (check: () => void) => vi.waitFor(check, { timeout: 60_000 });

/** Recordings of one session. `pictures`: whether a finished video has any. */
function node({
  pictures = true,
  mostBytes = 1000,
  short = false,
  folder = '.',
  finish = async () => (pictures ? 5 : undefined),
}: Partial<{
  pictures: boolean;
  mostBytes: number;
  short: boolean;
  folder: string;
  finish: () => Promise<number | undefined>;
}> = {}) {
  const [applied, said, claimed]: [string[], string[], (number | 'released')[]] = [[], [], []];
  const encoders: ReturnType<typeof encoder>[] = [];
  const recorded = new Set<Recorded>();
  const release = vi.fn<() => void>();
  const claim = {
    cover: async (total: number) => void claimed.push(total),
    release: async () => void claimed.push('released'),
  };
  const recordings = replayRecordings(
    {
      store: {
        insert: async ({ id }: { id: string }) => ({ id }),
        async apply(_: string, event: string, { reason }: { reason?: string } = {}) {
          applied.push(`${event} ${reason}`);
        },
      },
      sessions: {
        hold: async () => ({ engine: {}, release }),
        running: () => ({ recordings: recorded }),
        workFor: (_id: string, work: () => unknown) => work(),
      },
      files: { part: (id: string) => join(dir, folder, id), finish },
      confinement: undefined,
      nodeId: 'node',
      mostBytes,
      disk: { path: dir, short: () => short && encoders.length > 0 },
      storage: { claim: () => claim },
      say: (_: string, line: string) => void said.push(line),
      log: silent,
    } as unknown as Parameters<typeof replayRecordings>[0],
    async () => {
      encoders.push(encoder());
      return encoders.at(-1)!;
    },
  );
  return {
    recordings,
    encoders,
    recorded,
    claim,
    applied,
    said,
    claimed,
    release,
    async start(seconds = 60) {
      const { id } = await recordings.start({ sessionId: 's', projectId: 'p', framerate: 10, seconds });
      return { id, encoder: encoders.at(-1)! };
    },
    over: () =>
      soon(() => {
        expect(recordings.countOf('s')).toBe(0);
        expect(claimed.filter((what) => what === 'released')).toHaveLength(encoders.length);
      }),
  };
}

test('a recording is written as it comes, and its storage is claimed ahead of it', async () => {
  const { recordings, recorded, start, over, applied, said, claimed, release } = node();
  const { id, encoder: its } = await start();
  expect(recordings.countOf('s')).toBe(1);
  its.output.write('two ');
  await soon(() => expect(claimed.at(-1)).toBe(4));
  its.output.write('parts');
  await soon(() => expect(claimed.at(-1)).toBe(9));
  recordings.stop(id);
  expect(recorded.size, 'recordings that a change of the viewport would cut').toBe(0);
  await over();
  expect(await readFile(join(dir, id), 'utf8')).toBe('two parts');
  expect(applied).toEqual(['stopped stopped', 'finished stopped']);
  expect(said).toEqual([`recording ${id} started`, 'last words', `recording ${id} ended: stopped`]);
  expect(release).toHaveBeenCalledOnce();
});

test('a recording ends by itself with its session, and without pictures it is lost', async () => {
  const { start, over, applied } = node({ pictures: false });
  (await start()).encoder.end('session_ended');
  await over();
  expect(applied).toEqual(['stopped session_ended', 'lost session_ended']);
});

test.each([
  ['max_size', { mostBytes: 3 }],
  ['disk_full', { short: true }],
] as const)('%s ends a recording', async (reason, limits) => {
  const { start, over, applied } = node(limits);
  (await start()).encoder.output.write('more');
  await over();
  expect(applied).toEqual([`stopped ${reason}`, `finished ${reason}`]);
});

test('it ends when the project may store no more, and the written part is finished', async () => {
  const { start, over, claim, applied } = node();
  const { encoder: its } = await start();
  claim.cover = () => Promise.reject(errors.project_storage_full({ used: 1, most: 1 }));
  its.output.write('more');
  await over();
  expect(applied).toEqual(['stopped storage_limit', 'finished storage_limit']);
});

test('a file that cannot be written ends it', async () => {
  const { start, over, applied } = node({ folder: 'missing' });
  await start();
  await over();
  expect(applied).toEqual(['stopped encoder_failed', 'finished encoder_failed']);
});

test('a recording lasts no longer than it may', async () => {
  const { start, over, applied } = node();
  await start(0.001);
  await over();
  expect(applied).toEqual(['stopped max_duration', 'finished max_duration']);
});

test('a change of the viewport ends one video and begins the next, and either stops the recording', async () => {
  const { recordings, encoders, recorded, start, over, applied } = node();
  const { id } = await start();
  const goOn = [...recorded][0]!.cut();
  await goOn();
  expect(encoders).toHaveLength(2);
  expect(recordings.countOf('s')).toBe(1);
  recordings.stop(id); // the first of the two
  await over();
  expect(applied.toSorted()).toEqual([
    'finished stopped',
    'finished viewport_changed',
    'stopped stopped',
    'stopped viewport_changed',
  ]);
});

test('closing stops what runs, and waits until every video is finished', async () => {
  const { recordings, start, claim, applied } = node();
  await start();
  recordings.finish('s', 'saved', 'saved', claim);
  await recordings.close();
  expect(applied.toSorted()).toEqual([
    'finished saved',
    'finished service_stopped',
    'stopped saved',
    'stopped service_stopped',
  ]);
});

test('only the recordings of a session are stopped with it', async () => {
  const { recordings, start, over, applied } = node();
  await start();
  recordings.stopAll('session_ended', 'another');
  expect(recordings.countOf('s')).toBe(1);
  recordings.stopAll('session_ended', 's');
  await over();
  expect(applied[0]).toBe('stopped session_ended');
});

test('a session has eight recordings at most, also of requests at the same time', async () => {
  const { recordings, encoders, start, over } = node();
  const answers = await Promise.allSettled(Array.from({ length: 24 }, () => start()));
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(8);
  expect(encoders).toHaveLength(8);
  expect(recordings.countOf('s')).toBe(8);
  recordings.stopAll('session_ended', 's');
  await over();
  await start();
  recordings.stopAll('session_ended');
  await over();
});

/** Videos that are not finished until the test says so. */
function finishing() {
  let end = () => {};
  const ended = new Promise<number>((resolve) => (end = () => resolve(5)));
  return { finish: () => ended, end: () => end() };
}

test('a recording counts until its video is finished', async () => {
  const { finish, end } = finishing();
  const { recordings, encoders, start, claim } = node({ finish });
  for (let count = 0; count < 7; count++) recordings.stop((await start()).id);
  recordings.finish('s', 'saved', 'saved', claim);
  await soon(() => expect(recordings.countOf('s')).toBe(0));
  await expect(start()).rejects.toMatchObject({ code: 'recording_limit_reached' });
  expect(() => recordings.refuseIfFull('another')).not.toThrow();
  expect(encoders).toHaveLength(7);
  end();
  await vi.waitUntil(() => start().catch(() => undefined), { timeout: 30_000 });
  recordings.stopAll('session_ended');
  await soon(() => expect(recordings.countOf('s')).toBe(0));
});

test('a recording continues after the second change of the viewport when its first video is finished', async () => {
  const { finish, end } = finishing();
  const { recordings, encoders, recorded, start, over } = node({ finish });
  await start();
  await [...recorded][0]!.cut()();
  const second = [...recorded][0]!.cut()();
  await soon(() => expect(recorded.size).toBe(0));
  expect(encoders).toHaveLength(2);
  end();
  await second;
  expect(encoders).toHaveLength(3);
  recordings.stopAll('session_ended');
  await over();
});

test('a recording that cannot begin does not count', async () => {
  const { recordings, start, claim } = node();
  claim.cover = () => Promise.reject(errors.project_storage_full({ used: 1, most: 1 }));
  await expect(start()).rejects.toMatchObject({ code: 'project_storage_full' });
  expect(recordings.countOf('s')).toBe(0);
});

test('a recording that begins while its session is returned is stopped', async () => {
  const { recordings, start, over, applied } = node();
  const begun = start();
  recordings.stopAll('session_ended', 's');
  await begun;
  await over();
  expect(applied).toEqual(['stopped session_ended', 'finished session_ended']);
});
