/** Where a client's messages go: the far end of its websocket, or a part of this service. */
export interface Sink {
  /** Takes one message, given in pieces, to send with the next `flush`. The pieces are the sink's from then on. */
  send(pieces: readonly Buffer[]): void;
  flush(): void;
  /** Bytes taken by `send` that have not left this process. */
  readonly bufferedAmount: number;
  /** Ends the connection after what was sent; a websocket's close code and reason. The sink answers with `closed`. */
  close(code: number, reason: string): void;
  /** Stop and start calling `receive`: Chromium is behind. */
  pause(): void;
  resume(): void;
}

/** A client as the multiplexer sees it. */
export interface Client {
  /** One message from the client, as it came. It goes on with the next `flush`. */
  receive(data: Buffer): void;
  /** What came together has been received. */
  flush(): void;
  /** The connection is over. The multiplexer detaches everything that the client had attached to. */
  closed(): void;
}
