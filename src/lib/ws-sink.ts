import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** The near end of a websocket, for those who send whole messages in pieces and want to know what waits. */
export interface WebSocketSink {
  /** Takes one text message to send with the next `flush`. */
  send(pieces: readonly Buffer[]): void;
  flush(): void;
  /** Sends one binary message at once. `written` is called when it has left this process; never, if the connection ends first. */
  sendBinary(pieces: readonly Buffer[], written?: () => void): void;
  readonly bufferedAmount: number;
  close(code: number, reason: string): void;
  pause(): void;
  resume(): void;
}

/** Who is called with what comes from the far end. */
export interface WebSocketReceiver {
  /** One whole message. Its bytes are the receiver's, and it is for the receiver to find out whether they are valid text. */
  receive(data: Buffer, binary?: boolean): void;
  /** What came together has been received. */
  flush(): void;
  closed(): void;
}

export interface Upgrade {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

/** Messages up to this size are copied behind their frame's head: cheaper than one more entry in a writev. */
const JOIN_BELOW = 16 * 1024;

/** Of a message: empty ones cost memory, too, and have no bytes that would count. */
const MOST_FRAGMENTS = 65_536;

/** How long the far end has to answer a close before its socket is cut. */
const CLOSE_WITHIN_MS = 5_000;

const TEXT = 1;
const CONTINUATION = 0;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/**
 * Answers an upgrade and hands the connection to `attach`. Written by hand because every CDP round trip goes through
 * it twice: `ws` in its place took a tenth more of the service's processor for each, 15 µs more of latency, and more
 * than twice the processor for a command of 1 MiB.
 * No extensions, so no compression.
 */
export function serveWebSocket(
  { request, socket, head }: Upgrade,
  attach: (sink: WebSocketSink) => WebSocketReceiver,
  { maxPayload = 256 * 1024 * 1024 } = {},
): void {
  const accept = acceptKey(request);
  if (accept === undefined) {
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    return;
  }
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  // A peer whose machine or network went away says nothing: without keepalive it would be connected for ever.
  if (socket instanceof Socket) socket.setNoDelay(true).setTimeout(0).setKeepAlive(true, 30_000);

  let outgoing: Buffer[] = [];
  let outgoingBytes = 0;
  let closing = false;
  /** The beginning of a frame's head, when a chunk ended within it. */
  let partial: Buffer | undefined;
  /** The frame whose payload is arriving. */
  let frame: { opcode: number; final: boolean; mask: number; payload: Buffer; filled: number } | undefined;
  /** The frames so far of a message in several. */
  let fragments: Buffer[] | undefined;
  let fragmentBytes = 0;
  let fragmentsAre = TEXT;

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
      return outgoingBytes + socket.writableLength;
    },
    close,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
  });

  socket.on('data', take);
  socket.on('error', () => {}); // a reset; `close` follows
  socket.on('end', () => socket.end());
  socket.on('close', () => {
    closing = true;
    frame = fragments = undefined;
    receiver.closed();
  });
  if (head.length > 0) take(Buffer.from(head));

  function control(opcode: number, body: Buffer): void {
    outgoingBytes += appendFrame(opcode, [body], outgoing);
    flush();
  }

  function flush(written?: () => void): void {
    const buffers = outgoing;
    const last = buffers.pop();
    if (!last) return;
    outgoing = [];
    outgoingBytes = 0;
    const more = buffers.length > 0;
    if (more) socket.cork();
    for (const buffer of buffers) socket.write(buffer);
    if (written) socket.write(last, (error) => error ?? written());
    else socket.write(last);
    if (more) socket.uncork();
  }

  function close(code: number, reason: string): void {
    if (closing) return;
    closing = true;
    const body = Buffer.from(`  ${reason}`).subarray(0, 125);
    body.writeUInt16BE(code);
    control(CLOSE, body);
    socket.resume(); // a paused socket would not see the answer
    const cut = setTimeout(() => socket.destroy(), CLOSE_WITHIN_MS);
    socket.on('close', () => clearTimeout(cut));
  }

  function take(chunk: Buffer): void {
    parse(chunk);
    receiver.flush();
  }

  function parse(chunk: Buffer): void {
    let data = chunk;
    if (partial) {
      data = Buffer.concat([partial, chunk]);
      partial = undefined;
    }
    let at = 0;
    while (at < data.length) {
      if (frame) {
        const end = Math.min(data.length, at + frame.payload.length - frame.filled);
        data.copy(frame.payload, frame.filled, at, end);
        frame.filled += end - at;
        at = end;
        if (frame.filled < frame.payload.length) return;
        const { opcode, final, mask, payload } = frame;
        frame = undefined;
        unmask(payload, mask);
        arrived(opcode, final, payload);
        continue;
      }

      const short = data[at + 1]! & 0x7f;
      const headLength = short < 126 ? 6 : short === 126 ? 8 : 14;
      if (data.length < at + headLength) {
        partial = data.subarray(at);
        return;
      }
      const first = data[at]!;
      const opcode = first & 0x0f;
      const final = first >= 0x80;
      if ((first & 0x70) !== 0 || data[at + 1]! < 0x80 || !isExpected(opcode, final, short))
        return fail(1002, 'Bad frame.');
      const length =
        short < 126
          ? short
          : short === 126
            ? data.readUInt16BE(at + 2)
            : data.readUInt32BE(at + 2) * 2 ** 32 + data.readUInt32BE(at + 6);
      if (length + fragmentBytes > maxPayload) return fail(1009, `A message may have ${maxPayload} bytes.`);
      const mask = data.readInt32LE(at + headLength - 4);
      at += headLength;
      if (at + length <= data.length) {
        const payload = data.subarray(at, at + length);
        unmask(payload, mask);
        at += length;
        arrived(opcode, final, payload);
      } else {
        frame = { opcode, final, mask, payload: Buffer.allocUnsafeSlow(length), filled: 0 };
      }
    }
  }

  function isExpected(opcode: number, final: boolean, length: number): boolean {
    if (opcode === TEXT || opcode === BINARY) return fragments === undefined;
    if (opcode === CONTINUATION) return fragments !== undefined;
    return (opcode === CLOSE || opcode === PING || opcode === PONG) && final && length < 126;
  }

  function arrived(opcode: number, final: boolean, payload: Buffer): void {
    if (opcode === CLOSE) {
      close(payload.length >= 2 ? payload.readUInt16BE() : 1000, '');
      socket.end();
    } else if (closing || opcode === PONG) {
      // nothing to do
    } else if (opcode === PING) control(PONG, payload);
    else if (final && !fragments) receiver.receive(payload, opcode === BINARY);
    else {
      if (!fragments) fragmentsAre = opcode;
      fragments ??= [];
      fragments.push(payload);
      fragmentBytes += payload.length;
      if (fragments.length > MOST_FRAGMENTS) return fail(1009, `A message may have ${MOST_FRAGMENTS} fragments.`);
      if (!final) return;
      const whole = Buffer.concat(fragments, fragmentBytes);
      fragments = undefined;
      fragmentBytes = 0;
      receiver.receive(whole, fragmentsAre === BINARY);
    }
  }

  /** The far end does not speak the protocol: nothing it sends from here on can be understood. */
  function fail(code: number, reason: string): void {
    close(code, reason);
    socket.off('data', take);
    socket.resume();
    socket.end();
    receiver.closed();
  }
}

/** Whether a request that wants to upgrade asks for a websocket, and rightly so. */
export function asksForWebSocket(request: IncomingMessage): boolean {
  return acceptKey(request) !== undefined;
}

function acceptKey({ method, headers }: IncomingMessage): string | undefined {
  const key = headers['sec-websocket-key'];
  const valid =
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    key !== undefined &&
    /^[+/0-9A-Za-z]{22}==$/.test(key);
  if (!valid) return undefined;
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

/** Appends a frame to `out`, and answers how many bytes that was. */
function appendFrame(opcode: number, pieces: readonly Buffer[], out: Buffer[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const headLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const joined = length <= JOIN_BELOW;
  const head = Buffer.allocUnsafe(joined ? headLength + length : headLength);
  head[0] = 0x80 | opcode;
  if (headLength === 2) head[1] = length;
  else if (headLength === 4) {
    head[1] = 126;
    head[2] = length >> 8;
    head[3] = length & 0xff;
  } else {
    head[1] = 127;
    head.writeUInt32BE(Math.floor(length / 2 ** 32), 2);
    head.writeUInt32BE(length % 2 ** 32, 6);
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

/** Takes a client's mask off, four bytes at a time where the payload is large. `mask` is read little-endian. */
export function unmask(payload: Buffer, mask: number): void {
  const { length } = payload;
  let at = 0;
  if (length > 64) {
    while (((payload.byteOffset + at) & 3) !== 0) {
      payload[at]! ^= mask >>> ((at & 3) * 8);
      at += 1;
    }
    const turned = at === 0 ? mask : (mask >>> (at * 8)) | (mask << (32 - at * 8));
    const words = new Int32Array(payload.buffer, payload.byteOffset + at, (length - at) >> 2);
    for (let word = 0; word < words.length; word++) words[word]! ^= turned;
    at += words.length * 4;
  }
  for (; at < length; at++) payload[at]! ^= mask >>> ((at & 3) * 8);
}
