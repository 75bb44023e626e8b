import { byteLength, METHOD_AT } from './message.ts';
import type { Message } from './pipe.ts';

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/**
 * What the network is like behind the proxy that Chromium uses. Destinations are `host:port`, as Chromium writes them in CONNECT.
 */
export interface Network {
  /** Where Chromium's proxy listens, as Chromium sees it. */
  readonly proxy: Endpoint;
  /** Why the last attempt to reach a destination failed: `net::ERR_CONNECTION_REFUSED`. */
  failure(destination: string): string | undefined;
  /** The remote address of connections to it. */
  server(destination: string): Endpoint | undefined;
}

const LETTER_N = 0x4e;
const LETTER_L = 0x4c;
const SENT = '{"method":"Network.requestWillBeSent",';
const SENT_EXTRA = '{"method":"Network.requestWillBeSentExtraInfo",';
const RECEIVED = '{"method":"Network.responseReceived",';
const FAILED = '{"method":"Network.loadingFailed",';
const SOCKET = '{"method":"Network.webSocketCreated",';
const SOCKET_FAILED = '{"method":"Network.webSocketFrameError",';
const LOGGED = '{"method":"Log.entryAdded",';
const LONGEST_NAME = SENT_EXTRA.length;

/** Larger messages are passed on unread. */
const MOST_READ = 1024 * 1024;
/** The most recent requests, with their destinations. */
const MOST_REQUESTS = 4096;

/** The header that Chromium sends to a proxy, and the header that it sends to a server, at the same length. */
const TO_PROXY = Buffer.from('"Proxy-Connection":"');
const TO_SERVER = Buffer.from('"Connection":      "');

/** The errors that Chromium has for every failure behind a proxy: of a tunnel, and of plain http. */
const OF_TUNNEL = 'net::ERR_TUNNEL_CONNECTION_FAILED';
const OF_PLAIN = ['net::ERR_EMPTY_RESPONSE', 'net::ERR_CONNECTION_RESET', 'net::ERR_CONNECTION_CLOSED'];

/**
 * Corrects what Chromium reports about the network. It knows only its proxy, so every failure has the same name, every server the proxy's
 * address, and requests by plain http a header for the proxy. Clients get the values that they would get without it.
 *
 * Messages are searched for bytes and not parsed, since there are several for each request. Each search text starts with a quote that
 * is not escaped, so no page can write it: a quote inside of a JSON string has a backslash before it.
 */
export class NetworkFacts {
  readonly #network: Network;
  readonly #requests = new Map<string, string>();
  readonly #endpoint: string;

  constructor(network: Network) {
    this.#network = network;
    this.#endpoint = `"remoteIPAddress":"${network.proxy.address}","remotePort":${network.proxy.port},`;
  }

  /** Corrects an event in place. */
  correct(message: Message): void {
    const letter = message[0][METHOD_AT];
    if (letter !== LETTER_N && letter !== LETTER_L) return;
    const name = message[0].toString('latin1', 0, LONGEST_NAME);
    if (name.startsWith(SENT)) {
      const whole = one(message);
      if (!whole) return;
      this.#remember(whole, '"request":{"url":"');
      this.#correctServer(message, '"redirectResponse":{"url":"');
    } else if (name.startsWith(SENT_EXTRA)) {
      const at = one(message)?.indexOf(TO_PROXY) ?? -1;
      if (at !== -1) TO_SERVER.copy(message[0], at);
    } else if (name.startsWith(RECEIVED)) this.#correctServer(message, '"response":{"url":"');
    else if (name.startsWith(FAILED)) this.#correctFailure(message, '"requestId":"');
    else if (name.startsWith(SOCKET)) {
      const whole = one(message);
      if (whole) this.#remember(whole, '"url":"');
    } else if (name.startsWith(SOCKET_FAILED)) this.#correctFailure(message, '"requestId":"');
    else if (name.startsWith(LOGGED)) this.#correctFailure(message, '"networkRequestId":"');
  }

  /** Corrects the answer to Page.navigate. The id of a navigation's request is that of its loader. `url` is the requested address. */
  correctNavigation(message: Message, url: string | undefined): void {
    this.#correctFailure(message, '"loaderId":"', url === undefined ? undefined : destinationOf(url));
  }

  /** The name of the failure to load this address. `errorText` is the name that Chromium reported, if any. */
  failureOf(shown: string | undefined, url: string): string | undefined {
    if (shown !== undefined && shown !== OF_TUNNEL && !OF_PLAIN.includes(shown)) return shown;
    const destination = destinationOf(url);
    return (destination === undefined ? undefined : this.#network.failure(destination)) ?? shown;
  }

  #remember(whole: Buffer, before: string): void {
    const id = textAfter(whole, '"requestId":"', 128);
    const destination = destinationOf(textAfter(whole, before, 512, true) ?? '');
    if (id === undefined || destination === undefined) return;
    const requests = this.#requests;
    if (requests.get(id) === destination) return;
    requests.set(id, destination);
    if (requests.size <= MOST_REQUESTS) return;
    for (const oldest of requests.keys()) return void requests.delete(oldest);
  }

  #correctServer(message: Message, before: string): void {
    const whole = one(message);
    if (!whole) return;
    const start = whole.indexOf(before);
    if (start === -1) return;
    const at = whole.indexOf(this.#endpoint, start);
    if (at === -1) return;
    const destination = destinationOf(textAfter(whole, before, 512, true) ?? '');
    const server = destination === undefined ? undefined : this.#network.server(destination);
    if (!server) return;
    const address = server.address.includes(':') ? `[${server.address}]` : server.address; // as Chromium writes it
    replace(message, at, this.#endpoint, `"remoteIPAddress":"${address}","remotePort":${server.port},`);
  }

  #correctFailure(message: Message, before: string, otherwise?: string): void {
    const whole = one(message);
    const named = whole?.indexOf('net::ERR_') ?? -1;
    if (!whole || named === -1) return;
    const shown = /^net::[A-Z0-9_]{1,64}/.exec(whole.toString('latin1', named, named + 80))?.[0] ?? '';
    if (shown !== OF_TUNNEL && !OF_PLAIN.includes(shown)) return;
    const destination = this.#requests.get(textAfter(whole, before, 128) ?? '') ?? otherwise;
    const failure = destination === undefined ? undefined : this.#network.failure(destination);
    if (failure !== undefined && failure !== shown) replace(message, named, shown, failure);
  }
}

/** The message in one piece; undefined if it is too large to look at. */
function one(message: Message): Buffer | undefined {
  if (message.length > 1) {
    if (byteLength(message) > MOST_READ) return undefined;
    message.splice(0, message.length, Buffer.concat(message));
  }
  return message[0];
}

function replace(message: Message, at: number, old: string, by: string): void {
  const [whole] = message;
  message.splice(0, 1, Buffer.concat([whole.subarray(0, at), Buffer.from(by), whole.subarray(at + old.length)]));
}

/** The string that follows `before`, or with `cut` its beginning if it is longer than `most`. */
function textAfter(whole: Buffer, before: string, most: number, cut = false): string | undefined {
  const start = whole.indexOf(before);
  if (start === -1) return undefined;
  const from = start + before.length;
  const text = whole.toString('latin1', from, from + most);
  const end = text.indexOf('"');
  if (end === -1) return cut ? text : undefined;
  return text.slice(0, end);
}

const PORTS: Record<string, number> = { http: 80, ws: 80, https: 443, wss: 443 };

/** `host:port` of an address as Chromium writes it. */
export function destinationOf(url: string): string | undefined {
  const [, scheme, authority] = /^(https?|wss?):\/\/(?:[^/?#\\"]*@)?([^/?#\\"@]{1,300})(?:[/?#]|$)/i.exec(url) ?? [];
  if (scheme === undefined || authority === undefined) return undefined;
  return (/:\d+$/.test(authority) ? authority : `${authority}:${PORTS[scheme.toLowerCase()]}`).toLowerCase();
}
