import type net from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { resizeDisplay } from '../display/rfb.ts';
import { connectDisplay } from './display-client.ts';

const init = Buffer.alloc(24);
init.writeUInt16BE(100, 0);
init.writeUInt16BE(100, 2);
init.writeUInt8(32, 4);
const handshake = Buffer.concat([Buffer.from('RFB 003.008\n'), Buffer.from([1, 1, 0, 0, 0, 0]), init]);

/** An update with so many rectangles of one encoding and no size, at (7, 7). */
function update(count: number, encoding: number): Buffer {
  const rectangle = Buffer.from([0, 7, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
  rectangle.writeInt32BE(encoding, 8);
  return Buffer.concat([Buffer.from([0, 0, count >> 8, count & 255]), ...Array<Buffer>(count).fill(rectangle)]);
}

const POINTER_POSITION = 0x574d5666;
const MIB = 1024 * 1024;
const floods: [string, Buffer][] = [
  ['bells', Buffer.alloc(MIB / 2, 2)],
  ['clipboards', Buffer.alloc(MIB, Buffer.from([3, 0, 0, 0, 0, 0, 0, 0]))],
  ['empty updates', Buffer.alloc(MIB, Buffer.from([0, 0, 0, 0]))],
  ['empty rectangles', Buffer.concat(Array<Buffer>(4).fill(update(65_535, 0)))],
];

function display() {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  socket.push(handshake);
  return { socket, connect: () => socket as unknown as net.Socket };
}

test.each(floods)('a display that sends a flood of %s leaves turns of the event loop to others', async (_, flood) => {
  const { socket, connect } = display();
  const client = await connectDisplay(connect);
  socket.push(Buffer.concat([flood, update(1, POINTER_POSITION)]));
  let others = 0;
  for (; client.pointer.x !== 7; others++) await nextTick();
  expect(others).toBeGreaterThan(4);
  client.close();
});

test('so does a display that is resized', async () => {
  const { socket, connect } = display();
  socket.push(Buffer.concat([Buffer.alloc(MIB / 2, 2), Buffer.from([9])]));
  let others = 0;
  let failure: Error | undefined;
  resizeDisplay(connect, { width: 9, height: 9 }, AbortSignal.timeout(60_000)).catch(
    (error: Error) => (failure = error),
  );
  for (; !failure; others++) await nextTick();
  expect(failure.message).toContain('unexpected message of type 9');
  expect(others).toBeGreaterThan(4);
});
