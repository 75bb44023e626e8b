import type http from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Reading } from './dial.ts';

/**
 * Reads for Node's HTTP client into one buffer, again and again, instead of a new one for every 64 KiB: that, and
 * writing the body past the layers of a response, is less than half of the processor time of a plain http download.
 */
export interface PlainReader extends Reading {
  /** The socket it reads for, once that stands. */
  socket: Socket | undefined;
  /** Whether somebody may still hold a piece of the buffer; then the next read gets a new one. */
  inUse: () => boolean;
  /** Something was said before anything was asked, which is not HTTP. */
  spoiled: boolean;
}

const smallest = 16 * 1024;
const largest = 256 * 1024;
const always = () => true;

export function plainReader(): PlainReader {
  let buffer = Buffer.allocUnsafeSlow(smallest);
  let wanted = smallest;
  const reader: PlainReader = {
    socket: undefined,
    inUse: always,
    spoiled: false,
    early: () => void (reader.spoiled = true),
    buffer() {
      if (reader.inUse() || buffer.length < wanted) buffer = Buffer.allocUnsafeSlow(wanted);
      return buffer;
    },
    callback(length) {
      if (length === buffer.length && length < largest) wanted = length * 4;
      reader.socket?.emit('data', buffer.subarray(0, length));
      return true; // the client pauses the socket itself
    },
  };
  return reader;
}

/** Passes a body on. The head of the response was written; its length is the server's word, which Node's parser holds it to. */
export function passOn(incoming: http.IncomingMessage, response: http.ServerResponse, reader: PlainReader | undefined) {
  const client = response.socket;
  const counted = incoming.headers['content-length'] !== undefined;
  // Of another request's turn, of no length, or without a body: Node knows best.
  if (!client || !reader || !counted || incoming.headers['transfer-encoding'] !== undefined || !hasBody(incoming)) {
    pipeline(incoming, response, () => {});
    return;
  }
  response.flushHeaders();
  reader.inUse = () => incoming.readableLength > 0 || client.writableLength > 0;
  const resume = () => incoming.resume();
  client.on('drain', resume);
  incoming.on('data', (chunk: Buffer) => {
    if (!client.write(chunk)) incoming.pause();
  });
  incoming.once('close', () => {
    reader.inUse = always;
    client.off('drain', resume);
    if (!incoming.complete) response.destroy();
  });
  incoming.once('end', () => response.end());
  incoming.on('error', () => {});
}

const hasBody = ({ req, statusCode }: http.IncomingMessage & { req?: http.ClientRequest }) =>
  req?.method !== 'HEAD' && statusCode !== 204 && statusCode !== 304;
