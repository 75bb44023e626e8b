import http from 'node:http';
import type { Duplex } from 'node:stream';
import { memory, type Group, type Share } from '../../lib/byte-budget.ts';
import { CountedResponse } from '../../lib/counted-response.ts';
import { serveWebSocket } from '../../lib/ws-sink.ts';
import { MAX_TO_CHROMIUM } from '../cdp/connection.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';
import { isTargetList } from '../cdp/shapes.ts';
import type { Browser } from '../browser/launch.ts';
import type { Stream } from './channel.ts';
import { duplexOf } from './duplex.ts';

/** The path of the browser's websocket. There is one browser behind the port. */
const SOCKET = '/devtools/browser/corral';

/** `/json/version` of a browser, as Chromium answers it. */
export const asJsonVersion = (
  { product, userAgent, jsVersion, protocolVersion, revision }: Browser['version'],
  webSocketDebuggerUrl: string,
) => ({
  Browser: product,
  'Protocol-Version': protocolVersion,
  'User-Agent': userAgent,
  'V8-Version': jsVersion,
  'WebKit-Version': `537.36 (${revision})`,
  webSocketDebuggerUrl,
});

/** Of the list of pages, which several programs in the session can ask for at once. */
const MOST_PAGES = 500;
const LONGEST = 2048;
const LONGEST_HOST = 300;

/**
 * What Chromium's debugging port would answer to a WebDriver inside the session: which browser it is, its pages, and the browser's
 * websocket, which is a client of the multiplexer like any other. Connections are passed to the server; it never listens.
 */
export function devtoolsPort({
  browser,
  mux,
  control,
  group,
}: {
  browser: Pick<Browser, 'version'>;
  mux: Pick<Mux, 'attach'>;
  control: () => Pick<LocalClient, 'ask'>;
  group: Group;
}): (stream: Stream) => void {
  let server: http.Server | undefined; // few sessions need one
  /** The answers that each connection has not read: a list of pages has megabytes. */
  const unread = new WeakMap<Duplex, Share>();

  function count(socket: Duplex, bytes: number): void {
    const share = unread.get(socket);
    if (!socket.destroyed) share?.set(share.bytes + bytes);
  }

  async function pages(at: string) {
    const { targetInfos } = await control().ask(isTargetList, 'Target.getTargets');
    return targetInfos
      .filter(({ type }) => type === 'page')
      .slice(0, MOST_PAGES)
      .map(({ targetId: id, type, title, url }) => ({
        id,
        type,
        title: title.slice(0, LONGEST),
        url: url.slice(0, LONGEST),
        webSocketDebuggerUrl: `ws://${at}/devtools/page/${id}`,
      }));
  }

  async function answer({ url, headers }: http.IncomingMessage): Promise<unknown> {
    const at = (headers.host ?? '').slice(0, LONGEST_HOST); // each page repeats it
    if (url === '/json/list' || url === '/json') return pages(at);
    if (url !== '/json/version') return undefined;
    return asJsonVersion(browser.version, `ws://${at}${SOCKET}`);
  }

  function open(): http.Server {
    const opened = http.createServer({ ServerResponse: CountedResponse, maxHeaderSize: 16 * 1024 });
    opened.on('request', (request, response) => {
      answer(request).then(
        (value) => {
          const body = Buffer.from(JSON.stringify(value ?? { message: 'There is nothing at this path.' }));
          const type = { 'content-type': 'application/json; charset=UTF-8', 'content-length': body.length };
          count(request.socket, body.length);
          response.once('close', () => count(request.socket, -body.length));
          response.writeHead(value === undefined ? 404 : 200, type).end(body);
        },
        () => response.destroy(), // the browser has exited, or hangs
      );
    });
    opened.on('upgrade', (request, socket, head) => {
      if (request.url !== SOCKET) return void socket.destroy();
      serveWebSocket({ request, socket, head }, (sink) => mux.attach(sink), { maxPayload: MAX_TO_CHROMIUM, group });
    });
    opened.on('clientError', (_error, socket) => socket.destroy());
    return opened;
  }

  return (stream) => {
    const socket = duplexOf(stream);
    const share = memory.share(group, 'reader', () => socket.destroy());
    unread.set(socket, share);
    socket.once('close', () => share.close());
    (server ??= open()).emit('connection', socket);
  };
}
