import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';

/** The near end of a websocket, for those who send whole messages in pieces and want to know what waits. */
export interface WebSocketSink {
  /** Sends one text message. */
  send(pieces: readonly Buffer[]): void;
  /** Sends one binary message. `written` is called once it has left this process; never, if the connection ends first. */
  sendBinary(pieces: readonly Buffer[], written?: () => void): void;
  readonly bufferedAmount: number;
  close(code: number, reason: string): void;
  pause(): void;
  resume(): void;
}

/** Who is called with what comes from the far end. */
export interface WebSocketReceiver {
  receive(data: Buffer): void;
  closed(): void;
}

/** Messages up to this size are copied behind their frame's head: cheaper than one more entry in a writev. */
const JOIN_BELOW = 16 * 1024;

/** The first byte of a frame that is a whole message. */
const TEXT = 0x81;
const BINARY = 0x82;

/** How long the far end has to answer a close before its socket is cut. */
const CLOSE_WITHIN_MS = 5_000;

/**
 * Answers an upgrade and hands the connection to `attach`. `server` does the handshake, reads frames and answers pings;
 * it has to be made with `noServer`, `skipUTF8Validation` where the receiver checks for itself, and no compression:
 * data frames are written here, straight to the socket, all of one turn of the event loop in one write.
 */
export function serveWebSocket(
  server: WebSocketServer,
  upgrade: { request: IncomingMessage; socket: Duplex; head: Buffer },
  attach: (sink: WebSocketSink) => WebSocketReceiver,
): void {
  const { request, socket, head } = upgrade;
  server.handleUpgrade(request, socket, head, (websocket) => {
    let outgoing: Buffer[] = [];
    let outgoingBytes = 0;
    /** To be called when what is outgoing now is written. */
    let whenWritten: (() => void)[] = [];
    let closing = false;

    function flush() {
      if (outgoingBytes === 0) return;
      const buffers = outgoing;
      outgoing = [];
      outgoingBytes = 0;
      if (websocket.readyState !== websocket.OPEN) return;
      if (whenWritten.length > 0) {
        tellWhenWritten(buffers);
        return;
      }
      if (buffers.length === 1) {
        socket.write(buffers[0]);
        return;
      }
      socket.cork();
      for (const buffer of buffers) socket.write(buffer);
      socket.uncork();
    }

    function tellWhenWritten(buffers: Buffer[]) {
      const those = whenWritten;
      whenWritten = [];
      const last = buffers.pop()!;
      socket.cork();
      for (const buffer of buffers) socket.write(buffer);
      socket.write(last, (error) => {
        if (!error) for (const written of those) written();
      });
      socket.uncork();
    }

    const receiver = attach({
      send(pieces) {
        if (closing) return;
        if (outgoingBytes === 0) process.nextTick(flush);
        outgoingBytes += frame(TEXT, pieces, outgoing);
      },
      sendBinary(pieces, written) {
        if (closing) return;
        if (outgoingBytes === 0) process.nextTick(flush);
        outgoingBytes += frame(BINARY, pieces, outgoing);
        if (written) whenWritten.push(written);
      },
      get bufferedAmount() {
        return outgoingBytes + socket.writableLength;
      },
      close(code, reason) {
        if (closing) return;
        flush();
        closing = true;
        websocket.resume(); // a paused socket would not see the answer to the close
        websocket.close(code, reason);
        setTimeout(() => websocket.terminate(), CLOSE_WITHIN_MS).unref();
      },
      pause: () => websocket.pause(),
      resume: () => websocket.resume(),
    });

    websocket.binaryType = 'nodebuffer';
    websocket.on('message', (data: Buffer) => receiver.receive(data));
    websocket.on('error', () => {}); // a bad frame or a reset; `close` follows
    websocket.on('close', () => {
      closing = true;
      receiver.closed();
    });
  });
}

/** Appends a frame with this payload to `out`, and answers how many bytes that was. */
function frame(kind: number, pieces: readonly Buffer[], out: Buffer[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const headLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const joined = length <= JOIN_BELOW;
  const head = Buffer.allocUnsafe(joined ? headLength + length : headLength);
  head[0] = kind;
  if (headLength === 2) head[1] = length;
  else if (headLength === 4) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  out.push(head);
  let at = headLength;
  for (const piece of pieces) {
    if (joined) head.set(piece, at);
    else out.push(piece);
    at += piece.length;
  }
  return headLength + length;
}
