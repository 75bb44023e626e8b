import type { BacklogBounds } from './backlog.ts';
import type { Client, Sink } from './client.ts';
import { ClientConnection } from './connection.ts';
import { ANSWER_MS, localClient, type LocalClient } from './local-client.ts';
import type { Pipe } from './pipe.ts';
import { router } from './router.ts';
import { Switchboard } from './switchboard.ts';

export interface Mux {
  /** One more client, which finds the browser as if it were alone with it. */
  attach(sink: Sink): Client;
  /** A client inside this process. With `secretive`, the targets it creates are not shown to the other clients. */
  attachLocal(options?: { secretive?: boolean }): LocalClient;
  /** Closes every connection with this code and reason, and the pipe. */
  close(code: number, reason: string): void;
  readonly clientCount: number;
  /** The browser is gone, or was let go: a client that attaches is told so and closed. */
  readonly isClosed: boolean;
}

/** A client that is further behind than the bounds is dropped. */
export interface MuxOptions extends BacklogBounds {
  /** What clients are told when the pipe closes by itself, because the browser went away. */
  whenGone?: () => { code: number; reason: string };
  /** How many commands of one client may be without an answer. */
  maxInFlight?: number;
  /** How long Chromium has for an answer to us. Clients wait as long as they like. */
  answerMs?: number;
  /** A client who said where downloads go has left; Chromium has forgotten whatever was said before. */
  onDownloadsLeft?: () => void;
}

/**
 * Gives each client a browser-level CDP session of its own on one Chromium. That session's id is never shown: to the
 * client it is the connection itself. Sessions that come to be under a client's sessions are that client's, and only
 * it can use them. Ids are mapped, so clients may count as they like.
 *
 * A client's messages go through its connection (connection.ts), Chromium's through the router (router.ts); what both need
 * to know is on the switchboard (switchboard.ts).
 */
export function multiplex(pipe: Pipe, options: MuxOptions = {}): Mux {
  const { maxInFlight = 100_000, answerMs = ANSWER_MS } = options;
  const whenGone = options.whenGone ?? (() => ({ code: 1011, reason: 'The browser went away.' }));
  const board = new Switchboard(pipe, answerMs);
  const route = router(board);

  pipe.onMessage = (message) => {
    try {
      route(message);
    } catch {
      // Not what Chromium sends. A page that has taken over its browser may say anything; it must not end the service.
    }
  };
  pipe.onPause = () => board.flush();
  pipe.onDrain = () => board.resumeAll();
  pipe.onClose = () => {
    const { code, reason } = whenGone();
    board.close(code, reason);
  };

  function attach(sink: Sink, { secretive = false, local = false } = {}): Client {
    if (secretive) board.secrets.any = true;
    const connection = new ClientConnection(board, sink, { ...options, maxInFlight, secretive, local });
    if (board.closed) connection.refuseAtOnce(whenGone());
    else connection.open();
    return connection;
  }

  return {
    attach: (sink) => attach(sink),
    attachLocal: ({ secretive = false } = {}) =>
      localClient((sink) => attach(sink, { secretive, local: true }), answerMs),
    close: (code, reason) => board.close(code, reason),
    get clientCount() {
      return board.connections.size;
    },
    get isClosed() {
      return board.closed;
    },
  };
}
