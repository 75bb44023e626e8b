import Kernel from '@onkernel/sdk';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { signal, startTime, tree } from '../../src/chromium/sandbox/process-tree.ts';
import { expectNothingLeft, leftovers, onTheMachine } from '../support/nothing-left.ts';
import { RawClient } from '../support/mux-server.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { spawnService } from '../support/process.ts';
import { startService, type Service } from '../support/service.ts';
import { upgrade } from '../support/upgrade.ts';

const CAPACITY = 8;

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages();
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: pages.host, CORRAL_MAX_SESSIONS: `${CAPACITY}` };
  service = await startService(settings, { timings: { standbyMs: 1000 } });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});

// The invariant of this file, through every exit: when its sessions are over, nothing of them is left.
afterEach(() => expectNothingLeft(service));

const create = (wishes: Kernel.BrowserCreateParams = {}) => sdk.browsers.create({ headless: true, ...wishes });

/** The processes of a session as the machine sees them, by the command line of each. */
async function processesOf(id: string, of = service): Promise<{ pid: number; command: string }[]> {
  const held = await of.app.sessions.hold(id);
  try {
    return tree(held.engine.browser.init!).flatMap((pid) => {
      try {
        return [{ pid, command: readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ') }];
      } catch {
        return []; // ended meanwhile
      }
    });
  } finally {
    held.release();
  }
}

async function kill(id: string, which: 'browser' | 'renderer') {
  const found = (await processesOf(id)).filter(({ command }) =>
    which === 'renderer'
      ? command.includes('--type=renderer')
      : /^\S*chromium\S* /.test(command) && !command.includes('--type='),
  );
  expect(found.length).toBeGreaterThan(0);
  for (const { pid } of found) signal(pid, 'SIGKILL');
}

describe('a crash', () => {
  test('of a renderer is one page’s, and the session lives', async () => {
    const session = await create();
    const browser = await chromium.connectOverCDP(session.cdp_ws_url);
    const page = browser.contexts()[0]!.pages()[0]!;
    await page.goto(pages.url);
    const crashed = page.waitForEvent('crash');
    await kill(session.session_id, 'renderer');
    await crashed;
    const fresh = await browser.contexts()[0]!.newPage();
    await fresh.goto(pages.url);
    expect(await fresh.title()).toBe('A page');
    expect(browser.isConnected()).toBe(true);
    await browser.close();
  });

  test.each([true, false])(
    'of the browser (headless: %s) is mended in place: same id, same addresses, the size it had',
    async (headless) => {
      const session = await create({ headless });
      await sdk.browsers.update(session.session_id, { viewport: { width: 900, height: 700 } });
      const clients = await Promise.all([1, 2].map(() => RawClient.open(session.cdp_ws_url)));
      await kill(session.session_id, 'browser');
      for (const client of clients) {
        expect(await client.closed).toEqual({
          code: 1012,
          reason: 'The browser crashed and is being started again. Connect again to the same address.',
        });
      }

      // At once, as a client that takes the reason by its word does: it is let in when the next browser is there.
      const again = await chromium.connectOverCDP(session.cdp_ws_url);
      const page = again.contexts()[0]!.pages()[0]!;
      await page.goto(pages.url);
      expect(await page.evaluate<number>(headless ? 'innerWidth' : 'outerWidth')).toBe(900);
      await again.close();
      const now = await sdk.browsers.retrieve(session.session_id);
      expect(now).toMatchObject({ session_id: session.session_id, viewport: { width: 900, height: 700 } });
      expect(now.deleted_at).toBeUndefined();
    },
  );

  test('of a browser in standby is repaired too, and it returns to standby', async () => {
    const session = await create();
    const { standby } = service.app.sessions.counts();
    expect(standby).toBe(0);
    // The sandbox's first process names Chromium, too. Were it killed, Chromium would live on for a moment, and answer.
    const browser = (await processesOf(session.session_id)).find(
      ({ command }) => /^\S*chromium\S* /.test(command) && !command.includes('--type='),
    )!;
    await expect.poll(() => service.app.sessions.counts().standby, { timeout: 60_000 }).toBe(1);
    process.kill(browser.pid, 'SIGKILL'); // a frozen process dies when it is woken
    const client = await reconnecting(session.cdp_ws_url);
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');
    await client.close();
    await expect.poll(() => service.app.sessions.counts().standby, { timeout: 60_000 }).toBe(1);
  });

  test('too many ends the session, and says so', async () => {
    const session = await create();
    for (let crash = 1; crash <= 4; crash++) {
      const client = await RawClient.open(session.cdp_ws_url);
      await kill(session.session_id, 'browser');
      expect(await client.closed).toMatchObject(
        crash <= 3 ? { code: 1012 } : { code: 1011, reason: expect.stringContaining('crashed too often') },
      );
    }
    expect((await upgrade(session.cdp_ws_url)).status).toBe(404);
    await expect.poll(() => leftovers(service), { timeout: 60_000 }).toEqual([]);
    expect((await service.call('GET', `/browsers/${session.session_id}`)).status).toBe(404);
    expect(await sdk.browsers.retrieve(session.session_id, { include_deleted: true })).toMatchObject({
      ended_reason: 'crashed',
      deleted_at: expect.any(String),
    });
  });

  test('of the database does not keep an idle session’s browser alive', async () => {
    const own = await startService();
    try {
      const { body } = await own.call('POST', '/browsers', { headless: true });
      const postmaster = readFileSync(join(own.dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0];
      const stopped = own.app.sessions.stop(body.session_id, 'idle');
      process.kill(Number(postmaster), 'SIGKILL');
      await stopped;
      await expect.poll(() => leftovers(own).catch((error: Error) => error.message), { timeout: 60_000 }).toEqual([]);
    } finally {
      await own.close();
    }
  });
});

/** Connects again after code 1012, as clients do. */
async function reconnecting(url: string): Promise<RawClient> {
  for (;;) {
    const client = await RawClient.open(url);
    const answer = await Promise.race([client.result('Browser.getVersion'), client.closed]);
    if ('product' in answer) return client;
    expect(answer).toMatchObject({ code: 1012 });
  }
}

describe('a browser that does not start', () => {
  let dir: string;
  let broken: Service;
  /** A headless shell of a few lines that does what the file beside it says. */
  const behave = (script: string) => writeFileSync(join(dir, 'behaviour'), script);

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'corral-shell-'));
    const shell = join(dir, 'headless-shell');
    writeFileSync(shell, `#!/bin/sh\n[ "$1" = --version ] && { echo Chromium 1.2.3.4; exit; }\n. ${dir}/behaviour\n`);
    chmodSync(shell, 0o755);
    chmodSync(dir, 0o755);
    behave('exit 1');
    broken = await startService({ CORRAL_HEADLESS_SHELL: shell, CORRAL_LAUNCH_SECONDS: '5', CORRAL_MAX_SESSIONS: '4' });
  });
  afterAll(async () => {
    await broken?.close();
    await rm(dir, { recursive: true, force: true });
  });
  afterEach(() => expectNothingLeft(broken));

  const attempt = (body: object = {}) => broken.call('POST', '/browsers', { headless: true, ...body });
  const ended = async () => (await broken.call('GET', '/browsers?status=deleted&limit=1')).body[0];

  test('because it hangs is stopped in time, and the error contains its last output', async () => {
    behave('echo "waiting for the moon" >&2; exec sleep 1000');
    expect(await attempt({ name: 'hanging' })).toMatchObject({
      status: 500,
      body: {
        code: 'browser_did_not_start',
        message: expect.stringMatching(/not ready within 5 s\..*waiting for the moon/s),
      },
    });
    expect(await ended()).toMatchObject({ name: 'hanging', ended_reason: 'did_not_start' });
  });

  test('because it exits at once is an answer with its own message', async () => {
    behave('echo "libmoon.so.1: cannot open shared object file" >&2; exit 127');
    expect(await attempt()).toMatchObject({
      status: 500,
      body: {
        code: 'browser_did_not_start',
        message: expect.stringMatching(/did not start.*libmoon\.so\.1: cannot open shared/s),
      },
    });
    // The place is free again, as often as it takes.
    const again = await Promise.all(Array.from({ length: 4 }, () => attempt()));
    expect(again.map(({ status }) => status)).toEqual([500, 500, 500, 500]);
    expect((await attempt()).status).toBe(500);
  });

  test('because it talks nonsense is given up in time', async () => {
    behave('while :; do printf "nonsense\\0" >&4; sleep 0.2; done');
    expect(await attempt()).toMatchObject({ status: 500, body: { code: 'browser_did_not_start' } });
  });

  test('can be deleted by its name meanwhile, and the answer comes when nothing is left', async () => {
    behave('exec sleep 1000');
    const creating = attempt({ name: 'unwanted' });
    await expect.poll(async () => (await broken.call('GET', '/browsers/unwanted')).body.state).toBe('starting');
    expect((await broken.call('DELETE', '/browsers/unwanted')).status).toBe(204);
    expect(await leftovers(broken)).toEqual([]);
    expect(await creating).toMatchObject({ status: 404, body: { code: 'session_not_found' } });
    expect(await ended()).toMatchObject({ name: 'unwanted', ended_reason: 'deleted' });
  });

  test('goes with its project', async () => {
    behave('exec sleep 1000');
    const project = await broken.sdk().projects.create({ name: 'Short-lived' });
    const header = { 'x-kernel-project-id': project.id };
    const creating = broken.call('POST', '/browsers', { headless: true, name: 'late' }, header);
    await expect.poll(async () => (await broken.call('GET', '/browsers/late', undefined, header)).status).toBe(200);
    await broken.sdk().projects.update(project.id, { status: 'archived' });
    expect((await creating).status).toBe(404);
    await expect.poll(() => leftovers(broken)).toEqual([]);
  });

  test.runIf(process.getuid?.() === 0)('because the disk is full says so, and works again once it is not', async () => {
    behave('exec /usr/lib/chromium/chromium-headless-shell "$@"');
    const sessions = join(broken.dataDir, 'sessions');
    for (const size of ['size=16k,nr_inodes=2', 'size=16k,nr_inodes=6', 'size=16k']) {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `${size},mode=711`, 'corral-test', sessions]);
      try {
        const answer = await attempt();
        expect(answer, size).toMatchObject({
          status: 503,
          body: { code: 'storage_full', message: expect.stringMatching(/no space left.*CORRAL_DATA_DIR/) },
        });
        await expect.poll(() => readdirSync(sessions)).toEqual([]);
      } finally {
        execFileSync('umount', [sessions]);
      }
      await expect.poll(() => onTheMachine(broken.dataDir)).toEqual([]);
    }
    // A busy machine may take longer than these five seconds.
    const started = () => broken.call('POST', '/browsers', { headless: true });
    await expect.poll(started, { timeout: 60_000 }).toMatchObject({ status: 200 });
  });
  if (process.getuid?.() !== 0)
    console.log('Skipped: a full disk needs a file system of its own, which only root mounts.');
});

describe('a client that hangs up', () => {
  test.each([0, 2, 10, 40, 120])('%i ms into POST /browsers leaves nothing', async (ms) => {
    const asked = httpRequest(`${service.url}/browsers`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
    });
    const answered = once(asked, 'response').then(
      () => true,
      () => false,
    );
    asked.end('{"headless":true}');
    await once(asked, 'finish');
    await sleep(ms); // where in the request it happens is what this test is about
    asked.destroy();
    if (await answered) return; // too late to be a hang-up
    await expect.poll(() => leftovers(service), { timeout: 60_000 }).toEqual([]);
  });
});

describe('a full node', () => {
  test('takes as many as it may of fifty at once, refuses the rest with numbers, and is free again afterwards', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => service.call('POST', '/browsers', { headless: true })),
    );
    const taken = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(taken).toHaveLength(CAPACITY);
    for (const { status, headers, body } of refused) {
      expect({ status, body }).toMatchObject({
        status: 529,
        body: { code: 'capacity_exhausted', message: expect.stringMatching(/runs 8 browsers, and 8 is the maximum/) },
      });
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    await Promise.all(taken.map(({ body }) => service.call('DELETE', `/browsers/${body.session_id}`)));
    const again = await Promise.all(
      Array.from({ length: CAPACITY }, () => service.call('POST', '/browsers', { headless: true })),
    );
    expect(again.map(({ status }) => status)).toEqual(again.map(() => 200));
  });

  test('a project never exceeds its cap, with any number of concurrent requests', async () => {
    const project = await sdk.projects.create({ name: 'Capped' });
    await sdk.projects.limits.update(project.id, { max_concurrent_sessions: 2 });
    const header = { 'x-kernel-project-id': project.id };
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => service.call('POST', '/browsers', { headless: true }, header)),
    );
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 200, 429, 429, 429, 429]);
    expect(answers.find(({ status }) => status === 429)).toMatchObject({
      body: { code: 'session_limit_reached', message: expect.stringMatching(/has 2 active sessions, and may have 2/) },
    });
    const mine = answers.filter(({ status }) => status === 200).map(({ body }) => body.session_id);
    expect((await service.call('DELETE', `/browsers/${mine[0]}`, undefined, header)).status).toBe(204);
    const next = await service.call('POST', '/browsers', { headless: true }, header);
    expect(next.status).toBe(200);
    for (const id of [mine[1], next.body.session_id])
      await service.call('DELETE', `/browsers/${id}`, undefined, header);
  });

  test('a limit by the minute counts down in every answer, then refuses', async () => {
    const slow = await startService({ CORRAL_SESSIONS_PER_MINUTE: '2' });
    try {
      for (let times = 0; times < 4; times++) {
        const { status, headers } = await slow.call('POST', '/browsers', { headless: 'not a boolean' });
        expect([status, headers.get('x-ratelimit-remaining')]).toEqual([400, '2']); // it takes nothing from others
      }
      const ask = () => slow.call('POST', '/browsers', { profile: { name: 'not-there' } });
      const answers = [await ask(), await ask(), await ask()];
      expect(answers.map(({ status }) => status)).toEqual([400, 400, 429]);
      expect(answers.map(({ headers }) => headers.get('x-ratelimit-limit'))).toEqual(['2', '2', '2']);
      expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual(['1', '0', '0']);
      expect(answers[2]!.body).toMatchObject({ code: 'rate_limit_exceeded' });
      expect(answers[2]!.headers.get('retry-after')).toMatch(/^([1-9]|[12]\d|30)$/);
      expect((await slow.call('GET', '/browsers')).headers.get('x-ratelimit-limit')).toBeNull();
    } finally {
      await slow.close();
    }
  });
});

describe('the service', () => {
  test('that stops while browsers start takes them along', async () => {
    const stopping = await startService();
    const creating = Array.from({ length: 3 }, () =>
      stopping.call('POST', '/browsers', { headless: true }).catch(() => undefined),
    );
    await expect.poll(() => onTheMachine(stopping.dataDir).length).toBeGreaterThan(0);
    await stopping.close({ keep: true });
    await Promise.all(creating);
    expect(onTheMachine(stopping.dataDir)).toEqual([]);

    const next = await startService({ CORRAL_DATA_DIR: stopping.dataDir });
    expect(await leftovers(next)).toEqual([]);
    await next.close();
  });

  test('that is killed leaves nothing: browsers end with it, and the next one settles its sessions', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'corral-killed-'));
    const env = {
      CORRAL_DATA_DIR: dataDir,
      CORRAL_API_KEY: 'sk_of_the_killed_service',
      CORRAL_WARM_SPARES: 'headless:1',
    };
    const first = await spawnService(env);
    const clientOf = (url: string) => new Kernel({ apiKey: env.CORRAL_API_KEY, baseURL: url, maxRetries: 0 });
    const [headless, headful] = await Promise.all(
      [true, false].map((headless) => clientOf(first.url).browsers.create({ headless })),
    );
    // A session without a client sleeps after a while. With cgroup version 1, a frozen session dies when the next service thaws it.
    const clients = await Promise.all([headless, headful].map((session) => RawClient.open(session!.cdp_ws_url)));
    const starting = clientOf(first.url)
      .browsers.create({ headless: false })
      .catch((error: Error) => error);
    const processes = new Map(tree(first.child.pid!).map((pid) => [pid, startTime(pid)]));
    const database = readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0];
    const isDatabase = (pid: number) => tree(Number(database)).includes(pid);
    await first.kill('SIGKILL');
    await Promise.all([...clients.map(({ closed }) => closed), starting]);
    const alive = () => [...processes].filter(([pid, at]) => startTime(pid) === at && tree(pid).includes(pid));
    await expect
      .poll(() => alive().filter(([pid]) => !isDatabase(pid) && !/postgres/.test(commandOf(pid))), { timeout: 60_000 })
      .toEqual([]);

    const second = await spawnService({ ...env, CORRAL_WARM_SPARES: 'off' });
    await expect.poll(() => onTheMachine(dataDir)).toEqual([]);
    const sdk = clientOf(second.url);
    expect((await sdk.browsers.list()).getPaginatedItems()).toEqual([]);
    for (const { session_id, cdp_ws_url } of [headless!, headful!]) {
      expect(await sdk.browsers.retrieve(session_id, { include_deleted: true })).toMatchObject({
        ended_reason: 'service_restarted',
        deleted_at: expect.any(String),
      });
      const { pathname, search } = new URL(cdp_ws_url);
      expect(await upgrade(second.url + pathname + search)).toMatchObject({ status: 404 });
    }
    await second.kill();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }, 300_000);
});

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
}
