import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium as playwright, type Browser as Viewers } from 'playwright-core';
import { isAttached, isEvaluated, isTargetList } from '../../src/chromium/cdp/shapes.ts';
import { attachDisplay } from '../../src/chromium/display/display-view.ts';
import { launch, type Browser } from '../../src/chromium/browser/launch.ts';
import type { LocalClient } from '../../src/chromium/cdp/local-client.ts';
import { multiplex, type Mux } from '../../src/chromium/cdp/mux.ts';
import { openPipe } from '../../src/chromium/cdp/pipe.ts';
import { destinations } from '../../src/chromium/egress/destinations.ts';
import { startGateway } from '../../src/chromium/egress/gateway.ts';
import { castsOf, type Casts } from '../../src/chromium/pages/cast.ts';
import { besideDisplay } from '../../src/chromium/pages/beside-display.ts';
import { attachScreencast } from '../../src/chromium/pages/screencast.ts';
import { silent } from '../../src/lib/log.ts';
import { serveWebSocket, type WebSocketReceiver, type WebSocketSink } from '../../src/lib/ws-sink.ts';
import { liveViewAsset, liveViewCsp, liveViewPage } from '../../src/sessions/live-view/assets.ts';
import { liveViewHeartbeat } from '../../src/sessions/live-view/beat.ts';
import { rawChromium } from './raw-chromium.ts';

/** A session's browser with its live view on loopback, under a base path as behind a proxy. */
export interface Watched {
  browser: Browser;
  mux: Mux;
  casts: Casts;
  /** CDP to the browser, for the test. */
  cdp: LocalClient;
  /** The tabs. The service asks for the shown tab before this command, so it is attached once Chromium has answered. */
  pages(): Promise<{ targetId: string; url: string }[]>;
  /** The view's address. */
  url: string;
  socketUrl: string;
  /** The near ends of all the viewers' sockets there are. */
  sinks: Set<WebSocketSink>;
  /** The viewers' connections. A corked connection simulates a lost network: nothing is sent, and nothing is closed. */
  connections: Set<Socket>;
  /** What the browser asked the network for: addresses, and `host:port` for https. */
  asked: string[];
  /** What the page answers from now on. */
  answers: { status: number };
  stop(): Promise<void>;
}

export interface WatchedOptions {
  headless: boolean;
  full?: boolean;
}

const SEARCH_URL = 'http://search.test/?q=%s';

export async function watched({ headless, full = false }: WatchedOptions): Promise<Watched> {
  const dir = await mkdtemp(join(tmpdir(), 'corral-live-'));
  const shape = { headless, needsFullBrowser: full, stealth: false, kiosk_mode: false, gpu: false };
  const viewport = { width: 1000, height: 700 };
  const browser = await launch(
    { dir: join(dir, 'session'), viewport, searchUrl: SEARCH_URL, ...shape },
    AbortSignal.timeout(60_000),
  );
  // These tests need no network: no name has an address.
  const asked: string[] = [];
  const gateway = startGateway(browser.egress, {
    allow: destinations({ resolve: async () => [] }),
    onRefuse: (_, target) => asked.push(target),
  });
  const { failure, server } = gateway.findings;
  const proxy = { address: '127.0.0.1', port: (browser.egress.address() as AddressInfo).port };
  const network = { proxy, failure, server };
  const mux = multiplex(openPipe(browser.toBrowser, browser.fromBrowser), { network });
  const sinks = new Set<WebSocketSink>();
  const answers = { status: 200 };

  const http = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://harness');
    const asset = /^\/base\/browser\/live\/assets\/(.*)$/.exec(pathname)?.[1];
    if (asset !== undefined) {
      void liveViewAsset(asset, request.headers['accept-encoding']?.toString()).then((found) =>
        found ? response.writeHead(200, found.headers).end(found.body) : response.writeHead(404).end('no such asset'),
      );
      return;
    }
    if (pathname !== '/base/browser/live') return void response.writeHead(404).end();
    const kind = headless ? 'screencast' : 'display';
    const readOnly = searchParams.get('readOnly') === 'true';
    response.writeHead(answers.status, { 'content-type': 'text/html', 'content-security-policy': liveViewCsp });
    void liveViewPage({ kind, socketPath: 'live/socket', title: 'A <session>', readOnly }).then((page) =>
      response.end(page),
    );
  });
  const casts = castsOf(mux, { refreshRate: browser.refreshRate, log: silent });
  const connections = new Set<Socket>();
  http.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  http.on('upgrade', (request, socket, head) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://harness');
    const expected = pathname === '/base/browser/live/socket' && searchParams.get('jwt') === 'secret';
    if (!expected || answers.status !== 200) return void socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    const readOnly = searchParams.get('readOnly') === 'true';
    const attach = (sink: WebSocketSink): WebSocketReceiver => {
      sinks.add(sink);
      const receiver = headless
        ? attachScreencast(mux, sink, { readOnly, casts, log: silent, searchUrl: SEARCH_URL })
        : besideDisplay(mux, sink, attachDisplay(browser.connectDisplay!, sink, { readOnly }), { log: silent });
      return {
        receive: (data, binary) => receiver.receive(data, binary),
        flush: () => receiver.flush(),
        closed() {
          sinks.delete(sink);
          receiver.closed();
        },
      };
    };
    serveWebSocket({ request, socket, head }, attach, { heartbeat: liveViewHeartbeat });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  const cdp = mux.attachLocal();
  return {
    browser,
    mux,
    casts,
    cdp,
    async pages() {
      const { targetInfos } = await cdp.ask(isTargetList, 'Target.getTargets');
      return targetInfos.filter(({ type }) => type === 'page');
    },
    url: `http://127.0.0.1:${port}/base/browser/live?jwt=secret`,
    socketUrl: `ws://127.0.0.1:${port}/base/browser/live/socket?jwt=secret`,
    sinks,
    connections,
    asked,
    answers,
    async stop() {
      mux.close(1001, 'The test is over.');
      await browser.stop();
      await gateway.close();
      http.closeAllConnections();
      http.close();
      await rm(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

/** The browser of the viewers. */
export async function viewers(): Promise<{ browser: Viewers; stop(): Promise<void> }> {
  const chromium = await rawChromium('port', '--window-size=1280,900');
  const browser = await playwright.connectOverCDP(chromium.endpoint);
  return {
    browser,
    async stop() {
      await browser.close();
      await chromium.stop();
    },
  };
}

/** A page of the session, for looking at what the viewers did to it. */
export interface PageUnderTest {
  targetId: string;
  sessionId: string;
  evaluate(expression: string): Promise<unknown>;
  setContent(html: string): Promise<void>;
}

export async function firstPage({ cdp, pages }: Watched): Promise<PageUnderTest> {
  const [first] = await pages();
  return pageAt(cdp, first!.targetId);
}

export async function pageAt(cdp: LocalClient, targetId: string): Promise<PageUnderTest> {
  const { sessionId } = await cdp.ask(isAttached, 'Target.attachToTarget', { targetId, flatten: true });
  return {
    targetId,
    sessionId,
    async evaluate(expression) {
      const options = { expression, returnByValue: true, awaitPromise: true };
      const answer = await cdp.ask(isEvaluated, 'Runtime.evaluate', options, sessionId, { patient: true }); // a dialog waits for a person
      return answer.result['value'];
    },
    async setContent(html) {
      await cdp.send('Page.setDocumentContent', { frameId: targetId, html }, sessionId);
    },
  };
}
