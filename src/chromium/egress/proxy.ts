import type { Socket } from 'node:net';
import tls from 'node:tls';
import type { Destinations, Target } from './destinations.ts';
import type { Dial, DialOptions, Reading } from './dial.ts';
import { cheapCiphers } from './handshake-cost.ts';
import { basic, connectHandshake, socksHandshake, type Handshake, type Login } from './proxy-handshake.ts';
import { EgressError } from './refusals.ts';

/** A proxy that connections can go through. */
export interface Proxy {
  readonly protocol: 'http' | 'https' | 'socks5';
  readonly host: string;
  readonly port: number;
  readonly login?: Login | undefined;
  /** PEM certificates to trust for an https proxy, instead of the system's. */
  readonly ca?: string | undefined;
  /** Names that are reached without the proxy: `shop.example`, or `*.shop.example` for all names below it. In lower case. */
  readonly bypassHosts: readonly string[];
}

/** The ways through a proxy. All of them throw an `EgressError`, and close their connections when the signal aborts. */
export interface ProxyWay {
  readonly protocol: Proxy['protocol'];
  bypasses(host: string): boolean;
  /** A connection to the target that passes all bytes unchanged. The proxy resolves the name. */
  tunnel(target: Target, options: DialOptions): Promise<Socket>;
  /**
   * A connection to the proxy itself, for plain http in absolute form: by default proxies refuse CONNECT
   * to port 80. Undefined for SOCKS.
   */
  forward: { connect(options: DialOptions): Promise<Socket>; headers: readonly string[] } | undefined;
}

export function proxyWay(
  proxy: Proxy,
  { allow, dial, handshakeMs = 30_000 }: { allow: Destinations; dial: Dial; handshakeMs?: number },
): ProxyWay {
  const { protocol, host, port, login } = proxy;
  const bypass = new Set(proxy.bypassHosts);
  const facts = { proxy: `${host}:${port}` };
  let context: tls.SecureContext | undefined; // slow to create, and the same for every connection

  /** Connects to the proxy's own port. Its addresses are checked like any destination, so a proxy cannot bypass the check. */
  async function reach(options: DialOptions): Promise<Socket> {
    try {
      const plain = protocol !== 'https'; // TLS does not use `onread`
      const socket = await dial(
        await allow.check(host.includes(':') ? `[${host}]` : host, port),
        plain ? options : { signal: options.signal },
      );
      if (plain) return socket;
      context ??= tls.createSecureContext({ ciphers: cheapCiphers, ...(proxy.ca ? { ca: proxy.ca } : {}) });
      return await secured(socket, host, context, options.signal, handshakeMs);
    } catch (error) {
      throw aboutTheProxy(error, facts);
    }
  }

  async function tunnel(target: Target, { signal, onread }: DialOptions): Promise<Socket> {
    const handshake = protocol === 'socks5' ? socksHandshake(target, login) : connectHandshake(target, login);
    // TLS does not use `onread`; its socket emits, as one does without `onread`.
    const reader = protocol === 'https' ? undefined : onread && switched(onread);
    const socket = await reach({ signal, ...(reader ? { onread: reader.onread } : {}) });
    try {
      const early = await shakeHands(socket, handshake, { signal, handshakeMs, reader });
      if (early.length === 0) return socket;
      if (reader) onread!.early(early);
      else socket.unshift(early);
      return socket;
    } catch (error) {
      socket.destroy();
      throw aboutTheProxy(error, facts);
    }
  }

  return {
    protocol,
    bypasses: (name) => bypass.has(name) || parents(name).some((parent) => bypass.has(`*.${parent}`)),
    tunnel,
    forward:
      protocol === 'socks5'
        ? undefined
        : { connect: reach, headers: login ? ['Proxy-Authorization', basic(login)] : [] },
  };
}

/** `b.c` and `c` for a.b.c. */
function parents(name: string): string[] {
  const labels = name.split('.');
  return labels.slice(1).map((_, i) => labels.slice(i + 1).join('.'));
}

/** Performs the handshake over the socket; resolves with the bytes that came after it. */
function shakeHands(
  socket: Socket,
  handshake: Handshake,
  {
    signal,
    handshakeMs,
    reader,
  }: { signal: AbortSignal; handshakeMs: number; reader: ReturnType<typeof switched> | undefined },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let over = false;
    const finish = (settle: () => void) => {
      over = true;
      clearTimeout(late);
      signal.removeEventListener('abort', abort);
      socket.off('readable', drain).off('error', failed).off('end', hungUp).off('close', hungUp);
      settle();
    };
    const abort = () => finish(() => reject(signal.reason));
    const failed = (error: Error) =>
      finish(() => reject(new EgressError('proxy_unreachable', 'The proxy broke the connection.', { cause: error })));
    const hungUp = () =>
      finish(() => reject(new EgressError('proxy_bad_answer', 'The proxy hung up without an answer.')));
    const late = setTimeout(() => {
      const message = `The proxy took the connection and did not answer within ${handshakeMs / 1000} s.`;
      finish(() => reject(new EgressError('proxy_timeout', message)));
    }, handshakeMs);
    const receive = (chunk: Buffer) => {
      try {
        const next = handshake.feed(chunk);
        if (next && 'send' in next) socket.write(next.send);
        if (!next || !('through' in next)) return;
        reader?.through();
        finish(() => resolve(next.through));
      } catch (error) {
        finish(() => reject(error));
      }
    };

    const drain = () => {
      for (let chunk: Buffer | null; !over && (chunk = socket.read() as Buffer | null) !== null;) receive(chunk);
    };

    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.on('error', failed).on('end', hungUp).on('close', hungUp);
    if (reader) {
      reader.receive = receive;
      socket.resume(); // otherwise the socket does not emit its end
    } else socket.on('readable', drain); // unlike 'data', it leaves the next reader of the socket a free choice
    socket.write(handshake.hello);
  });
}

/** Reads for the handshake first, and then for `wanted`. */
function switched(wanted: Reading) {
  const head = Buffer.allocUnsafe(4096);
  let through = false;
  const reader = {
    receive: (_chunk: Buffer): void => {},
    through: () => void (through = true),
    onread: {
      buffer: () => (through ? wanted.buffer() : head),
      callback(length: number, bytes: Uint8Array) {
        if (through) return wanted.callback(length, bytes);
        reader.receive(Buffer.from(head.subarray(0, length)));
        return true;
      },
      early: () => {},
    } satisfies Reading,
  };
  return reader;
}

function secured(
  socket: Socket,
  host: string,
  secureContext: tls.SecureContext,
  signal: AbortSignal,
  ms: number,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) => {
      clearTimeout(late);
      signal.removeEventListener('abort', abort);
      secure.off('error', failed).off('close', closed);
      settle();
    };
    const giveUp = (error: unknown) =>
      finish(() => {
        secure.on('error', () => {}).destroy();
        socket.destroy();
        reject(error);
      });
    const abort = () => giveUp(signal.reason);
    const failed = (error: NodeJS.ErrnoException) => giveUp(tlsFailure(error));
    const closed = () =>
      giveUp(new EgressError('proxy_unreachable', 'The proxy closed the connection before TLS was established.'));
    const late = setTimeout(
      () => giveUp(new EgressError('proxy_timeout', `The proxy did not speak TLS within ${ms / 1000} s.`)),
      ms,
    );
    const name = host.includes(':') || /^[\d.]+$/.test(host) ? undefined : host;
    const secure = tls.connect({
      socket,
      host, // the name that its certificate must have
      ...(name ? { servername: name } : {}),
      secureContext,
      ALPNProtocols: ['http/1.1'],
    });
    secure.once('secureConnect', () => finish(() => resolve(secure)));
    secure.on('error', failed).on('close', closed);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

function tlsFailure(error: NodeJS.ErrnoException): EgressError {
  const { code = '' } = error;
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) {
    return new EgressError('proxy_bad_answer', `What answers at the proxy’s address does not speak TLS (${code}).`, {
      remedy: 'A proxy that is spoken to in the clear has `protocol: http`.',
      cause: error,
    });
  }
  if (code === 'ECONNRESET')
    return new EgressError('proxy_unreachable', 'The proxy closed the connection before TLS was established.', {
      cause: error,
    });
  return new EgressError('proxy_unreachable', `The proxy’s certificate is not trusted (${code}).`, {
    remedy: 'Send the certificates that vouch for it in `config.ca_bundle`.',
    cause: error,
  });
}

/** Turns a connection error into one about the proxy. The proxy's address goes to the log, not to pages. */
function aboutTheProxy(error: unknown, facts: object): unknown {
  if (!(error instanceof EgressError)) return error;
  const about = (code: EgressError['code'], message: string) =>
    new EgressError(code, message, { facts: { ...facts, reason: error.message, ...error.facts }, cause: error });
  switch (error.code) {
    case 'connect_timeout':
      return about('proxy_timeout', 'The proxy did not pick up.');
    case 'connect_failed':
      return about('proxy_unreachable', 'The proxy could not be reached.');
    case 'dns_failed':
      return about('proxy_unreachable', 'The name of the proxy could not be resolved.');
    case 'destination_refused':
    case 'bad_request':
      return about('proxy_unreachable', 'The proxy is at an address that this service may not reach.');
    default:
      return new EgressError(error.code, error.message, {
        ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
        facts: { ...facts, ...error.facts },
        cause: error.cause,
      });
  }
}
