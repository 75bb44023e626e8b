import Kernel from '@onkernel/sdk';
import { readFileSync } from 'node:fs';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { tree } from '../../src/chromium/sandbox/process-tree.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { RawClient } from '../support/mux-server.ts';
import { startPages, type Pages } from '../support/pages.ts';
import { startService, type Service } from '../support/service.ts';

let pages: Pages;
let service: Service;
let sdk: Kernel;
beforeAll(async () => {
  pages = await startPages({
    '/old': '<title>old</title>',
    '/self': '<title>self</title><script>document.title = String(navigator.webdriver)</script>',
  });
  const settings = { CORRAL_ALLOW_PRIVATE_HOSTS: `${pages.host},localhost` };
  service = await startService(settings, { timings: { standbyMs: 1000, secondMs: 500 } });
  sdk = service.sdk();
});
afterAll(async () => {
  await service?.close();
  await pages?.close();
});
// Of tests that run at the same time, it is checked after the last.
afterEach(async ({ task }) => {
  if (!task.concurrent) await expectNothingLeft(service);
});

const create = (wishes: Kernel.BrowserCreateParams = {}) => sdk.browsers.create({ headless: true, ...wishes });
/** With fields that the client's types do not know. */
const post = (body: object) => service.call('POST', '/browsers', { headless: true, ...body });

async function visit<T>(
  session: { cdp_ws_url: string },
  look: (page: Page, browser: Browser) => Promise<T>,
): Promise<T> {
  const browser = await chromium.connectOverCDP(session.cdp_ws_url);
  try {
    return await look(browser.contexts()[0]!.pages()[0]!, browser);
  } finally {
    await browser.close();
  }
}

// At the same time, because each of them begins with a wait.
describe.concurrent('a session that no client uses', () => {
  afterAll(() => expectNothingLeft(service));

  const standingBy = ({ session_id }: { session_id: string }) => service.app.sessions.running(session_id)!.standingBy;

  test('is deleted after its timeout, and kept past it by a client and by requests', async ({ expect }) => {
    const held = await create({ timeout_seconds: 10 }); // in use before the next one starts, which may take longer than this
    const client = await RawClient.open(held.cdp_ws_url);
    const woken = await create({ timeout_seconds: 10 });
    const touch = setInterval(() => void fetch(`${woken.base_url}/json/version`).catch(() => {}), 1500);
    try {
      const left = await create({ timeout_seconds: 10 }); // made last: when it has ended, the others would have
      await expect.poll(() => service.app.sessions.running(left.session_id), { timeout: 60_000 }).toBeUndefined();
      const ended = await sdk.browsers.retrieve(left.session_id, { include_deleted: true });
      expect(ended).toMatchObject({ ended_reason: 'idle' });
      for (const { session_id } of [held, woken]) expect(service.app.sessions.running(session_id)).toBeDefined();
    } finally {
      clearInterval(touch);
    }
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');
    await client.close();
  });

  test.for([true, false])('is frozen (headless: %s), and wakes for a client', async (headless, { expect }) => {
    const session = await create({ headless });
    const seen = () => service.call('GET', `/browsers/${session.session_id}/thumbnail`);
    const current = async () => (await service.call('GET', `/browsers/${session.session_id}`)).body;
    const { engine, release } = await service.app.sessions.hold(session.session_id);
    const processes = tree(engine.browser.init!);
    release();
    await visit(session, async (page) => {
      await page.goto(pages.url);
      await expect.poll(async () => (await seen()).status, { timeout: 60_000 }).toBe(200);
      // Something that would burn a core if it were let.
      await page.evaluate(
        '{ const burn = () => { const end = performance.now() + 50; while (performance.now() < end); setTimeout(burn); }; burn(); window.kept = 42 }',
      );
      const used = { state: 'live', clients: { cdp: 1 }, node_id: expect.any(String) };
      await expect.poll(current).toMatchObject({ ...used, active_page: { url: pages.url } }); // a busy browser answers late
      expect(await current()).not.toHaveProperty('ends_at');
    });
    await expect.poll(() => standingBy(session), { timeout: 60_000 }).toBe(true);

    const before = cpuTicks(processes);
    expect((await seen()).headers.get('content-type')).toBe('image/jpeg');
    // What it was doing when it fell asleep: neither a look at it nor a list wakes it.
    const asleep = {
      state: 'standby',
      clients: { cdp: 0, webdriver: 0, live_view: 0, terminal: 0, requests: 0 },
      ends_at: expect.any(String),
      active_page: { url: pages.url, title: expect.any(String), seen_at: expect.any(String) },
    };
    expect(await current()).toMatchObject({ ...asleep, memory_bytes: expect.any(Number) });
    expect((await service.call('GET', `/browsers?query=${session.session_id}`)).body).toMatchObject([asleep]);
    const uptime = async () => (await sdk.browsers.retrieve(session.session_id)).usage!.uptime_ms;
    const first = await uptime();
    for (let ask = 0; ask < 40; ask++) await sdk.browsers.retrieve(session.session_id); // a good while, in which it could run
    expect(cpuTicks(processes)).toBe(before);
    expect(await uptime()).toBe(first);

    await visit(session, async (page) => {
      expect(await page.evaluate('window.kept')).toBe(42);
      expect(standingBy(session)).toBe(false);
    });
    expect(await uptime()).toBeGreaterThan(first);
    expect(cpuTicks(processes)).toBeGreaterThan(before);
  });

  test('is changed during standby', async ({ expect }) => {
    const session = await create();
    await expect.poll(() => standingBy(session), { timeout: 60_000 }).toBe(true);
    await sdk.browsers.update(session.session_id, { viewport: { width: 801, height: 601 } });
    expect(await visit(session, (page) => page.evaluate('[innerWidth, innerHeight]'))).toEqual([801, 601]);
  });

  test('is deleted during standby', async ({ expect }) => {
    const session = await create();
    await expect.poll(() => standingBy(session), { timeout: 60_000 }).toBe(true);
    await sdk.browsers.deleteByID(session.session_id);
    await expect.poll(() => service.app.sessions.running(session.session_id)).toBeUndefined();
  });
});

/** Processor time of processes, in ticks of the kernel's clock. */
function cpuTicks(pids: number[]): number {
  return pids.reduce((sum, pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return sum + Number(fields[11]) + Number(fields[12]);
    } catch {
      return sum;
    }
  }, 0);
}

describe('a session that runs', () => {
  test.each([true, false])('takes another viewport (headless: %s) with no restart', async (headless) => {
    const session = await create({ headless });
    const size = headless ? '[innerWidth, innerHeight]' : '[outerWidth, outerHeight]';
    await visit(session, async (page, browser) => {
      await page.goto(pages.url);
      await page.evaluate('window.kept = 42');
      for (const [width, height] of [
        [1024, 768],
        [1440, 900],
        [800, 600],
      ] as const) {
        const rate = width === 1024 ? { refresh_rate: 30 } : {}; // stays when it is left out
        const updated = await sdk.browsers.update(session.session_id, { viewport: { width, height, ...rate } });
        expect(updated.viewport).toEqual({ width, height, refresh_rate: 30 });
        await expect.poll(() => page.evaluate(size)).toEqual([width, height]);
      }
      expect(await page.evaluate('window.kept')).toBe(42);

      const tab = await browser.contexts()[0]!.newPage();
      await expect.poll(() => tab.evaluate(size)).toEqual([800, 600]);
      if (!headless) expect(await tab.evaluate('[screen.width, screen.height]')).toEqual([800, 600]);
      await tab.close();
      expect(browser.isConnected()).toBe(true);
    });
    // The next client finds it so too.
    expect(await visit(session, (page) => page.evaluate(size))).toEqual([800, 600]);
  });

  test('starts in the requested viewport', async () => {
    for (const headless of [true, false]) {
      const session = await create({ headless, viewport: { width: 1000, height: 650 } });
      const size = headless ? '[innerWidth, innerHeight]' : '[outerWidth, outerHeight]';
      expect(await visit(session, (page) => page.evaluate(size))).toEqual([1000, 650]);
    }
  });

  test('refuses a viewport that cannot be, and stays as it was', async () => {
    const session = await create();
    for (const viewport of [
      { width: 0, height: 10 },
      { width: 10 },
      { width: 1.5, height: 10 },
      { width: 100_000, height: 10 },
      { width: 800, height: 600, refresh_rate: 0 },
    ]) {
      const answer = await service.call('PATCH', `/browsers/${session.session_id}`, { viewport });
      expect(answer, JSON.stringify(viewport)).toMatchObject({
        status: 400,
        body: { code: 'invalid_input', message: expect.stringContaining('viewport') },
      });
      const { viewport: kept } = await sdk.browsers.retrieve(session.session_id);
      expect(kept, JSON.stringify(viewport)).toMatchObject({ width: 1920, height: 1080 });
    }
  });

  test('has a name of its own, which is free again when it has ended', async () => {
    const first = await create({ name: 'crawler' });
    const second = await create();
    const clash = {
      status: 409,
      body: { code: 'already_exists', message: expect.stringMatching(/'crawler' exists/i) },
    };
    const answers = [
      await post({ name: 'crawler' }),
      await post({ name: 'CRAWLER' }),
      await service.call('PATCH', `/browsers/${second.session_id}`, {
        name: 'crawler',
        viewport: { width: 640, height: 480 },
      }),
    ];
    for (const answer of answers) {
      expect(answer).toMatchObject(clash);
      expect(answer.headers.get('x-should-retry')).toBe('false');
    }
    // Refused means refused whole: the size has not changed either.
    expect((await sdk.browsers.retrieve(second.session_id)).viewport).toMatchObject({ width: 1920, height: 1080 });
    expect(await visit(second, (page) => page.evaluate('innerWidth'))).toBe(1920);

    expect((await sdk.browsers.retrieve('crawler')).session_id).toBe(first.session_id);
    expect(await sdk.browsers.update('crawler', { name: 'other' })).toMatchObject({ name: 'other' });
    expect(await sdk.browsers.update(second.session_id, { name: 'crawler' })).toMatchObject({ name: 'crawler' });
    expect((await sdk.browsers.update('other', { name: '' })).name).toBeUndefined();
    await sdk.browsers.update(first.session_id, { name: 'other' });
    expect((await service.call('PATCH', '/browsers/other', { name: null })).body.name).toBeUndefined();
    await sdk.browsers.deleteByID('crawler');
    const third = await create({ name: 'crawler' });
    expect((await sdk.browsers.retrieve('crawler')).session_id).toBe(third.session_id);
  });

  test('cannot have a name that would not fit into an address', async () => {
    for (const name of ['with space', 'slash/', '', 'x'.repeat(256), 'ümlaut']) {
      expect(await post({ name }), name).toMatchObject({ status: 400, body: { code: 'invalid_input' } });
    }
  });

  test('has tags within bounds, replaced whole, to be found by', async () => {
    const fifty = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`key ${index}`, 'x'.repeat(256)]));
    for (const tags of [
      { ...fifty, more: 'x' },
      { ['k'.repeat(129)]: 'x' },
      { '': 'x' },
      { key: 'x'.repeat(257) },
      { 'no;': 'x' },
      { key: 'ü' },
      { key: 1 },
      [],
    ]) {
      expect(await post({ tags }), JSON.stringify(tags).slice(0, 80)).toMatchObject({
        status: 400,
        body: { code: 'invalid_input' },
      });
    }
    const most = await create({ tags: fifty });
    expect(most.tags).toEqual(fifty);
    const session = await create({ tags: { team: 'a', env: 'x=y', 'owner@site': 'a b/c:d+e_f.g-h' } });
    const found = async (query: string) =>
      (await service.call('GET', `/browsers?${query}`)).body.map(
        ({ session_id }: { session_id: string }) => session_id,
      );
    expect(await found('tags[team]=a')).toEqual([session.session_id]);
    expect(await found(`tags[team]=a&tags[env]=${encodeURIComponent('x=y')}`)).toEqual([session.session_id]);
    expect(await found('tags[team]=a&tags[env]=z')).toEqual([]);
    expect(await found('tags[team]=A')).toEqual([]);

    expect((await sdk.browsers.update(session.session_id, { tags: { team: 'b' } })).tags).toEqual({ team: 'b' });
    expect((await service.call('PATCH', `/browsers/${session.session_id}`, { tags: null })).body.tags).toEqual({
      team: 'b',
    });
    expect(await found('tags[team]=a')).toEqual([]);
    expect((await sdk.browsers.update(session.session_id, { tags: {} })).tags).toEqual({});
  });

  test('is listed by status, name and id; ended sessions are listed on request', async () => {
    const project = await sdk.projects.create({ name: 'Lists' });
    const mine = service.sdk(service.key, { projectID: project.id });
    const [a, b] = [
      await mine.browsers.create({ headless: true, name: 'Alpha-one' }),
      await mine.browsers.create({ headless: true, name: 'beta' }),
    ];
    await mine.browsers.deleteByID(b.session_id);
    const names = async (params: Kernel.BrowserListParams) =>
      (await mine.browsers.list(params)).getPaginatedItems().map(({ name }) => name);
    expect(await names({})).toEqual(['Alpha-one']);
    expect(await names({ status: 'deleted' })).toEqual(['beta']);
    expect(await names({ status: 'all' })).toEqual(['beta', 'Alpha-one']);
    expect(await names({ include_deleted: true })).toEqual(['beta', 'Alpha-one']);
    expect(await names({ query: 'ALPHA' })).toEqual(['Alpha-one']);
    expect(await names({ query: a.session_id })).toEqual(['Alpha-one']);
    expect(await names({ query: a.session_id.slice(0, 8) })).toEqual([]);
    expect(await names({ query: 'beta', status: 'all', limit: 1 })).toEqual(['beta']);
    expect(await names({ query: '%' })).toEqual([]);
    expect((await service.call('GET', '/browsers?status=gone')).status).toBe(400);
    // Another project sees nothing of it.
    expect((await service.call('GET', `/browsers/${a.session_id}`)).status).toBe(404);
    expect((await service.call('DELETE', `/browsers/${a.session_id}`)).status).toBe(404);

    await expect(mine.browsers.retrieve(b.session_id)).rejects.toThrow(Kernel.NotFoundError);
    expect(await mine.browsers.retrieve(b.session_id, { include_deleted: true })).toMatchObject({
      session_id: b.session_id,
      deleted_at: expect.any(String),
      usage: { uptime_ms: expect.any(Number) },
      state: expect.stringMatching(/^stopp(ing|ed)$/),
      ended_reason: 'deleted',
    });
    await mine.browsers.deleteByID(a.session_id);
    await expect(mine.browsers.deleteByID(a.session_id)).rejects.toThrow(Kernel.NotFoundError);
  });
});

describe('a session starts', () => {
  test('with exactly one page, and answers at its base address as Chromium does', async () => {
    for (const headless of [true, false]) {
      const session = await create({ headless });
      const list = (await (await fetch(`${session.base_url}/json/list`)).json()) as {
        type: string;
        webSocketDebuggerUrl: string;
      }[];
      expect(list.filter(({ type }) => type === 'page')).toHaveLength(1);
      expect(list.map(({ type }) => type)).not.toContain('browser_ui');
      const version = (await (await fetch(`${session.base_url}/json/version`)).json()) as Record<string, string>;
      expect(version).toMatchObject({ Browser: expect.stringMatching(/Chrom/), 'Protocol-Version': '1.3' });
      for (const url of [version['webSocketDebuggerUrl']!, session.base_url!]) {
        const browser = await chromium.connectOverCDP(url);
        expect(browser.contexts().flatMap((context) => context.pages())).toHaveLength(1);
        await browser.close();
      }

      const at = (path: string, method = 'GET') => fetch(`${session.base_url}/json/${path}`, { method });
      const page = await RawClient.open(list[0]!.webSocketDebuggerUrl);
      expect(await page.result('Runtime.evaluate', { expression: '1 + 1' })).toMatchObject({ result: { value: 2 } });
      const made = (await (await at(`new?${encodeURIComponent(pages.url)}`, 'PUT')).json()) as Record<string, string>;
      expect(made).toMatchObject({ type: 'page', devtoolsFrontendUrl: expect.stringContaining('inspector.html?ws=') });
      const second = await RawClient.open(made['webSocketDebuggerUrl']!);
      await second.result('Page.enable');
      expect(await (await at(`activate/${made['id']}`)).text()).toBe('Target activated');
      expect(await (await at(`close/${made['id']}`)).text()).toBe('Target is closing');
      expect(await second.closed).toEqual({ code: 1000, reason: 'The page was closed.' });
      await page.close();
      expect((await at(`close/${made['id']}`)).status).toBe(404);
      expect((await at('new')).status).toBe(405);
      expect((await at('nothing')).status).toBe(404);
      const { domains } = (await (await at('protocol')).json()) as { domains: { domain: string }[] };
      expect(domains.map(({ domain }) => domain)).toEqual(expect.arrayContaining(['Page', 'Runtime']));
    }
  });

  test('at its start_url, as an address bar takes it', async () => {
    const { host } = new URL(pages.url);
    for (const [start_url, expected] of [
      [pages.url, pages.url],
      ['about:blank', 'about:blank'],
      // Without a scheme it is https, which our page does not speak; where it went is what counts.
      [host, `https://${host}/`],
    ] as const) {
      const session = await create({ start_url });
      expect(session.start_url).toBe(start_url);
      const target = async () =>
        ((await (await fetch(`${session.base_url}/json/list`)).json()) as { url: string }[])[0]!.url;
      await expect.poll(target).toBe(expected);
    }
  });

  test.each([
    'https://no-such-host.invalid/',
    'http://127.0.0.1:1/',
    'nonsense://x',
    'http://[',
    ':::',
    'javascript:while(1);',
  ])('all the same when its start_url is %s', async (start_url) => {
    const session = await create({ start_url });
    expect(session.start_url).toBe(start_url);
    const client = await RawClient.open(session.cdp_ws_url);
    const { sessionId } = await client.page(pages.url);
    await expect.poll(() => client.evaluate('1 + 1', sessionId)).toBe(2); // it may be on its way to its address
    await client.close();
  });

  test('under its own policy, which is echoed under both names', async () => {
    const { host } = new URL(pages.url);
    const policy = { URLBlocklist: [`${host}/old`] };
    for (const [field, headless] of [
      ['engine_policy', true],
      ['chrome_policy', false],
    ] as const) {
      const { status, body: session } = await post({ headless, [field]: policy });
      expect({ status, session }).toMatchObject({
        status: 200,
        session: { engine_policy: policy, chrome_policy: policy },
      });
      await visit(session, async (page) => {
        await page.goto(pages.url);
        expect(await page.title()).toBe('A page');
        await expect(page.goto(`${pages.url}old`)).rejects.toThrow('ERR_BLOCKED_BY_ADMINISTRATOR');
      });
      expect((await service.call('GET', `/browsers/${session.session_id}`)).body).toMatchObject({
        chrome_policy: policy,
      });
    }
    // It is of no other session.
    await visit(await create({ headless: false }), async (page) => {
      await page.goto(`${pages.url}old`);
      expect(await page.title()).toBe('old');
    });
  });

  test.each([
    { ExtensionInstallForcelist: ['x'] },
    { ProxyMode: 'direct' },
    { ProxySettings: {} },
    { RemoteDebuggingAllowed: true },
    { DeveloperToolsAvailability: 2 },
    { UserDataDir: '/x' },
    { extensionSettings: {} },
  ])('never under the policy %j', async (policy) => {
    const [name] = Object.keys(policy);
    for (const field of ['engine_policy', 'chrome_policy']) {
      expect(await post({ [field]: policy })).toMatchObject({
        status: 400,
        body: { code: 'invalid_input', message: expect.stringContaining(`${field}.${name}`) },
      });
    }
    expect(await post({ engine_policy: { A: 1 }, chrome_policy: { A: 2 } })).toMatchObject({ status: 400 });
  });

  test('in kiosk mode without tabs and address bar', async () => {
    const bars = 'outerHeight - innerHeight';
    const [kiosk, plain] = await Promise.all([
      create({ headless: false, kiosk_mode: true }),
      create({ headless: false }),
    ]);
    expect(kiosk.kiosk_mode).toBe(true);
    await expect.poll(() => visit(kiosk, (page) => page.evaluate(bars))).toBe(0);
    expect(await visit(plain, (page) => page.evaluate(bars))).toBeGreaterThan(50);
  });

  test.each([true, false])('in stealth (headless: %s) without signs of automation', async (headless) => {
    const session = await create({ headless, stealth: true });
    expect(session.stealth).toBe(true);
    await visit(session, async (page) => {
      await page.goto(`${pages.url}self`);
      expect(await page.title()).toBe('false');
      expect(await page.evaluate('navigator.userAgent')).not.toMatch(/headless/i);
      expect(await page.evaluate('[navigator.onLine, outerHeight - innerHeight < 100]')).toEqual([true, true]); // no infobar
    });
  });

  test('on a GPU only where there is one', async () => {
    expect(await post({ gpu: true })).toMatchObject({ status: 400, body: { code: 'invalid_input' } });
    const answer = await post({ gpu: true, headless: false });
    if (answer.status !== 200)
      expect(answer).toMatchObject({
        status: 400,
        body: { code: 'gpu_unavailable', message: expect.stringContaining('no GPU') },
      });
  });
});

test('a browser cannot be created for an unknown invocation', async () => {
  expect(await post({ invocation_id: 'x' })).toMatchObject({
    status: 404,
    body: { code: 'invocation_not_found', message: expect.stringContaining("'x'") },
  });
});

describe('a project', () => {
  test('that is archived ends its sessions; a project with sessions is not deleted', async () => {
    const project = await sdk.projects.create({ name: 'Archive' });
    const mine = service.sdk(service.key, { projectID: project.id });
    const session = await mine.browsers.create({ headless: true });
    const kept = await create();
    const client = await RawClient.open(session.cdp_ws_url);
    expect(await service.call('DELETE', `/org/projects/${project.id}`)).toMatchObject({
      status: 409,
      body: { code: 'project_not_empty', message: expect.stringContaining('1 active browser') },
    });
    expect(await client.result('Browser.getVersion')).toHaveProperty('product');

    await sdk.projects.update(project.id, { status: 'archived' });
    expect(await client.closed).toEqual({ code: 1001, reason: 'Its project was archived or deleted.' });
    await expect.poll(() => service.app.sessions.running(session.session_id)).toBeUndefined();
    expect(service.app.sessions.running(kept.session_id)).toBeDefined();

    await sdk.projects.update(project.id, { status: 'active' });
    expect(await mine.browsers.retrieve(session.session_id, { include_deleted: true })).toMatchObject({
      ended_reason: 'project_closed',
    });
    await sdk.projects.delete(project.id);
  });
});
