import { randomUUID } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Kernel from '@onkernel/sdk';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/store/sql.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { spawnService } from '../support/process.ts';
import { startService, type Service } from '../support/service.ts';

const clock = `<!doctype html><title>clock</title><body style="background: teal; font-size: 90px"><div id=d></div>
<script>let n = 0; setInterval(() => (d.textContent = ++n), 50)</script>`;

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages({ '/clock': clock });
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_REPLAY_MB: '50' };
  service = await startService(settings, { timings: { standbyMs: 1000 } });
  sdk = service.sdk();
});
afterAll(async () => {
  await service.close();
  await pages.close();
});

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** What ffprobe says of a video. */
async function probe(bytes: ArrayBuffer) {
  const file = join(tmpdir(), `corral-replay-${randomUUID()}.mp4`);
  await writeFile(file, Buffer.from(bytes));
  const entries = 'stream=codec_name,width,height,pix_fmt,nb_frames:format=duration';
  const found = execFileSync('ffprobe', ['-v', 'error', '-show_entries', entries, '-of', 'json', file]);
  await rm(file);
  const { streams, format } = JSON.parse(found.toString());
  const text = Buffer.from(bytes).toString('latin1');
  return {
    ...streams[0],
    frames: Number(streams[0].nb_frames),
    seconds: Number(format.duration),
    fast: text.indexOf('moov') < text.indexOf('mdat'),
  };
}

/** Waits until a recording has its first fragment, which is two seconds of pictures. */
async function recorded({ replay_id }: { replay_id: string }, dataDir = service.dataDir): Promise<void> {
  const part = join(dataDir, 'replays', `${replay_id}.part`);
  await expect.poll(async () => (await readFile(part)).includes('moof'), { timeout: 60_000 }).toBe(true);
}

async function finished(session: string, replay: string): Promise<ArrayBuffer> {
  for (;;) {
    const answer = await sdk.browsers.replays.download(replay, { id: session });
    if (answer.status === 200) {
      expect(answer.headers.get('content-type')).toBe('video/mp4');
      return answer.arrayBuffer();
    }
    expect(answer.status).toBe(202);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    await pause(100);
  }
}

describe.each([{ headless: true }, { headless: false }])('a replay, headless: $headless', ({ headless }) => {
  let id: string;
  /** Keeps its last seconds from here on, while the other tests run. */
  let kept: string;
  const create = (more: object = {}) =>
    sdk.browsers.create({
      headless,
      timeout_seconds: 300,
      viewport: { width: 801, height: 600 },
      start_url: `${pages.url}clock`,
      ...more,
    });
  beforeAll(async () => {
    [{ session_id: id }, { session_id: kept }] = await Promise.all([create(), create({ replay_buffer_seconds: 10 })]);
  });
  afterAll(() => Promise.allSettled([id, kept].map((session) => sdk.browsers.deleteByID(session))));

  test('is a video that plays, several at once, stopped or ending by themselves', async () => {
    const slow = await sdk.browsers.replays.start(id, { framerate: 2 });
    const fast = await sdk.browsers.replays.start(id, { framerate: 20 });
    const short = await sdk.browsers.replays.start(id, { max_duration_in_seconds: 1 });
    expect((await sdk.browsers.replays.download(fast.replay_id, { id })).status).toBe(202);
    await Promise.all([slow, fast].map((replay) => recorded(replay)));
    await sdk.browsers.replays.stop(slow.replay_id, { id });
    await sdk.browsers.replays.stop(fast.replay_id, { id });
    const [one, two, three] = await Promise.all(
      [slow, fast, short].map(async ({ replay_id }) => probe(await finished(id, replay_id))),
    );
    for (const video of [one, two, three])
      expect(video).toMatchObject({ codec_name: 'h264', pix_fmt: 'yuv420p', width: 802, height: 600, fast: true });
    expect(two!.frames).toBeGreaterThan(one!.frames);
    expect(one!.seconds).toBeGreaterThan(1.5);
    expect(three!.seconds).toBeLessThan(two!.seconds);
    const listed = await sdk.browsers.replays.list(id);
    expect(listed.map(({ replay_id }) => replay_id)).toEqual([slow, fast, short].map(({ replay_id }) => replay_id));
    expect(listed.every(({ finished_at }) => finished_at)).toBe(true);
    expect(listed[2]).toMatchObject({ status: 'available', ended_reason: 'max_duration' });
    await sdk.browsers.replays.stop(short.replay_id, { id }); // once more is as good
  });

  test('that is stopped at once has a picture', async () => {
    const { replay_id } = await sdk.browsers.replays.start(id);
    await sdk.browsers.replays.stop(replay_id, { id });
    expect(await probe(await finished(id, replay_id))).toMatchObject({ codec_name: 'h264', width: 802 });
  });

  test('is sent in ranges, and shown by a page of its own', async () => {
    const [{ replay_id, replay_view_url }] = (await sdk.browsers.replays.list(id)) as [
      { replay_id: string; replay_view_url: string },
    ];
    const path = `/browsers/${id}/replays/${replay_id}`;
    const whole = Buffer.from(await finished(id, replay_id));
    for (const [range, status, start, end] of [
      ['bytes=0-99', 206, 0, 100],
      ['bytes=100-', 206, 100, whole.length],
      ['bytes=-50', 206, whole.length - 50, whole.length],
      [`bytes=${whole.length}-`, 416, 0, 0],
      ['bytes=5-1', 200, 0, whole.length],
      ['lines=1-2', 200, 0, whole.length],
    ] as const) {
      const answer = await fetch(service.url + path, { headers: { authorization: `Bearer ${service.key}`, range } });
      expect([range, answer.status]).toEqual([range, status]);
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(whole.subarray(start, end));
    }
    const viewer = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args: ['--no-sandbox'] });
    try {
      const page = await viewer.newPage();
      await page.goto(replay_view_url);
      await expect
        .poll(() => page.evaluate<number>('document.querySelector("video").currentTime'), { timeout: 60_000 })
        .toBeGreaterThan(0.3);
      expect(await page.evaluate('document.querySelector("video").videoWidth')).toBe(802);
    } finally {
      await viewer.close();
    }
    const forged = replay_view_url.replace(/jwt=[^&]+/, 'jwt=x.y.z');
    expect((await fetch(forged)).status).toBe(401);
    const { cdp_ws_url } = await sdk.browsers.retrieve(id);
    const other = new URL(cdp_ws_url).searchParams.get('jwt')!;
    expect((await fetch(replay_view_url.replace(/jwt=[^&]+/, `jwt=${other}`))).status).toBe(403);
  });

  test('refuses invalid options', async () => {
    const start = (body: object) => service.call('POST', `/browsers/${id}/replays`, body);
    for (const body of [
      { record_audio: true },
      { framerate: 0 },
      { framerate: 61 },
      { max_duration_in_seconds: 0 },
      { max_duration_in_seconds: 1_000_000 },
      { last_seconds: 5 },
      { last_seconds: 5, framerate: 10 },
      { last_seconds: 5, max_duration_in_seconds: 10 },
    ]) {
      expect([body, (await start(body)).status]).toEqual([body, 400]);
    }
    expect((await service.call('GET', `/browsers/${id}/replays/nothing`)).status).toBe(404);
    expect((await service.call('POST', `/browsers/${id}/replays/nothing/stop`)).status).toBe(404);
    expect((await service.call('GET', '/browsers/nobody/replays')).status).toBe(404);
  });

  test('saves the last seconds of a session that keeps them', async () => {
    const save = async (seconds: number) => {
      const saved = await service.call('POST', `/browsers/${kept}/replays`, { last_seconds: seconds });
      expect(saved.status).toBe(201);
      return probe(await finished(kept, saved.body.replay_id));
    };
    /** The first video that is longer than this. A machine that is busy draws and encodes late, so the session may not have it yet. */
    const longer = async (last: number, than: number) => {
      for (const until = Date.now() + 60_000; ; await pause(500)) {
        const video = await save(last);
        if (video.seconds > than || Date.now() > until) return video;
      }
    };
    const video = await longer(3, 2);
    expect(video).toMatchObject({ codec_name: 'h264', fast: true });
    expect(video.seconds).toBeGreaterThan(2);
    expect(video.seconds).toBeLessThan(7);
    expect((await longer(10, video.seconds)).seconds).toBeGreaterThan(video.seconds);
    await sdk.browsers.deleteByID(kept);
  });

  test('keeps the viewport, or continues as another replay when the change is forced', async () => {
    const change = (force: boolean) =>
      service.call('PATCH', `/browsers/${id}`, { viewport: { width: 640, height: 480, force } });
    const first = await sdk.browsers.replays.start(id);
    await recorded(first);
    expect(await change(false)).toMatchObject({ status: 409, body: { code: 'viewport_in_use' } });
    expect(await sdk.browsers.retrieve(id)).toMatchObject({ viewport: { width: 801, height: 600 } });
    expect(await change(true)).toMatchObject({ status: 200, body: { viewport: { width: 640, height: 480 } } });
    const second = (await sdk.browsers.replays.list(id)).at(-1)!;
    expect(second).toMatchObject({ status: 'recording' });
    await recorded(second);
    await sdk.browsers.replays.stop(first.replay_id, { id }); // ends the recording, whichever of its replays is named
    expect(await probe(await finished(id, first.replay_id))).toMatchObject({ width: 802, height: 600, fast: true });
    expect(await probe(await finished(id, second.replay_id))).toMatchObject({ width: 640, height: 480, fast: true });
    expect((await sdk.browsers.replays.list(id)).slice(-2)).toMatchObject([
      { replay_id: first.replay_id, ended_reason: 'viewport_changed' },
      { replay_id: second.replay_id, ended_reason: 'stopped' },
    ]);
    expect(await change(false)).toMatchObject({ status: 200 });
  });

  test('is kept when its session ends or crashes during the recording', async () => {
    const { session_id: crashing } = await create();
    const [deleted, crashed] = await Promise.all([
      sdk.browsers.replays.start(id),
      sdk.browsers.replays.start(crashing),
    ]);
    await Promise.all([deleted, crashed].map((replay) => recorded(replay)));
    await sdk.browsers.deleteByID(id);
    expect((await probe(await finished(id, deleted.replay_id))).seconds).toBeGreaterThan(1);
    const listed = await sdk.browsers.replays.list(id);
    expect(listed.find(({ replay_id }) => replay_id === deleted.replay_id)).toMatchObject({
      ended_reason: 'session_ended',
    });

    const { init } = (await service.app.sessions.hold(crashing)).engine.browser;
    process.kill(init!, 'SIGKILL');
    expect((await probe(await finished(crashing, crashed.replay_id))).codec_name).toBe('h264');
    await sdk.browsers.deleteByID(crashing);
  });
});

test('unfinished replays of a killed service are finished by the next one, and old videos are deleted', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'corral-test-'));
  const killed = await spawnService({
    CORRAL_DATA_DIR: dataDir,
    CORRAL_ALLOW_PRIVATE_HOSTS: pages.host,
    CORRAL_WARM_SPARES: 'off',
  });
  const apiKey = (await readFile(join(dataDir, 'api-key'), 'utf8')).trim();
  const { browsers } = new Kernel({ apiKey, baseURL: killed.url });
  const { session_id: id } = await browsers.create({ headless: true, start_url: `${pages.url}clock` });
  const { replay_id } = await browsers.replays.start(id, { framerate: 5 });
  const files = join(dataDir, 'replays');
  await recorded({ replay_id }, dataDir);
  await killed.kill('SIGKILL');
  await writeFile(join(files, 'nobody-knows.mp4'), 'x');

  const next = await startService({ CORRAL_DATA_DIR: dataDir });
  try {
    const list = () => next.sdk().browsers.replays.list(id);
    const settled = { replay_id, status: 'available', ended_reason: 'service_restarted' };
    await expect.poll(list, { timeout: 60_000 }).toMatchObject([settled]);
    await expect.poll(() => readdir(files)).toEqual([`${replay_id}.mp4`]);
    await next.app.replays.expire();
    expect(await list()).toHaveLength(1);
    await next.app.store.db.rows(sql`update replays set finished_at = now() - interval '8 days'`);
    await next.app.replays.expire();
    expect(await list()).toEqual([]);
    expect(await readdir(files)).toEqual([]);
  } finally {
    await next.close();
  }
});

test('a recording keeps a session awake, and a request wakes a session in standby', async () => {
  const { session_id: id } = await sdk.browsers.create({ headless: true, start_url: `${pages.url}clock` });
  const session = service.app.sessions.running(id)!;
  const { replay_id } = await sdk.browsers.replays.start(id, { framerate: 1 });
  // Made after the recording began: by the time this one sleeps, the other would.
  const { session_id: beside } = await sdk.browsers.create({ headless: true });
  await expect.poll(() => service.app.sessions.running(beside)!.standingBy, { timeout: 60_000 }).toBe(true);
  expect(session.standingBy).toBe(false);
  expect((await sdk.browsers.curl(beside, { url: pages.url })).status).toBe(200);
  expect(service.app.sessions.running(beside)!.standingBy).toBe(false);
  await sdk.browsers.replays.stop(replay_id, { id });
  await finished(id, replay_id);
  await expect.poll(() => session.standingBy, { timeout: 60_000 }).toBe(true);
  expect((await sdk.browsers.computer.captureScreenshot(id)).status).toBe(200);
  expect(session.standingBy).toBe(false);
  await Promise.all([id, beside].map((each) => sdk.browsers.deleteByID(each)));
});
