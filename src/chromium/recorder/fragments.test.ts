import { afterEach, expect, test, vi } from 'vitest';
import { box, moov } from '../../../test/support/mp4.ts';
import { fragmentReader, type Fragment } from './fragments.ts';

afterEach(() => vi.restoreAllMocks());

const moof = box('moof', Buffer.concat([Buffer.from('tfdt'), Buffer.alloc(12)]));

function read(bytes: Buffer, piece: number) {
  const heads: Buffer[] = [];
  const fragments: Fragment[] = [];
  const take = fragmentReader(
    (head) => heads.push(head.bytes),
    (fragment) => fragments.push(fragment),
  );
  for (let at = 0; at < bytes.length; at += piece) take(bytes.subarray(at, at + piece));
  return { heads, fragments };
}

test.each([1, 7, 8, 64, 1000])('a video in pieces of %i bytes is cut into its head and its fragments', (piece) => {
  const [first, second] = [box('mdat', Buffer.alloc(100, 1)), box('mdat', Buffer.alloc(0))];
  const { heads, fragments } = read(
    Buffer.concat([box('ftyp', Buffer.alloc(4)), moov, moof, first, moof, second]),
    piece,
  );
  expect(heads).toEqual([Buffer.concat([box('ftyp', Buffer.alloc(4)), moov])]);
  expect(fragments.map(({ bytes }) => bytes)).toEqual([Buffer.concat([moof, first]), Buffer.concat([moof, second])]);
});

test('the bytes of a large fragment are copied a few times, in however many pieces they come', () => {
  const video = Buffer.concat([moov, moof, box('mdat', Buffer.alloc(4 * 2 ** 20))]);
  const concat = vi.spyOn(Buffer, 'concat');
  expect(read(video, 16_384).fragments).toHaveLength(1);
  const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
  expect(copied).toBeLessThan(4 * video.length);
});

test.each([
  ['mdat', 32 * 2 ** 20 + 1],
  ['free', 64 * 2 ** 10 + 1],
])('a %s box that is too long is skipped with what belongs to it, and nothing of it is kept', (type, length) => {
  const long = box(type, Buffer.alloc(length - 8));
  const small = box('mdat', Buffer.alloc(1));
  const { fragments } = read(Buffer.concat([moov, moof, long, moof, small]), 2 ** 20);
  expect(fragments.map(({ bytes }) => bytes.length)).toEqual([moof.length + small.length]);
});

const mdat = box('mdat', Buffer.alloc(1));

test.each([
  ['no timescale', [box('moov', Buffer.alloc(0)), moof, mdat]],
  ['a cut timescale', [box('moov', Buffer.from('mdhd')), moof, mdat]],
  ['a timescale of zero', [box('moov', Buffer.concat([Buffer.from('mdhd'), Buffer.alloc(16)])), moof, mdat]],
  ['no head', [moof, mdat]],
  ['no time', [moov, box('moof', Buffer.alloc(0)), mdat]],
  ['a cut time', [moov, box('moof', Buffer.from('tfdt')), mdat]],
  ['no description', [moov, box('mdat', Buffer.alloc(0))]],
])('a fragment with %s is dropped, and is no fault', (_, boxes) => {
  expect(read(Buffer.concat(boxes), 1000).fragments).toEqual([]);
});

test('other boxes are not kept, and a second head is ignored', () => {
  const other = ['free', 'free', 'styp', 'moof'].map((type) => box(type, Buffer.alloc(1000)));
  const { heads, fragments } = read(Buffer.concat([moov, ...other, moof, mdat, moov]), 64);
  expect(heads).toHaveLength(1);
  expect(fragments.map(({ bytes }) => bytes)).toEqual([Buffer.concat([moof, mdat])]);
});
