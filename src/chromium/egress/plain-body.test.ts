import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
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
