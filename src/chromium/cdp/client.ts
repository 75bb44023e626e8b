/** The receiver of a client's messages: the other end of its websocket, or a part of this service. */
export interface Sink {
  /** Takes one message, in pieces, to send with the next `flush`. The sink owns the pieces from then on. */
  send(pieces: readonly Buffer[]): void;
  /** Whether it takes an event that begins like this, if it is choosy. What it does not take is not prepared for it. */
  wants?(head: Buffer): boolean;
  flush(): void;
  /** Bytes taken by `send` that have not left this process. */
  readonly bufferedAmount: number;
  /** Closes the connection after the sent messages, with a websocket's close code and reason. The sink then calls `closed`. */
  close(code: number, reason: string): void;
  /** Stop and resume calling `receive`: Chromium is behind. */
  pause(): void;
  resume(): void;
}

/** A client as the multiplexer sees it. */
export interface Client {
  /** One message from the client, unchanged. It is forwarded with the next `flush`. */
  receive(data: Buffer): void;
  /** All messages that arrived together have been received. */
  flush(): void;
  /** The connection is over. The multiplexer detaches all targets of the client. */
  closed(): void;
}
