import type { BacklogBounds } from './backlog.ts';
import type { Client, Sink } from './client.ts';
import { ClientConnection } from './connection.ts';
import { ANSWER_MS, localClient, type LocalClient } from './local-client.ts';
import type { Pipe } from './pipe.ts';
import { router } from './router.ts';
import { Switchboard } from './switchboard.ts';

export interface Mux {
  /** Attaches a client, which sees the browser as if it were its only client. */
  attach(sink: Sink): Client;
  /**
   * A client inside this process. With `secretive`, the targets it creates are hidden from the other clients. With `watching`, it observes
   * the browser without a trace for them (watching.ts); its scripts run in the isolated world `hiddenWorld`.
   */
  attachLocal(options?: { secretive?: boolean; watching?: boolean }): LocalClient;
  readonly hiddenWorld: string;
  /** Whether a client other than watchers has enabled Page on one of these targets: then that client answers its dialogs. */
  answersDialogs(targetIds: readonly string[]): boolean;
  /** Closes every connection with this code and reason, and the pipe. */
  close(code: number, reason: string): void;
  readonly clientCount: number;
  /** The browser is gone, or was released: a client that attaches gets the reason and is closed. */
  readonly isClosed: boolean;
}

/** A client with a backlog beyond these bounds is dropped. */
export interface MuxOptions extends BacklogBounds {
  /** The close code and reason for clients when the pipe closes by itself, because the browser exited. */
  whenGone?: () => { code: number; reason: string };
  /** The most unanswered commands of one client. */
  maxInFlight?: number;
  /** Chromium's deadline for commands of the multiplexer. Commands of clients have none. */
  answerMs?: number;
  /** A client that had set the download behaviour has left. Chromium has now also forgotten all earlier settings. */
  onDownloadsLeft?: () => void;
}

/**
 * Gives each client a browser-level CDP session of its own on one Chromium. That session's id is never shown: to the client it is the
 * connection itself. Sessions created under a client's sessions belong to that client, and only it can use them. Command ids are mapped,
 * so clients may number their commands freely.
 *
 * A client's messages go through its connection (connection.ts), Chromium's through the router (router.ts); the state that both share is
 * on the switchboard (switchboard.ts).
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
      // Chromium does not send this. A compromised browser may send anything; it must not end the service.
    }
  };
  pipe.onPause = () => board.flush();
  pipe.onDrain = () => board.resumeAll();
  pipe.onClose = () => {
    const { code, reason } = whenGone();
    board.close(code, reason);
  };

  function attach(sink: Sink, { secretive = false, watching = false, local = false } = {}): Client {
    if (secretive) board.secrets.any = true;
    if (watching) board.watching.any = true;
    const connection = new ClientConnection(board, sink, { ...options, maxInFlight, secretive, watching, local });
    if (board.closed) connection.refuseAtOnce(whenGone());
    else connection.open();
    return connection;
  }

  return {
    attach: (sink) => attach(sink),
    attachLocal: ({ secretive = false, watching = false } = {}) =>
      localClient((sink) => attach(sink, { secretive, watching, local: true }), answerMs),
    hiddenWorld: board.watching.world,
    answersDialogs: (targetIds) =>
      [...board.sessions.values()].some(
        ({ answersDialogs, targetId, owner }) =>
          answersDialogs && !owner.watching && targetId !== undefined && targetIds.includes(targetId),
      ),
    close: (code, reason) => board.close(code, reason),
    get clientCount() {
      return board.connections.size;
    },
    get isClosed() {
      return board.closed;
    },
  };
}
