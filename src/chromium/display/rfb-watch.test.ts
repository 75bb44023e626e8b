import { describe, expect, it } from 'vitest';
import { watchOnly } from './rfb-watch.ts';

const greeting = Buffer.from('RFB 003.008\n\x01\x01', 'latin1');
const update = Buffer.from([3, 1, 0, 0, 0, 0, 0, 9, 0, 9]);
const pixelFormat = Buffer.alloc(20);
const fence = Buffer.from([248, 0, 0, 0, 0, 0, 0, 1, 3, 1, 2, 3]);
const continuous = Buffer.from([150, 1, 0, 0, 0, 0, 0, 9, 0, 9]);
const key = Buffer.from([4, 1, 0, 0, 0, 0, 0, 0x61]);
const pointer = Buffer.from([5, 1, 0, 1, 0, 1]);
const qemuKey = Buffer.from([255, 0, 0, 1, 0, 0, 0, 0x61, 0, 0, 0, 30]);
const resize = Buffer.concat([Buffer.from([251, 0, 0, 9, 0, 9, 1, 0]), Buffer.alloc(16)]);

function cutText(length: number, bytes: number): Buffer {
  const message = Buffer.alloc(8 + bytes, 3); // filled with what would be requests for updates
  message.set([6, 0, 0, 0]);
  message.writeInt32BE(length, 4);
  return message;
}

function encodings(...numbers: number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * numbers.length);
  message.set([2, 0, numbers.length >> 8, numbers.length & 255]);
  numbers.forEach((number, i) => message.writeInt32BE(number, 4 + 4 * i));
  return message;
}

const messages = [pixelFormat, encodings(7, -316, 0, -258, 0xc0a1e5ce | 0), key, update, pointer, fence, qemuKey];
const more = [cutText(5, 5), continuous, cutText(-300, 300), resize, Buffer.from([250, 0, 1, 2]), update];
const said = Buffer.concat([greeting, ...messages, ...more]);
const passes = Buffer.concat([greeting, pixelFormat, encodings(7, 0), update, fence, continuous, update]);

describe('a read-only viewer', () => {
  it.each([1, 2, 3, 7, 64, 10_000])('gets through only what watching takes, in pieces of %i bytes', (size) => {
    const allowed = watchOnly();
    const passed: Buffer[] = [];
    for (let at = 0; at < said.length; at += size) passed.push(allowed(said.subarray(at, at + size))!);
    expect(Buffer.concat(passed)).toEqual(passes);
  });

  it('may name a thousand encodings', () => {
    const many = encodings(...Array<number>(1000).fill(7));
    expect(watchOnly()(Buffer.concat([greeting, many]))).toEqual(Buffer.concat([greeting, many]));
  });

  it.each([
    ['another version', Buffer.from('RFB 003.003\n')],
    ['a password', Buffer.from('RFB 003.008\n\x02', 'latin1')],
    ['the display for itself', Buffer.from('RFB 003.008\n\x01\x00', 'latin1')],
    ['1001 encodings', Buffer.concat([greeting, encodings(...Array<number>(1001).fill(7))])],
    ['65,535 encodings, of which it sends none', Buffer.concat([greeting, Buffer.from([2, 0, 255, 255])])],
    ['an unknown message', Buffer.concat([greeting, Buffer.from([99])])],
  ])('is refused from then on after %s', (_, data) => {
    const allowed = watchOnly();
    expect(allowed(data)).toBeUndefined();
    expect(allowed(update)).toBeUndefined();
  });
});
