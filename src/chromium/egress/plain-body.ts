import type http from 'node:http';
import type { Socket } from 'node:net';
import { pipeline, type Writable } from 'node:stream';
import { loopPace, nextTurn } from '../../lib/turns.ts';
import type { Reading } from './dial.ts';

/**
 * Reads for Node's HTTP client into one reused buffer instead of a new one for every 64 KiB. Together with
 * writing the body directly to the socket, this takes less than half of the processor time of a plain http download.
 */
export interface PlainReader extends Reading {
  /** The socket it reads for, once connected. */
  socket: Socket | undefined;
  /** Whether a piece of the buffer may still be in use; then the next read gets a new buffer. */
  inUse: () => boolean;
  /** The server sent data before the request, which is not HTTP. */
  spoiled: boolean;
}

const smallest = 16 * 1024;
const largest = 256 * 1024;
const always = () => true;

/**
 * All connections of a session that have data are read in one turn of the event loop, and servers choose what it costs to parse: 400 answers
 * with headers of 256 KiB that arrived together stopped the service for 1.4 s. So what arrives when the time of a turn is over is parsed later.
 */
export function plainReader(): PlainReader {
  let buffer = Buffer.allocUnsafeSlow(smallest);
  let wanted = smallest;
  const late: Buffer[] = [];
  const reader: PlainReader = {
    socket: undefined,
    inUse: always,
    spoiled: false,
    early: () => void (reader.spoiled = true),
    buffer() {
      if (late.length > 0 || reader.inUse() || buffer.length < wanted) buffer = Buffer.allocUnsafeSlow(wanted);
      return buffer;
    },
    // Not from `buffer`: while a connection is opened, every attempt gets a buffer, and the first attempt may win after the second has begun.
    callback(length, bytes) {
      if (length === bytes.length && length < largest) wanted = length * 4;
      const { socket } = reader;
      if (!socket) return true;
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, length);
      if (late.length === 0 && !loopPace.isOver()) {
        socket.emit('data', chunk);
        return true; // the client pauses the socket itself
      }
      if (late.push(chunk) === 1) void passLater(socket);
      return false;
    },
  };

  /** Nothing is read meanwhile, so that no end of the connection overtakes the chunk. */
  async function passLater(socket: Socket): Promise<void> {
    let resumes = !socket.isPaused();
    const asked = (wish: boolean) => () => {
      resumes = wish;
      return socket;
    };
    Object.assign(socket, { pause: asked(false), resume: asked(true) });
    while (late.length > 0) {
      await nextTurn();
      if (!socket.destroyed) socket.emit('data', late[0]);
      late.shift(); // only now: until then, its buffer is in use
    }
    for (const name of ['pause', 'resume']) Reflect.deleteProperty(socket, name);
    if (resumes) socket.resume();
    else socket.pause();
  }

  return reader;
}

/**
 * Passes a body on after the head of the response. A length is the server's Content-Length, which Node's parser enforces: such a body is
 * written to the socket directly. Others are framed again. `pipeline` is not used, because it takes more time than the rest of a small body.
 */
export function passOn(incoming: http.IncomingMessage, response: http.ServerResponse, reader: PlainReader | undefined) {
  const client = response.socket;
  // Left to Node: responses that wait for an earlier one, or have no body.
  if (!client || !reader || !hasBody(incoming)) {
    if (reader) reader.inUse = always;
    pipeline(incoming, response, () => {});
    return;
  }
  const { 'content-length': length, 'transfer-encoding': coding } = incoming.headers;
  const to: Writable = length !== undefined && coding === undefined ? client : response;
  // The head is sent immediately, with the received part of the body, so that a page sees a stream open before its first event.
  client.cork();
  process.nextTick(() => client.uncork());
  response.flushHeaders();
  if (to === response) response.on('error', () => {}); // the client has left; the close of the response ends the request
  // Stays after the body, for the head of the next answer on the connection.
  reader.inUse = () => incoming.readableLength > 0 || response.writableLength > 0 || client.writableLength > 0;
  const resume = () => incoming.resume();
  to.on('drain', resume);
  incoming.on('data', (chunk: Buffer) => {
    if (!to.write(chunk)) incoming.pause();
  });
  incoming.once('close', () => {
    to.off('drain', resume);
    if (!incoming.complete) response.destroy();
  });
  incoming.once('end', () => response.end());
  incoming.on('error', () => {});
}

const hasBody = ({ req, statusCode }: http.IncomingMessage & { req?: http.ClientRequest }) =>
  req?.method !== 'HEAD' && statusCode !== 204 && statusCode !== 304;
