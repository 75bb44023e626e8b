import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { listenOnLoopback } from '../support/listen.ts';
import { measuredService, mostStopMs } from '../support/longest-stop.ts';
import { RawClient } from '../support/mux-server.ts';
import { requireSandbox } from '../support/sandbox.ts';

await requireSandbox();

const MIB = 2 ** 20;
const MB = 1_000_000;

describe(
  'a page or a client of WebDriver BiDi with large messages does not stop the service',
  { timeout: 300_000 },
  () => {
    let service: Awaited<ReturnType<typeof measuredService>>;
    let site: Awaited<ReturnType<typeof listenOnLoopback>>;
    let session: { webdriver_ws_url: string; cdp_ws_url: string; browser_live_view_url: string; base_url: string };
    let bidi: RawClient;
    let context: string;
    beforeAll(async () => {
      site = await listenOnLoopback(createServer((_, response) => response.end('a page')));
      service = await measuredService({ CORRAL_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${site.port}` });
      ({ body: session } = await service.call('POST', '/browsers', { headless: true, timeout_seconds: 900 }));
      bidi = await RawClient.open(session.webdriver_ws_url);
      await bidi.result('session.new', { capabilities: {} });
      const { contexts } = await bidi.result<{ contexts: { context: string }[] }>('browsingContext.getTree', {});
      context = contexts[0]!.context;
    });
    afterAll(async () => {
      bidi?.socket.close();
      await service?.close();
      await site?.close();
    });

    const inPage = (expression: string) =>
      bidi.ask('script.evaluate', { expression, target: { context }, awaitPromise: true });

    test.each([
      ['a text', `'x'.repeat(${20 * MB})`],
      ['lines', String.raw`('x'.repeat(60) + '\n').repeat(${0.3 * MB})`],
      ['a format of many parts', `'%s'.repeat(${0.5 * MB})`],
      ['an object with a text', `{ a: 'x'.repeat(${20 * MB}) }`],
      ['a list', `Array.from({ length: 150000 }, () => ({}))`],
    ])('a console message: %s', async (_, value) => {
      expect(await service.longestStop(() => inPage(`console.log(${value}, 1); 1`))).toBeLessThan(mostStopMs);
    });

    test('the client receives them, cut, and ordinary ones', async () => {
      await inPage(`console.log('x'.repeat(${2 * MB})); console.log('ordinary', 1)`);
      const { subscription } = await bidi.result<{ subscription: string }>('session.subscribe', {
        events: ['log.entryAdded'],
      });
      await bidi.result('session.unsubscribe', { subscriptions: [subscription] });
      const texts = bidi.events('log.entryAdded').map(({ params }) => String(params!['text']));
      expect(texts.at(-2)).toMatch(/^\[A message of 2\d{6} bytes, cut\] x{10000,}… \(\d+ bytes more\)$/);
      expect(texts.at(-1)).toBe('ordinary 1');
    });

    test.each([
      ['a text', 'x', 30 * MB],
      ['a text of the most bytes', 'x', 4 * MIB],
      ['escapes', String.raw`\n`, 4 * MIB],
      ['escaped letters', String.raw`\u0041`, 4 * MIB],
      ['quotes', String.raw`\"`, 4 * MIB],
      ['letters of two bytes', 'é', 4 * MIB],
    ])('a command: %s', async (_, unit, bytes) => {
      const text = unit.repeat(Math.floor((bytes - 200) / Buffer.byteLength(unit)));
      const message = Buffer.from(
        `{"id":1000000,"method":"script.evaluate","params":{"expression":"0;'${text}'","target":{"context":"${context}"},"awaitPromise":false}}`,
      );
      const stop = await service.longestStop(async () =>
        expect(await bidi.next(message)).toMatchObject({ id: 1_000_000, type: expect.any(String) }),
      );
      expect(stop).toBeLessThan(mostStopMs);
    });

    const call = (...values: unknown[]) => ({
      functionDeclaration: '() => 1',
      awaitPromise: false,
      target: { context },
      arguments: values,
    });
    const many = (count: number, item: unknown) => Array.from({ length: count }, () => item);
    const nested = (type: string, levels: number, leaf: unknown) =>
      many(levels, type).reduce<unknown>((value) => ({ type, value: [value] }), leaf);
    const actions = (type: string, items: unknown[]) => ({ context, actions: [{ type, id: 'a', actions: items }] });
    const wrong = { type: 'x' };
    /** One button of each of so many mice, pressed again and again. */
    const buttons = (mice: number, times: number) =>
      Array.from({ length: mice }, (_, at) => ({
        type: 'pointer',
        id: `mouse ${at}`,
        actions: many(times, { type: 'pointerDown', button: 0 }),
      }));
    /** Distinct characters: Punycode takes longest for them. */
    const chinese = (count: number) =>
      String.fromCodePoint(...Array.from({ length: count }, (_, at) => 0x4e00 + ((at * 7) % 20_000)));
    const hosts = (count: number) => many(count, { type: 'pattern', protocol: 'http', hostname: chinese(253) });

    test.each<[name: string, method: string, params: () => object, type: string]>([
      ['a wrong value in lists', 'script.callFunction', () => call(nested('array', 12, wrong)), 'error'],
      ['a value in many sets', 'script.callFunction', () => call(nested('set', 12, { type: 'null' })), 'success'],
      ['a value in the most sets', 'script.callFunction', () => call(nested('set', 140, { type: 'null' })), 'success'],
      ['a value in too many sets', 'script.callFunction', () => call(nested('set', 400, wrong)), 'error'],
      ['wrong values', 'script.callFunction', () => call(...many(30_000, wrong)), 'error'],
      ['values', 'script.callFunction', () => call(...many(9000, { type: 'null' })), 'success'],
      ['lists', 'script.callFunction', () => call(...many(1000, { type: 'array', value: [] })), 'success'],
      [
        'a list of lists',
        'script.callFunction',
        () => call({ type: 'array', value: many(15_000, { type: 'array', value: [] }) }),
        'error',
      ],
      ['wrong actions', 'input.performActions', () => actions('key', many(30_000, wrong)), 'error'],
      [
        'sources of wrong actions',
        'input.performActions',
        () => ({ context, actions: many(6000, { type: 'key', id: 'a', actions: [wrong] }) }),
        'error',
      ],
      ['actions', 'input.performActions', () => actions('pointer', many(3000, { type: 'pause' })), 'success'],
      [
        'wrong patterns',
        'network.addIntercept',
        () => ({ phases: ['beforeRequestSent'], urlPatterns: many(30_000, wrong) }),
        'error',
      ],
      [
        'wrong headers',
        'network.continueRequest',
        () => ({ request: 'x', headers: many(12_000, { name: 'a', value: wrong }) }),
        'error',
      ],
      [
        'headers',
        'network.setExtraHeaders',
        () => ({ headers: many(1000, { name: 'a', value: { type: 'string', value: '' } }), contexts: [context] }),
        'success',
      ],
      [
        'too many headers',
        'network.setExtraHeaders',
        () => ({ headers: many(10_000, { name: 'a', value: { type: 'string', value: '' } }), contexts: [context] }),
        'error',
      ],
      [
        'the same tab again and again',
        'emulation.setGeolocationOverride',
        () => ({ coordinates: null, contexts: many(99_000, context) }),
        'success',
      ],
      [
        'a long pattern',
        'network.addIntercept',
        () => ({
          phases: ['authRequired'],
          urlPatterns: [{ type: 'string', pattern: `http://a/${'x'.repeat(3.9 * MB)}` }],
        }),
        'error',
      ],
      ['a name of dots', 'session.subscribe', () => ({ events: [`goog:cdp.${'.'.repeat(3.9 * MB)}`] }), 'error'],
      ['wrong handles', 'script.disown', () => ({ handles: many(90_000, 1), target: {} }), 'error'],
      [
        'wrong nodes',
        'browsingContext.locateNodes',
        () => ({ context, locator: { type: 'css', value: 'a' }, startNodes: many(30_000, wrong) }),
        'error',
      ],
      [
        'a long key',
        'input.performActions',
        () => actions('key', [{ type: 'keyDown', value: 'a'.repeat(65_536) }]),
        'error',
      ],
      ['buttons', 'input.performActions', () => ({ context, actions: buttons(95, 150) }), 'success'],
      ['the release of buttons', 'input.releaseActions', () => ({ context }), 'success'],
      ['ids of no node', 'script.callFunction', () => call(...many(900, { sharedId: 'f.'.repeat(490) })), 'error'],
      ['a long host', 'browsingContext.navigate', () => ({ context, url: `http://${chinese(20_000)}/` }), 'error'],
      ['hosts', 'network.addIntercept', () => ({ phases: ['authRequired'], urlPatterns: hosts(100) }), 'success'],
      ['wrong events', 'session.subscribe', () => ({ events: many(90_000, 1) }), 'error'],
    ])('params of a command: %s (%s)', async (_, method, params, type) => {
      const sent = params();
      const stop = await service.longestStop(async () => expect(await bidi.ask(method, sent)).toMatchObject({ type }));
      expect(stop).toBeLessThan(mostStopMs);
    });

    test('commands before the session is open, and behind a large one', async () => {
      const stop = await service.longestStop(async () => {
        const early = await RawClient.open(session.webdriver_ws_url);
        const opened = early.ask('session.new', { capabilities: {} });
        const answers = await Promise.all(many(5000, 0).map(() => early.ask('browsingContext.getTree', {})));
        expect(await opened).toMatchObject({ type: 'success' });
        expect(new Set(answers.map((answer) => (answer as { type?: string }).type))).toEqual(new Set(['success']));
        const large = early.ask('session.status', { more: 'x'.repeat(1.1 * MB) });
        await Promise.all([large, ...many(5000, 0).map(() => early.ask('session.status', {}))]);
        early.socket.close();
        await early.closed;
      });
      expect(stop).toBeLessThan(mostStopMs);
    });

    test('an answer of many bytes fails its command, and a large picture arrives', async () => {
      for (const value of [`'x'.repeat(${20 * MB})`, String.raw`'\n'.repeat(${3.9 * MB})`])
        expect(await service.longestStop(() => inPage(value))).toBeLessThan(mostStopMs);
      expect(await inPage(`'x'.repeat(${20 * MB})`)).toMatchObject({
        type: 'error',
        message: expect.stringContaining('cannot be translated'),
      });
      await inPage(`(() => {
      const canvas = document.body.appendChild(document.createElement('canvas'));
      [canvas.width, canvas.height] = [1600, 3000];
      const picture = new ImageData(canvas.width, canvas.height);
      for (let at = 0; at < picture.data.length; at += 65536) crypto.getRandomValues(picture.data.subarray(at, at + 65536));
      for (let at = 3; at < picture.data.length; at += 4) picture.data[at] = 255;
      canvas.getContext('2d').putImageData(picture, 0, 0);
    })()`);
      let data = '';
      const stop = await service.longestStop(async () => {
        ({ data } = await bidi.result<{ data: string }>('browsingContext.captureScreenshot', {
          context,
          origin: 'document',
        }));
      });
      expect(stop).toBeLessThan(mostStopMs);
      const picture = Buffer.from(data, 'base64');
      expect(picture.length).toBeGreaterThan(10 * MB);
      expect(picture.subarray(1, 4).toString()).toBe('PNG');
      expect(picture.subarray(-8, -4).toString()).toBe('IEND');
    });

    test('subscriptions', async () => {
      const events = Array.from({ length: 45_000 }, (_, at) => `goog:cdp.a${at}`);
      expect(await service.longestStop(() => bidi.ask('session.subscribe', { events }))).toBeLessThan(mostStopMs);
      const few = ['network.responseStarted', 'script.message', 'browsingContext.load', 'network.fetchError'];
      const subscribed: string[] = [];
      const stop = await service.longestStop(async () => {
        for (let at = 0; at < 1000; at += 50)
          for (const { result } of await Promise.all(
            Array.from({ length: 50 }, () => bidi.ask('session.subscribe', { events: few })),
          ))
            if (result) subscribed.push(result.subscription);
      });
      expect(stop).toBeLessThan(mostStopMs);
      expect(subscribed).toHaveLength(100);
      expect(await service.longestStop(() => inPage(`for (let i = 0; i < 200; i++) console.log(i)`))).toBeLessThan(
        mostStopMs,
      );
      await bidi.result('session.unsubscribe', { subscriptions: subscribed });
    });

    test('patterns of an intercept, and a request with a long address', async () => {
      await bidi.result('browsingContext.navigate', {
        context,
        url: `http://127.0.0.1:${site.port}/`,
        wait: 'complete',
      });
      const { subscription } = await bidi.result<{ subscription: string }>('session.subscribe', {
        events: ['network.beforeRequestSent'],
      });
      const client = await RawClient.open(session.webdriver_ws_url); // the other has used its patterns
      await client.result('session.new', { capabilities: {} });
      await client.result('session.subscribe', { events: ['network.beforeRequestSent'] });
      const urlPatterns = Array.from({ length: 100 }, (_, at) => ({ type: 'pattern', hostname: `a${at}.example` }));
      await client.result('network.addIntercept', { phases: ['beforeRequestSent'], urlPatterns });
      const stop = await service.longestStop(() =>
        inPage(`fetch('/${'x'.repeat(1000)}'.repeat(1900)).catch(() => {})`),
      );
      expect(stop).toBeLessThan(mostStopMs);
      client.socket.close();
      await bidi.result('session.unsubscribe', { subscriptions: [subscription] });
    });

    test('a history of long addresses, with a viewer and lists of tabs', async () => {
      const socket = session.browser_live_view_url.replace(/^http/, 'ws').replace('/live', '/live/socket');
      const viewer = new WebSocket(socket);
      const received: { type: string; canGoBack?: boolean }[] = [];
      viewer.on('message', (data: Buffer, binary) => !binary && received.push(JSON.parse(data.toString())));
      await once(viewer, 'open');
      await bidi.result('browsingContext.navigate', {
        context,
        url: `http://127.0.0.1:${site.port}/`,
        wait: 'complete',
      });
      const changed = await inPage(
        `for (let i = 0; i < 12; i++) history.pushState(0, '', '/' + i + 'x'.repeat(${1.9 * MB})); 1`,
      );
      expect(changed).toMatchObject({ type: 'success' });
      const stop = await service.longestStop(async () => {
        const list = await fetch(`${session.base_url}/json/list`);
        expect(list.status).toBe(200);
        expect((await list.text()).length).toBeLessThan(MB);
        received.length = 0;
        await inPage(`history.pushState(0, '', '/end' + Math.random()); 1`);
        while (!received.some(({ type, canGoBack }) => type === 'page' && canGoBack)) await once(viewer, 'message');
      });
      expect(stop).toBeLessThan(mostStopMs);
      viewer.close();
    });
  },
);
