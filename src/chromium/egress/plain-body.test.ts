import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { loopPace } from '../../lib/turns.ts';
import { plainReader } from './plain-body.ts';

it('passes on the bytes of the attempt that won, also when another attempt got its buffer later', () => {
  const reader = plainReader();
  const won = reader.buffer();
  reader.buffer();
  const got: string[] = [];
  reader.socket = new EventEmitter().on('data', (bytes: Buffer) => got.push(bytes.toString())) as Socket;
  const length = Buffer.from(won.buffer, won.byteOffset).write('HTTP/1.1 200 OK');

  reader.callback(length, won);

  expect(got).toEqual(['HTTP/1.1 200 OK']);
});

it('passes bytes on in a later turn when the time of this one is over, and reads nothing meanwhile', async () => {
  const reader = plainReader();
  const events: string[] = [];
  const socket = new EventEmitter().on('data', (bytes: Buffer) => {
    events.push(bytes.toString());
    socket.resume();
  }) as Socket;
  Object.setPrototypeOf(
    socket,
    Object.assign(Object.create(Object.getPrototypeOf(socket) as object), {
      isPaused: () => false,
      pause: () => void events.push('paused'),
      resume: () => void events.push('resumed'),
    }) as object,
  );
  reader.socket = socket;
  loopPace.isOver();
  for (const began = performance.now(); performance.now() - began < 10;); // as if others had taken the time of the turn
  const buffer = reader.buffer();
  const length = Buffer.from(buffer.buffer, buffer.byteOffset).write('late');

  expect(reader.callback(length, buffer)).toBe(false);
  expect(reader.buffer().buffer).not.toBe(buffer.buffer);
  socket.resume();
  expect(events).toEqual([]);
  await expect.poll(() => events).toEqual(['late', 'resumed']);
});
