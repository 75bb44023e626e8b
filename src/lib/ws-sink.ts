import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { memory, progress, type Group, type Share } from './byte-budget.ts';
import { startHeartbeat, type Heartbeat } from './heartbeat.ts';
import { nosniff } from './nosniff.ts';
import { pacedWriter } from './paced-writer.ts';
import { loopPace } from './turns.ts';
import { appendFrame, BINARY, CLOSE, closePayload, PING, PONG, TEXT } from './ws-frames.ts';
import { answerHandshake } from './ws-handshake.ts';
import { FrameReader, type Room } from './ws-reader.ts';

/** The sending side of a websocket, for senders of whole messages in pieces that need to know how much is unsent. */
export interface WebSocketSink {
  /** Queues one text message to send with the next `flush`. */
  send(pieces: readonly Buffer[]): void;
  flush(): void;
  /** Sends one binary message at once. `written` is called when it has left this process; never, if the connection ends first. */
  sendBinary(pieces: readonly Buffer[], written?: () => void): void;
  readonly bufferedAmount: number;
  close(code: number, reason: string): void;
  pause(): void;
  resume(): void;
}

/** Receives what comes from the far end. */
export interface WebSocketReceiver {
  /** One whole message. The receiver owns its bytes; those of a text are UTF-8. */
  receive(data: Buffer, binary?: boolean): void;
  /** Called after all messages that arrived together. */
  flush(): void;
  closed(): void;
}

export interface Upgrade {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

interface WebSocketOptions {
  maxPayload?: number;
  group?: Group;
  /** Sent to the client with the handshake, and in the reason when the connection is closed for a fault. */
  requestId?: string;
  /** Called when the connection is closed for a fault of either end. */
  failed?: (code: number, reason: string) => void;
  heartbeat?: Heartbeat;
}

/** The ends that are no fault: done, the session has ended, the browser restarts. */
const ORDERLY = new Set([1000, 1001, 1012]);

/** How long the far end has to answer a close before its socket is cut. */
const CLOSE_WITHIN_MS = 5_000;

/** While this much is unread by the far end, only the latest of its pings is answered (RFC 6455, 5.5.3). */
const UNREAD = 64 * 1024;

/**
 * Answers an upgrade and passes the connection to `attach`. Written by hand because every CDP round trip goes through it
 * twice: with `ws` instead, each took a tenth more of the service's processor and 15 µs more of latency, and a command of
 * 1 MiB more than twice the processor. No extensions, so no compression.
 */
export function serveWebSocket(
  { request, socket, head }: Upgrade,
  attach: (sink: WebSocketSink) => WebSocketReceiver,
  { maxPayload = 256 * 1024 * 1024, group = memory.group(), requestId, failed, heartbeat }: WebSocketOptions = {},
): void {
  const answer = answerHandshake(request);
  if (answer.accept === undefined) return refuse(socket, answer.status, answer.headers);
  greet(socket, answer.accept, requestId);

  let outgoing: Buffer[] = [];
  let outgoingBytes = 0;
  /** A close was sent: nothing may follow it, and what arrives is not passed to the receiver any more. */
  let closing = false;
  let closed = false;
  /** What pauses the socket: the receiver, or the reader that has no room or waits for its next turn. */
  const held = { byReceiver: false, byReader: false };
  let unanswered: Buffer | undefined;

  // A peer that does not read cannot be sent the reason either: a close would wait behind the unread data.
  const unread = memory.share(group, 'reader', () => socket.destroy());
  const writer = pacedWriter(socket, unread);
  const arriving = memory.share(group, 'sender', () =>
    sendClose(1008, 'Dropped: a message stopped in the middle while others waited for room.'),
  );
  const reader = new FrameReader(
    {
      message(data, binary) {
        if (!closing) receiver.receive(data, binary);
      },
      ping(payload) {
        if (closing) return;
        if (socket.writableLength < UNREAD) return control(PONG, payload);
        if (unanswered === undefined) socket.once('drain', answerPing);
        unanswered = Buffer.from(payload); // a copy: the buffer it came in is larger
      },
      close(code = 1000) {
        sendClose(code);
        socket.end();
      },
      fault(code, reason) {
        sendClose(code, reason);
        socket.end();
        leave();
      },
      pause: () => holdReader(true),
      resume: () => holdReader(false),
    },
    { maxPayload, room: roomIn(arriving), pace: loopPace },
  );
  const receiver = attach({
    send(pieces) {
      if (!closing) outgoingBytes += appendFrame(TEXT, pieces, outgoing);
    },
    flush,
    sendBinary(pieces, written) {
      if (closing) return;
      outgoingBytes += appendFrame(BINARY, pieces, outgoing);
      flush(written);
    },
    get bufferedAmount() {
      return outgoingBytes + writer.waiting;
    },
    close: sendClose,
    pause: () => hold('byReceiver', true),
    resume: () => hold('byReceiver', false),
  });

  const paused = () => held.byReader || held.byReceiver;
  const pulse = heartbeat && startHeartbeat(heartbeat, { paused, beat, drop: () => socket.destroy() });
  socket.on('data', take);
  socket.on('error', () => {}); // a reset; `close` follows
  socket.on('end', () => socket.end());
  socket.on('close', () => {
    closing = true;
    pulse?.stop();
    reader.end();
    arriving.close();
    unread.close();
    leave();
  });
  if (head.length > 0) take(Buffer.from(head));

  /** What waits to be sent contains a heartbeat already, or is as good as one. */
  function beat(text: Buffer): void {
    if (closing || outgoingBytes + writer.waiting > 0) return;
    outgoingBytes += appendFrame(TEXT, [text], outgoing);
    control(PING, Buffer.alloc(0));
  }

  function take(chunk: Buffer): void {
    pulse?.heard();
    if (arriving.bytes > 0) progress(arriving, chunk.length);
    reader.take(chunk);
    receiver.flush();
  }

  function leave(): void {
    if (closed) return;
    closed = true;
    receiver.closed();
  }

  function hold(holder: keyof typeof held, still: boolean): void {
    held[holder] = still;
    steer();
  }

  function holdReader(still: boolean): void {
    receiver.flush();
    hold('byReader', still);
  }

  /** A paused socket would not see the far end's answer to a close, so a receiver cannot pause it then. */
  function steer(): void {
    arriving.hold(held.byReceiver);
    if (held.byReader || (held.byReceiver && !closing)) socket.pause();
    else socket.resume();
  }

  function answerPing(): void {
    const payload = unanswered;
    unanswered = undefined;
    if (payload && !closing) control(PONG, payload);
  }

  function control(opcode: number, body: Buffer): void {
    outgoingBytes += appendFrame(opcode, [body], outgoing);
    flush();
  }

  function flush(written?: () => void): void {
    if (outgoing.length === 0) return;
    const buffers = outgoing;
    const bytes = outgoingBytes;
    outgoing = [];
    outgoingBytes = 0;
    writer.write(buffers, bytes, written);
  }

  function sendClose(code: number, reason = ''): void {
    if (closing) return;
    closing = true;
    const isFault = reason !== '' && !ORDERLY.has(code);
    control(CLOSE, closePayload(code, reason, isFault && requestId !== undefined ? ` (${requestId})` : ''));
    if (isFault) failed?.(code, reason);
    steer();
    const cut = setTimeout(() => socket.destroy(), CLOSE_WITHIN_MS);
    socket.on('close', () => clearTimeout(cut));
  }
}

/** Counted twice: a growing message is copied, and its old buffer stays until it is garbage-collected. */
function roomIn(arriving: Share): Room {
  return {
    take: (bytes) => {
      let granted!: (may: boolean) => void;
      const later = new Promise<boolean>((resolve) => (granted = resolve));
      return arriving.grow(2 * bytes, () => granted(true)) || later;
    },
    give: (bytes) => arriving.set(Math.max(0, arriving.bytes - 2 * bytes)),
  };
}

function greet(socket: Duplex, accept: string, requestId: string | undefined): void {
  const named = requestId === undefined ? '' : `X-Request-Id: ${requestId}\r\n`;
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${named}\r\n`,
  );
  // A peer without power or network sends nothing: without keepalive it would stay connected for ever.
  if (socket instanceof Socket) socket.setNoDelay(true).setTimeout(0).setKeepAlive(true, 30_000);
}

function refuse(socket: Duplex, status: number, headers: Record<string, string>): void {
  const lines = Object.entries({ ...headers, ...nosniff }).map(([name, value]) => `${name}: ${value}\r\n`);
  const words = status === 426 ? '426 Upgrade Required' : '400 Bad Request';
  socket.end(`HTTP/1.1 ${words}\r\n${lines.join('')}Connection: close\r\nContent-Length: 0\r\n\r\n`);
}
