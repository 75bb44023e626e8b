import { chromium as playwright } from 'playwright-core';
import { connect as connectPuppeteer } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { silent } from '../../lib/log.ts';
import type { Capture, TelemetryEvent } from '../../lib/telemetry.ts';
import { intoList } from '../../../test/support/fake-telemetry.ts';
import { muxServer, RawClient, type MuxServer } from '../../../test/support/mux-server.ts';
import { telemetrySite } from '../../../test/support/telemetry-site.ts';
import { collect, type Collector } from './collector.ts';

const everything: Capture = new Set(['console', 'network', 'page', 'interaction', 'screenshot', 'captcha'] as const);

let server: MuxServer;
let site: Awaited<ReturnType<typeof telemetrySite>>;
let client: RawClient;
let collector: Collector;
const events: TelemetryEvent[] = [];

beforeAll(async () => {
  site = await telemetrySite();
  server = await muxServer(undefined, undefined, '--site-per-process');
  client = await RawClient.open(server.endpoint);
  collector = collect({ mux: server.mux, capture: everything, sink: intoList(events), log: silent });
  await collector.ready;
});

beforeEach(() => void (events.length = 0));

afterAll(async () => {
  await collector?.close();
  await client?.close();
  await server?.stop();
  site?.close();
});

type Data = Record<string, unknown>;
const of = (type: string, where: Data = {}): Data[] =>
  events
    .filter((event) => event.type === type)
    .map(({ data }) => data ?? {})
    .filter((data) => Object.entries(where).every(([name, value]) => data[name] === value));

/** The first event of this type with these fields, as soon as it is captured. A page of the previous test may still cause events, so name yours. */
async function seen(type: string, where: Data = {}): Promise<Data> {
  await expect.poll(() => of(type, where), { message: `${type} ${JSON.stringify(where)}` }).not.toEqual([]);
  return of(type, where)[0]!;
}

const id = expect.stringMatching(/^[0-9A-F]{32}$/);
const here = { session_id: id, target_id: id, target_type: 'page', frame_id: id, loader_id: id, nav_seq: 1 };

describe('a page', () => {
  test('reports the steps of its load', async () => {
    const url = `${site.url}/`;
    const { targetId } = await client.page(url);

    const context = { ...here, url, target_id: targetId };
    await seen('page_navigation_settled', { url });
    expect(await seen('page_tab_opened')).toEqual({ target_id: targetId, target_type: 'page', url, title: '' });
    expect(await seen('page_navigation', { url })).toEqual({
      url,
      frame_id: targetId,
      loader_id: id,
      session_id: id,
      target_id: targetId,
      target_type: 'page',
    });
    expect(await seen('page_dom_content_loaded')).toEqual({ ...context, cdp_timestamp: expect.any(Number) });
    expect(await seen('page_load')).toEqual({ ...context, cdp_timestamp: expect.any(Number) });
    expect(await seen('page_lcp')).toEqual({
      ...context,
      source_frame_id: targetId,
      time: expect.any(Number),
      lcp_details: {
        size: expect.any(Number),
        element_id: 'large',
        node_id: expect.any(Number),
        load_time: 0,
        render_time: expect.any(Number),
      },
    });
    expect(await seen('page_layout_settled', { url })).toEqual(context);
    expect(await seen('page_navigation_settled', { url })).toEqual(context);
    expect(await seen('network_idle', { url })).toEqual(context);

    expect(await seen('network_request', { url })).toMatchObject({
      ...context,
      nav_seq: 0,
      method: 'GET',
      document_url: url,
      headers: { 'User-Agent': expect.stringContaining('Chrome') },
      resource_type: 'Document',
      initiator_type: 'other',
      is_redirect: false,
    });
    expect(await seen('network_response', { url })).toMatchObject({
      ...context,
      request_id: (await seen('network_request', { url }))['request_id'],
      method: 'GET',
      status: 200,
      status_text: 'OK',
      headers: { 'content-type': 'text/html' },
      mime_type: 'text/html',
      resource_type: 'Document',
      body: expect.stringContaining('<title>Start</title>'),
    });
    await client.result('Target.closeTarget', { targetId });
  });

  test('reports layout shifts', async () => {
    const { targetId } = await client.page(`${site.url}/shift`);
    expect(await seen('page_layout_shift')).toEqual({
      ...here,
      url: `${site.url}/shift`,
      source_frame_id: targetId,
      time: expect.any(Number),
      duration: 0,
      layout_shift_details: { value: expect.any(Number), had_recent_input: false },
    });
    await client.result('Target.closeTarget', { targetId });
  });

  test('is shown in a picture', async () => {
    const { targetId } = await client.page(`${site.url}/form`);
    const { png } = await seen('monitor_screenshot');
    expect(Buffer.from(String(png), 'base64').subarray(1, 4).toString()).toBe('PNG');
    await client.result('Target.closeTarget', { targetId });
  });
});

describe('the console', () => {
  test('reports its calls and uncaught exceptions', async () => {
    const { targetId, sessionId } = await client.page(`${site.url}/`);
    await seen('page_load', { url: `${site.url}/` });
    await client.evaluate(
      `console.warn('one', 2, { three: [4] }); console.error('five'); setTimeout(function six() { throw new TypeError('seven') }), 1`,
      sessionId,
    );
    const context = { ...here, url: `${site.url}/` };
    const stack = { callFrames: expect.arrayContaining([expect.objectContaining({ lineNumber: 0 })]) };
    expect(await seen('console_log', { level: 'warning' })).toEqual({
      ...context,
      level: 'warning',
      text: 'one',
      args: ['one', '2', '{three: Array(1)}'],
      stack_trace: stack,
    });
    expect(await seen('console_error', { level: 'error' })).toEqual({
      ...context,
      level: 'error',
      text: 'five',
      args: ['five'],
      stack_trace: stack,
    });
    expect(await seen('console_error', { text: 'Uncaught TypeError: seven' })).toMatchObject({
      ...context,
      line: 0,
      column: expect.any(Number),
      stack_trace: { callFrames: [{ functionName: 'six' }] },
    });
    await client.result('Target.closeTarget', { targetId });
  });
});

describe('the network', () => {
  test('reports redirects, failures and bodies, and no secrets', async () => {
    const { targetId, sessionId } = await client.page(`${site.url}/`);
    await seen('page_load', { url: `${site.url}/` });
    await client.evaluate(
      `Promise.all([
        fetch('/redirect', { headers: { Authorization: 'Bearer planted-header' } }),
        fetch('/json'),
        fetch('/binary'),
        fetch('http://127.0.0.1:1/').catch(() => {}),
        fetch('/posted', { method: 'POST', headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ user: 'me', password: 'planted-password' }) }),
      ]).then((answers) => Promise.all(answers.map((answer) => answer?.text()))).then(() => 1)`,
      sessionId,
    );
    const text = `${site.url}/text`;
    expect(await seen('network_request', { url: `${site.url}/redirect` })).toMatchObject({
      headers: { Authorization: '[redacted]' },
      is_redirect: false,
    });
    expect(await seen('network_response', { url: `${site.url}/redirect` })).toMatchObject({ status: 302 });
    expect(await seen('network_request', { url: text })).toMatchObject({
      is_redirect: true,
      redirect_url: `${site.url}/redirect`,
    });
    expect(await seen('network_response', { url: text })).toMatchObject({ body: 'y'.repeat(4096) });
    expect((await seen('network_response', { url: `${site.url}/json` }))['body']).toHaveLength(8192);
    expect(await seen('network_response', { url: `${site.url}/binary` })).not.toHaveProperty('body');
    expect(await seen('network_request', { url: `${site.url}/posted` })).toMatchObject({
      method: 'POST',
      post_data: '{"user":"me","password":"[redacted]"}',
    });
    expect(await seen('network_loading_failed', { url: 'http://127.0.0.1:1/' })).toMatchObject({
      ...here,
      request_id: expect.any(String),
      error_text: expect.stringMatching(/^net::ERR_/),
      canceled: false,
      resource_type: 'Fetch',
    });
    expect(JSON.stringify(events)).not.toContain('planted');
    await client.result('Target.closeTarget', { targetId });
  });
});

describe('every target is observed from its start', () => {
  test('a popup', async () => {
    const { targetId, sessionId } = await client.page(`${site.url}/`);
    await seen('page_load', { url: `${site.url}/` });
    await client.evaluate(`window.open('/popup'), 1`, sessionId);
    const url = `${site.url}/popup`;
    expect(await seen('page_tab_opened', { url })).toMatchObject({ opener_id: targetId });
    await seen('network_request', { url });
    await seen('network_response', { url });
    await seen('console_log', { text: 'popup says', url });
    await client.result('Target.closeTarget', { targetId });
  });

  test('a dedicated worker and a service worker', async () => {
    const { targetId, sessionId } = await client.page(`${site.url}/`);
    await seen('page_load', { url: `${site.url}/` });
    await client.evaluate(
      `new Promise((done) => (new Worker('/worker.js').onmessage = done))
        .then(() => navigator.serviceWorker.register('/service-worker.js')).then(() => 1)`,
      sessionId,
    );
    expect(await seen('console_log', { text: 'worker says' })).toMatchObject({
      target_type: 'other',
      url: `${site.url}/worker.js`,
    });
    expect(events.find(({ data }) => data?.['text'] === 'worker says')?.source).toEqual({
      kind: 'cdp',
      event: 'Runtime.consoleAPICalled',
      metadata: { target_type: 'worker' },
    });
    expect(await seen('network_response', { url: `${site.url}/from-worker` })).toMatchObject({
      body: 'for the worker',
    });
    expect(await seen('console_log', { text: 'service worker says' })).toMatchObject({ target_type: 'service_worker' });
    expect(await seen('network_response', { url: `${site.url}/from-service-worker` })).toMatchObject({
      target_type: 'service_worker',
      body: 'for the service worker',
    });
    await client.result('Target.closeTarget', { targetId });
  });

  test('a frame of another site', async () => {
    const url = `${site.otherUrl}/frame`;
    const { targetId } = await client.page(`${site.url}/embeds?url=${encodeURIComponent(url)}`);
    const said = await seen('console_log', { text: 'frame says' });
    expect(said).toMatchObject({ url, target_type: 'other', target_id: said['frame_id'] });
    expect(said['target_id']).not.toBe(targetId);
    expect(await seen('page_navigation', { url })).toMatchObject({ parent_frame_id: targetId });
    expect(await seen('network_response', { url })).toMatchObject({ status: 200 });
    await client.result('Target.closeTarget', { targetId });
  });

  test('a page that is closed while it loads', async () => {
    const url = `${site.url}/endless`;
    const { targetId } = await client.page(url);
    await seen('page_navigation', { url });
    await client.result('Target.closeTarget', { targetId });
    expect(await seen('network_loading_failed', { url })).toMatchObject({
      error_text: 'net::ERR_ABORTED',
      canceled: true,
      resource_type: 'Document',
    });
  });
});

describe('interactions', () => {
  test('are captured, but no key and no text of secret fields', async () => {
    const url = `${site.url}/form`;
    const { targetId, sessionId } = await client.page(url);
    await seen('page_load', { url });
    const click = async (selector: string) => {
      const box = `(({ x, y, width, height }) => [x + width / 2, y + height / 2])(document.querySelector('${selector}').getBoundingClientRect())`;
      const [x, y] = (await client.evaluate(box, sessionId)) as [number, number];
      for (const type of ['mousePressed', 'mouseReleased'])
        await client.result('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 }, sessionId);
    };
    const press = async (key: string) => {
      for (const type of ['keyDown', 'keyUp'])
        await client.result(
          'Input.dispatchKeyEvent',
          { type, key, text: type === 'keyDown' ? key : undefined },
          sessionId,
        );
    };
    await click('#secret');
    await press('p');
    await client.evaluate(`document.querySelector('#secret').type = 'text'`, sessionId);
    await press('q');
    await click('#code');
    await press('r');
    await click('#name');
    await press('n');
    await click('#go');
    await client.result(
      'Input.dispatchMouseEvent',
      { type: 'mouseWheel', x: 50, y: 50, deltaX: 0, deltaY: 300 },
      sessionId,
    );

    const context = { ...here, url };
    const position = { x: expect.any(Number), y: expect.any(Number) };
    expect(await seen('interaction_click', { tag: 'BUTTON' })).toEqual({
      ...context,
      ...position,
      selector: 'button#go',
      tag: 'BUTTON',
      text: 'Go now',
    });
    expect(await seen('interaction_scroll_settled')).toEqual({
      ...context,
      from_x: 0,
      from_y: 0,
      to_x: 0,
      to_y: expect.any(Number),
      target_selector: 'html',
    });
    expect(of('interaction_key')).toEqual([{ ...context, key: 'n', selector: 'input#name', tag: 'INPUT' }]);
    expect(of('interaction_click').map(({ selector, text }) => [selector, text])).toEqual([
      ['input#secret', ''],
      ['input#code', ''],
      ['input#name', ''],
      ['button#go', 'Go now'],
    ]);
    expect(JSON.stringify(of('interaction_click'))).not.toContain('hunter2');
    await client.result('Target.closeTarget', { targetId });
  });
});

describe('captchas', () => {
  const hcaptcha = 'https://newassets.hcaptcha.com/captcha/v1/abc/static/hcaptcha.html#frame=checkbox&id=0';
  const recaptcha = 'https://www.google.com/recaptcha/api2/anchor?ar=1&k=key';
  const turnstile = 'https://challenges.cloudflare.com/cdn-cgi/challenge-platform/h/b/turnstile/if/ov2/av0/rcv/abc';
  /** A widget that sends its page the test's messages, as widgets send their outcomes. */
  const widget = `<button>I am human</button><script>onmessage = ({ data }) => parent.postMessage(data, '*')</script>`;

  let count = 0;

  /** A page with a widget from the test: nothing leaves this machine. Its path is unique, to emit its results by. */
  async function pageWithWidget(address: string) {
    const path = `/captcha/${++count}`;
    const page = await client.page(site.url + path);
    await seen('page_load', { url: site.url + path });
    await client.result('Fetch.enable', { patterns: [{ urlPattern: 'https://*' }] }, page.sessionId);
    const body = Buffer.from(widget).toString('base64');
    const answer = (message: Buffer) => {
      const { method, params, sessionId } = JSON.parse(message.toString());
      if (method !== 'Fetch.requestPaused') return;
      const { requestId } = params;
      void client.ask('Fetch.fulfillRequest', { requestId, responseCode: 200, body }, sessionId);
    };
    client.socket.on('message', answer);
    const add = `(() => {
      const frame = document.createElement('iframe');
      frame.src = ${JSON.stringify(address)};
      return new Promise((done) => { frame.onload = () => done(1); document.body.append(frame); });
    })()`;
    await client.evaluate(add, page.sessionId);
    client.socket.off('message', answer);
    return { ...page, path };
  }

  const outcome = (path: string, kind: string, status: string, more = {}) => ({
    captcha_type: kind,
    status,
    duration_ms: expect.any(Number),
    website_host: '127.0.0.1',
    website_path: path,
    ...more,
  });

  test.each([
    ['hcaptcha', hcaptcha, 'textarea[name="h-captcha-response"]'],
    ['recaptcha_v2', recaptcha, 'textarea[name="g-recaptcha-response"]'],
    ['turnstile', turnstile, 'input[name="cf-turnstile-response"]'],
  ])('a %s widget that got an answer was solved; the answer is not captured', async (kind, address, field) => {
    const { targetId, sessionId, path } = await pageWithWidget(address);
    await client.evaluate(`document.querySelector('${field}').value = 'planted-token', 1`, sessionId);
    expect(await seen('captcha_solve_result', { website_path: path })).toEqual(outcome(path, kind, 'success'));
    expect(JSON.stringify(events)).not.toContain('planted');
    await client.result('Target.closeTarget', { targetId });
  });

  const ofTurnstile = (event: string, code?: number) => ({ source: 'cloudflare-challenge', event, code });
  const ofHcaptcha = (event: string) =>
    JSON.stringify({ source: 'hcaptcha', label: 'challenge-closed', id: '0', contents: { event } });
  test.each([
    ['failure', turnstile, ofTurnstile('fail', 300030), { error_code: '300030' }],
    ['timeout', turnstile, ofTurnstile('interactiveTimeout'), {}],
    ['failure', hcaptcha, ofHcaptcha('challenge-error'), { error_code: 'challenge-error' }],
    ['timeout', hcaptcha, ofHcaptcha('challenge-expired'), {}],
    ['abandoned', hcaptcha, ofHcaptcha('challenge-escaped'), {}],
  ])(
    'a %s is captured when the widget reports it (%s, %j), and not when its page does',
    async (status, address, said, more) => {
      const { targetId, sessionId, path } = await pageWithWidget(address);
      const forged = address === turnstile ? ofTurnstile('fail', 1) : ofHcaptcha('forged-error');
      const messages = [
        `postMessage(${JSON.stringify(forged)}, '*')`,
        `frames[0].postMessage(${JSON.stringify(said)}, '*')`,
      ];
      const results = async () => {
        await client.evaluate(`${messages.join(', ')}, 1`, sessionId); // again, until the collector listens
        return of('captcha_solve_result', { website_path: path });
      };
      await expect.poll(results).not.toEqual([]);
      const expected = outcome(path, address === turnstile ? 'turnstile' : 'hcaptcha', status, more);
      for (const one of of('captcha_solve_result', { website_path: path })) expect(one).toEqual(expected);
      await client.result('Target.closeTarget', { targetId });
    },
  );
});

describe('the other clients', () => {
  test('Playwright and Puppeteer work as without the collector', async () => {
    const viaPlaywright = await playwright.connectOverCDP(server.endpoint);
    const context = await viaPlaywright.newContext();
    await context.addInitScript('window.early = "early"');
    const page = await context.newPage();
    page.on('dialog', (dialog) => void dialog.accept('yes'));
    await page.goto(`${site.url}/`);
    expect(await page.evaluate('prompt("?")')).toBe('yes');
    const [popup] = await Promise.all([page.waitForEvent('popup'), page.evaluate(`void window.open('/popup')`)]);
    await popup.waitForLoadState();
    expect(await popup.evaluate('window.early')).toBe('early');
    await context.close();
    await viaPlaywright.close();

    const viaPuppeteer = await connectPuppeteer({ browserWSEndpoint: server.endpoint });
    const incognito = await viaPuppeteer.createBrowserContext();
    const other = await incognito.newPage();
    await other.goto(`${site.url}/embeds?url=${encodeURIComponent(`${site.otherUrl}/frame`)}`);
    expect(other.frames().map((frame) => frame.url())).toContain(`${site.otherUrl}/frame`);
    await incognito.close();
    await viaPuppeteer.disconnect();
  });

  test('a client that holds new targets back still does, and sees no worlds of the collector', async () => {
    const { targetId, sessionId } = await client.page(`${site.url}/`);
    await seen('page_load', { url: `${site.url}/` });
    const holder = await RawClient.open(server.endpoint);
    onTestFinished(() => holder.close());
    await holder.result('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true });
    void client.evaluate(`window.open('/popup'), 1`, sessionId); // answered when the popup continues
    const isPopup = (params: Data | undefined) =>
      (params?.['targetInfo'] as Data | undefined)?.['openerId'] === targetId;
    const attached = () => holder.events('Target.attachedToTarget').find(({ params }) => isPopup(params))?.params;
    await expect.poll(attached).toBeDefined();
    expect(attached()).toMatchObject({ waitingForDebugger: true });
    const popup = String(attached()!['sessionId']);
    for (let i = 0; i < 20; i++) await holder.result('Browser.getVersion'); // time for a popup that is not held back
    await holder.result('Page.addScriptToEvaluateOnNewDocument', { source: 'window.early = "early"' }, popup);
    await holder.result('Runtime.enable', {}, popup);
    await holder.result('Runtime.runIfWaitingForDebugger', {}, popup);
    expect(await seen('console_log', { text: 'popup says' })).toMatchObject({ args: ['popup says', 'early'] });
    expect(
      holder.events('Runtime.executionContextCreated').map(({ params }) => (params!['context'] as Data)['name']),
    ).not.toContain(server.mux.hiddenWorld);
    await client.result('Target.closeTarget', { targetId });
  });

  test('dialogs close as without the collector', async () => {
    const { targetId, sessionId } = await client.page(`${site.url}/`);
    await seen('page_load', { url: `${site.url}/` });
    expect(await client.evaluate('[confirm("?"), prompt("?"), alert("!")].join()', sessionId)).toBe('false,,');
    await client.result('Target.closeTarget', { targetId });
  });
});

describe('the collector', () => {
  test('continues in the next browser, and reports it', async () => {
    collector.browserGone();
    await collector.browserBack(server.mux);
    expect(await seen('monitor_disconnected')).toEqual({ reason: 'chrome_restarted' });
    expect(await seen('monitor_reconnected')).toEqual({ reconnect_duration_ms: expect.any(Number) });
    const { targetId } = await client.page(`${site.url}/popup`);
    await seen('console_log', { text: 'popup says' });
    await client.result('Target.closeTarget', { targetId });
  });

  test('reports only the chosen categories, from the change on', async () => {
    const { targetId, sessionId } = await client.page(`${site.url}/`);
    await seen('page_load', { url: `${site.url}/` });
    await collector.change(new Set(['network'] as const));
    await client.evaluate(`console.log('not told'), fetch('/text').then(() => 1)`, sessionId);
    await seen('network_response', { url: `${site.url}/text` });
    await collector.change(everything);
    await client.evaluate(`console.log('told again')`, sessionId);
    await seen('console_log', { text: 'told again' });
    expect(of('console_log', { text: 'not told' })).toEqual([]);
    await client.result('Target.closeTarget', { targetId });
  });
});
