import type { BacklogBounds } from './backlog.ts';
import type { Client, Sink } from './client.ts';
import { ClientConnection } from './connection.ts';
import { Downloads, type KeepDownload } from './downloads.ts';
import { ANSWER_MS, localClient, type LocalClient } from './local-client.ts';
import type { OpenLane } from './context-lanes.ts';
import { NetworkFacts, type Endpoint, type Network } from './network-facts.ts';
import type { Pipe } from './pipe.ts';
import { router } from './router.ts';
import { Switchboard, type MissingFile } from './switchboard.ts';

export interface Mux {
  /**
   * Attaches a client, which sees the browser as if it were its only client; with a target, the connection is that target's, as with the
   * websocket that Chromium has for each.
   */
  attach(sink: Sink, targetId?: string): Client;
  /**
   * A client inside this process. With `secretive`, the targets it creates are hidden from the other clients. With `watching`, it observes
   * the browser without a trace for them (watcher-isolation.ts); its scripts run in the isolated world `hiddenWorld`.
   */
  attachLocal(options?: { secretive?: boolean; watching?: boolean }): LocalClient;
  /** The name of isolated worlds that are hidden from clients. */
  readonly hiddenWorld: string;
  /** Whether a client other than watchers has enabled Page on one of these targets: then that client answers its dialogs. */
  answersDialogs(targetIds: readonly string[]): boolean;
  /** Whether a client of the session takes this target's requests for files. */
  choosesFiles(targetId: string): boolean;
  /** The target that a client of the session last brought to the front, unless one was created since. */
  readonly front: string | undefined;
  /** Calls `listener` whenever a client of the session brings a target to the front, until the returned function is called. */
  onFront(listener: (targetId: string) => void): () => void;
  /** Where Chromium's proxy listens; events about a server have this address if the server's is not known. */
  readonly proxy: Endpoint | undefined;
  /**
   * The reason in Chromium's terms why this address did not load. `errorText` is the reason that Chromium reported, if any. Events are
   * corrected automatically; this is for a client that may have enabled Network after the request was sent.
   */
  failureOf(errorText: string | undefined, url: string): string | undefined;
  /** Closes every connection with this code and reason, and the pipe. */
  close(code: number, reason: string): void;
  readonly clientCount: number;
  /** The browser has exited, or was released: a client that attaches gets the reason and is closed. */
  readonly isClosed: boolean;
}

/** A client with a backlog beyond these bounds is dropped. */
export interface MuxOptions extends BacklogBounds {
  /** The close code and reason for clients when the pipe closes because the browser exited. */
  whenGone?: () => { code: number; reason: string };
  /** The most unanswered commands of all clients. */
  maxInFlight?: number;
  /** Chromium's deadline for commands of the multiplexer. Commands of clients have none. */
  answerMs?: number;
  /** Gives a complete download its name. Without it, where downloads go is left to the browser and its clients. */
  keepDownload?: KeepDownload | undefined;
  /** Finds paths that do not exist for the browser. Without it, a client that names one uploads an empty file. */
  missingFile?: MissingFile | undefined;
  /** The gateway behind Chromium's proxy. It corrects Chromium's reports about the network. */
  network?: Network;
  /** Gives contexts a proxy of their own. Without it such contexts are refused. */
  openLane?: OpenLane | undefined;
}

/**
 * Gives each client a browser-level CDP session of its own on one Chromium. That session's id is never shown: to the client it is the
 * connection itself. Only the client can use sessions created under its sessions. Command ids are mapped,
 * so clients may number their commands freely.
 *
 * A client's messages go through its connection (connection.ts), Chromium's through the router (router.ts); the state that both share is
 * on the switchboard (switchboard.ts).
 */
export function multiplex(pipe: Pipe, options: MuxOptions = {}): Mux {
  const { maxInFlight = 100_000, answerMs = ANSWER_MS } = options;
  const whenGone = options.whenGone ?? (() => ({ code: 1011, reason: 'The browser went away.' }));
  const board = new Switchboard(pipe, answerMs, options.openLane);
  const { keepDownload } = options;
  if (keepDownload)
    board.downloads = new Downloads(keepDownload, (behaviour) => {
      if (!board.closed && board.mayAskMore) board.ask('Browser.setDownloadBehavior', behaviour);
    });
  board.missingFile = options.missingFile;
  const facts = options.network && new NetworkFacts(options.network);
  const route = router(board, facts);

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

  board.downloads?.take(); // clients' commands reach Chromium after this one

  interface Manner {
    secretive?: boolean;
    watching?: boolean;
    local?: boolean;
    targetId?: string | undefined;
  }

  function attach(sink: Sink, { secretive = false, watching = false, local = false, targetId }: Manner = {}): Client {
    if (secretive) board.secrets.any = true;
    if (watching) board.watching.any = true;
    const manner = { secretive, watching, local, targetId };
    const connection = new ClientConnection(board, sink, { ...options, ...manner, maxInFlight });
    if (targetId !== undefined && board.secrets.has(targetId))
      connection.refuseAtOnce({ code: 1011, reason: 'There is no such page.' });
    else if (board.closed) connection.refuseAtOnce(whenGone());
    else connection.open();
    return connection;
  }

  return {
    attach: (sink, targetId) => attach(sink, { targetId }),
    attachLocal: ({ secretive = false, watching = false } = {}) =>
      localClient((sink) => attach(sink, { secretive, watching, local: true }), answerMs),
    get hiddenWorld() {
      board.watching.any = true; // worlds of this name are hidden from now on
      return board.watching.world;
    },
    answersDialogs: (targetIds) =>
      [...board.sessions.values()].some(
        ({ answersDialogs, targetId, owner }) =>
          answersDialogs && !owner.watching && targetId !== undefined && targetIds.includes(targetId),
      ),
    choosesFiles: (targetId) =>
      [...board.sessions.values()].some((session) => session.choosesFiles && session.targetId === targetId),
    get front() {
      return board.front;
    },
    onFront(listener) {
      board.onFront.add(listener);
      return () => void board.onFront.delete(listener);
    },
    proxy: options.network?.proxy,
    failureOf: (errorText, url) => facts?.failureOf(errorText, url) ?? errorText,
    close: (code, reason) => board.close(code, reason),
    get clientCount() {
      return board.connections.size;
    },
    get isClosed() {
      return board.closed;
    },
  };
}
