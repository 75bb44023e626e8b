import http from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '../../lib/log.ts';
import { EgressError, refusalPage } from './refusals.ts';

/** Sends the gateway's errors to clients. */
export interface Answers {
  /** A page for refused destinations. After a network failure, the connection is closed without an answer. */
  answer(request: http.IncomingMessage, response: http.ServerResponse, thrown: unknown, target: string): void;
  /** The same on a socket that Node's server has released. */
  answerByHand(socket: Socket, thrown: unknown, target: string): void;
  /** Number of errors so far. */
  readonly count: number;
}

interface AnswersOptions {
  log: Log;
  onRefuse: ((error: EgressError, target: string) => void) | undefined;
  /** Aborted when the gateway closes: from then on there is no client to answer. */
  closing: AbortSignal;
}

/** `asking` are the same for clients that may be asked for the login of a proxy. */
export function answers({ log, onRefuse, closing }: AnswersOptions): Answers & { readonly asking: Answers } {
  const logLine = sparingly(log);
  let count = 0;

  /** Undefined when there is no client left to answer. */
  function refused(thrown: unknown, target: string): EgressError | undefined {
    if (closing.aborted || (thrown instanceof Error && thrown.name === 'AbortError')) return undefined;
    const error =
      thrown instanceof EgressError
        ? thrown
        : new EgressError('bad_request', 'This request cannot be passed on.', { cause: thrown });
    count += 1;
    logLine(
      { code: error.code, target: target.slice(0, 200), reason: error.message, ...error.facts },
      'egress.refused',
    );
    onRefuse?.(error, target);
    return error;
  }

  function answersOf(asks: boolean): Answers {
    /** The whole answer; undefined if the request fails without one. */
    function pageOf(error: EgressError) {
      const page = refusalPage(error);
      if (!asks || error.code !== 'proxy_auth_failed') return { status: error.status, ...page };
      return { status: 407, ...page, headers: { ...page.headers, 'Proxy-Authenticate': 'Basic realm="proxy"' } };
    }

    return {
      answer(request, response, thrown, target) {
        const error = refused(thrown, target);
        const page = error && pageOf(error);
        // A page in the place of a site that cannot be reached would be taken for the site. Without an answer the request fails.
        if (!page || !(error.byRule || page.status === 407) || response.headersSent || response.destroyed) {
          response.destroy();
          return;
        }
        const { status, headers, body } = page;
        // A client that waits for 100 Continue does not send its body now, so the connection cannot be reused.
        if (request.headers.expect) response.shouldKeepAlive = false;
        response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body);
      },

      answerByHand(socket, thrown, target) {
        const error = refused(thrown, target);
        if (!error || !socket.writable) {
          socket.destroy();
          return;
        }
        const { status, headers, body } = pageOf(error);
        const lines = Object.entries({ ...headers, Connection: 'close' }).map(
          ([name, value]) => `${name}: ${value}\r\n`,
        );
        socket.write(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n`);
        socket.end(body);
        leave(socket);
      },

      get count() {
        return count;
      },
    };
  }

  return Object.assign(answersOf(false), { asking: answersOf(true) });
}

/** After the last answer to a client: reads further bytes for a short time, so that the answer is not lost to a reset. */
export function leave(socket: Socket) {
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), 5000);
  socket.once('close', () => clearTimeout(timer));
}

/** At most twenty lines in ten seconds, then one with the number of skipped lines: a page's errors must not fill the disk. */
function sparingly(log: Log): Log['info'] {
  let since = 0;
  let lines = 0;
  return (facts, event) => {
    const now = Date.now();
    const skipped = Math.max(0, lines - 20);
    if (now - since > 10_000) [since, lines] = [now, 0];
    lines += 1;
    if (lines <= 20) log.info(lines === 1 && skipped > 0 ? { ...facts, skipped } : facts, event);
  };
}
