import http from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { boundInterimAnswers } from '../../lib/interim-answers.ts';
import { nextTurn } from '../../lib/turns.ts';
import { leave, type Answers } from './answers.ts';
import type { Destinations } from './destinations.ts';
import { endToEnd, hasBody, parseAbsolute, rawHead, refuseTrace } from './http-words.ts';
import type { Limits } from './limits.ts';
import { passOn } from './plain-body.ts';
import { loginRefused } from './proxy-handshake.ts';
import { EgressError } from './refusals.ts';
import { WayLeft, type WaysOut } from './ways-out.ts';

interface PlainRequestsOptions {
  allow: Destinations;
  ways: WaysOut;
  answers: Answers;
  limits: Limits;
}

/** Plain http requests in absolute form: each is rewritten for its destination, and the answer is passed on. */
export function plainRequests({ allow, ways, answers, limits }: PlainRequestsOptions) {
  const { answer, answerByHand } = answers;
  return { forward, upgrade };

  function forward(request: http.IncomingMessage, response: http.ServerResponse, retried = false): void {
    const target = request.url ?? '';
    let outgoing: http.ClientRequest;
    let late: NodeJS.Timeout | undefined;
    let toProxy = false;
    try {
      const asked = outgoingRequest(request, target, { fresh: retried });
      toProxy = asked.toProxy;
      outgoing = boundInterimAnswers(http.request(asked));
    } catch (error) {
      return answer(request, response, error, target);
    }
    const hangUp = () => outgoing.destroy();
    const fail = (error: unknown): void => {
      clearTimeout(late);
      response.off('close', hangUp);
      if (error instanceof WayLeft && !hasBody(request)) return void repeat(request, response);
      // The server may have closed a kept connection just now. Without a body, repeating the request is safe.
      if (outgoing.reusedSocket && !retried && !response.destroyed && isHangUp(error))
        return forward(request, response, true);
      answer(request, response, outgoingError(error), target);
    };
    response.once('close', hangUp);
    if (toProxy) {
      outgoing.once('finish', () => {
        const message = `The proxy did not answer within ${limits.proxyAnswerMs / 1000} s.`;
        late = setTimeout(() => outgoing.destroy(new EgressError('proxy_timeout', message)), limits.proxyAnswerMs);
      });
      outgoing.once('close', () => clearTimeout(late));
    }
    outgoing.once('continue', () => response.writeContinue());
    outgoing.once('response', (incoming): void => {
      clearTimeout(late);
      outgoing.off('error', fail).on('error', () => {});
      try {
        if (toProxy && incoming.statusCode === 407) throw loginRefused(rawHead(incoming, incoming.rawHeaders));
        if (incoming.statusCode! < 200) throw new Error('the server switched protocols without being asked');
        response.sendDate = false;
        const headers = endToEnd(incoming.rawHeaders, framedTwice(incoming) ? ['content-length'] : []);
        // What follows such an answer on its connection may be taken for the next one: it carries no other request (RFC 9112, 6.3).
        if (framedTwice(incoming)) outgoing.shouldKeepAlive = false;
        response.writeHead(incoming.statusCode!, incoming.statusMessage, headers);
      } catch (error) {
        outgoing.destroy();
        return answer(request, response, outgoingError(error), target);
      }
      passOn(incoming, response, ways.readerOf(incoming.socket));
    });
    outgoing.once('error', fail);
    outgoing.once('upgrade', (incoming) => {
      incoming.socket.destroy();
      fail(new Error('the server switched protocols without being asked'));
    });
    if (request.headers.expect) outgoing.flushHeaders();
    if (hasBody(request)) request.pipe(outgoing);
    else {
      request.resume();
      outgoing.end();
    }
  }

  /** A change of the proxy repeats all requests that wait for a connection to it. */
  async function repeat(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    await nextTurn(ways);
    if (!response.destroyed) forward(request, response);
  }

  /** A websocket over plain http without a tunnel. Chromium uses CONNECT for those; other clients may not. */
  function upgrade(request: http.IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => {});
    const target = request.url ?? '';
    let outgoing: http.ClientRequest;
    try {
      if (hasBody(request)) throw new EgressError('bad_request', 'A request to upgrade the connection has no body.');
      const { headers, ...rest } = outgoingRequest(request, target, { fresh: true, tunnel: true });
      headers.push('Connection', 'Upgrade', 'Upgrade', request.headers.upgrade ?? '');
      outgoing = boundInterimAnswers(http.request({ ...rest, headers }));
    } catch (error) {
      return answerByHand(socket, error, target);
    }
    socket.once('close', () => outgoing.destroy());
    outgoing.on('error', (error) => answerByHand(socket, outgoingError(error), target));
    outgoing.once('upgrade', (incoming, _socket, upstreamHead) => {
      const upstream = incoming.socket;
      socket.write(rawHead(incoming, incoming.rawHeaders), 'latin1');
      if (upstreamHead.length > 0) socket.write(upstreamHead);
      if (head.length > 0) upstream.write(head);
      ways.join(socket, upstream);
    });
    outgoing.once('response', (incoming) => {
      // Not upgraded: an ordinary answer, and the connection closes after it.
      socket.write(rawHead(incoming, [...endToEnd(incoming.rawHeaders), 'Connection', 'close']), 'latin1');
      pipeline(incoming, socket, () => leave(socket));
    });
    outgoing.end();
  }

  /**
   * The outgoing request: the target's host, the end-to-end headers, and framing by the gateway alone. It goes to the server,
   * or, where there is an http proxy, to the proxy in absolute form.
   */
  function outgoingRequest(
    request: http.IncomingMessage,
    asked: string,
    { fresh, tunnel = false }: { fresh: boolean; tunnel?: boolean },
  ) {
    refuseTrace(request.method);
    const { host, port, authority, path } = parseAbsolute(asked);
    const { proxy, origins, toProxy } = ways.current;
    const target = proxy && allow.checkUnresolved(host, port);
    const via = !tunnel && target && !proxy.bypasses(target.host) ? proxy.forward : undefined;
    const headers = ['Host', authority, ...endToEnd(request.rawHeaders, ['host', 'content-length'])];
    const length = request.headers['content-length'];
    if (request.headers['transfer-encoding'] !== undefined) headers.push('Transfer-Encoding', 'chunked');
    else if (length !== undefined) headers.push('Content-Length', length);
    if (via) headers.push(...via.headers);
    const { agent, createConnection } = via && toProxy ? toProxy : origins;
    return {
      toProxy: via !== undefined,
      // To the agent, all requests to the proxy have the same destination.
      ...(via ? { host: 'proxy', port: 0, path: `http://${authority}${path}` } : { host, port, path }),
      method: request.method,
      headers,
      setHost: false,
      maxHeaderSize: limits.responseHeaderBytes,
      // Chromium reads answers that break the rules of framing and of line ends, and sites that send them work in it. A connection to a
      // proxy carries the answers of many sites, so there a doubt about where one ends is an error.
      insecureHTTPParser: !via && !tunnel,
      // A body cannot be sent twice, so it never uses a kept connection, which may be closing.
      ...(fresh || hasBody(request) ? { createConnection } : { agent }),
    };
  }
}

/** Chunks count, as in Chromium, and the length is dropped. No other coding marks the end of an answer. */
function framedTwice({ headers }: http.IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  if (coding === undefined || headers['content-length'] === undefined) return false;
  if (coding.toLowerCase() !== 'chunked') throw new Error('the answer has a length and a transfer coding');
  return true;
}

function isHangUp(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ECONNRESET' || code === 'EPIPE';
}

function outgoingError(error: unknown): unknown {
  if (error instanceof EgressError || (error instanceof Error && error.name === 'AbortError')) return error;
  if (error instanceof WayLeft)
    return new EgressError('proxy_unreachable', 'The proxy was swapped while this was under way. Ask again.');
  if (isHangUp(error))
    return new EgressError('connect_failed', 'The server closed the connection without an answer.', { cause: error });
  const { code, message } = error as NodeJS.ErrnoException;
  return new EgressError('bad_answer', 'The server answered with something that is not HTTP/1.1.', {
    facts: { cause: code ?? message },
    cause: error,
  });
}
