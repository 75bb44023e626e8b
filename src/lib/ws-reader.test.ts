import { expect, test } from 'vitest';
import { BINARY, close, CONTINUATION, frame, PING, PONG } from '../../test/support/frames.ts';
import { seededRandom } from '../../test/support/random.ts';
import { faults } from '../../test/support/websocket-faults.ts';
import { FrameReader, type ReaderOptions, type Room } from './ws-reader.ts';

/** What a reader says of these chunks, in words. */
function said(chunks: Iterable<Buffer>, { maxPayload = 1_000_000, room, pace }: Partial<ReaderOptions> = {}) {
  const words: string[] = [];
  const reader = new FrameReader(
    {
      message: (data, binary) => words.push(`${binary ? 'binary' : 'text'} ${data.toString('latin1')}`),
      ping: (payload) => words.push(`ping ${payload.toString('latin1')}`),
      close: (code) => words.push(`close ${code}`),
      fault: (code) => words.push(`fault ${code}`),
      pause: () => words.push('pause'),
      resume: () => words.push('resume'),
    },
    { maxPayload, room, pace },
  );
  for (const chunk of chunks) reader.take(Buffer.from(chunk)); // a copy: masks are taken off in place
  return words;
}

function* inBytes(data: Buffer) {
  for (let at = 0; at < data.length; at++) yield data.subarray(at, at + 1);
}

function* inPieces(data: Buffer, seed: number) {
  const random = seededRandom(seed);
  for (let at = 0, end = 0; at < data.length; at = end) {
    end = Math.min(data.length, at + 1 + random(2 ** (1 + random(14))));
    yield data.subarray(at, end);
  }
}

test.each(faults)('$what is a fault, however it arrives', ({ sends, code }) => {
  const last = (words: string[]) => words.at(-1);
  expect(last(said([sends]))).toBe(`fault ${code}`);
  for (let seed = 1; seed < 10; seed++) expect(last(said(inPieces(sends, seed)))).toBe(`fault ${code}`);
  if (sends.length < 5000) expect(last(said(inBytes(sends)))).toBe(`fault ${code}`);
});

const euro = Buffer.from('a€😀');
const fine: [what: string, sends: Buffer[], says: string[]][] = [
  ['nothing', [frame('')], ['text ']],
  [
    'text and bytes',
    [frame(euro), frame(Buffer.from([0xff, 0]), { opcode: BINARY })],
    [`text ${euro.toString('latin1')}`, 'binary \xff\0'],
  ],
  [
    'fragments that cut characters, with control frames in between',
    [
      frame(euro.subarray(0, 2), { final: false }),
      frame('!', { opcode: PING }),
      frame(euro.subarray(2, 5), { opcode: CONTINUATION, final: false }),
      frame('', { opcode: PONG }),
      frame('', { opcode: CONTINUATION, final: false }),
      frame(euro.subarray(5), { opcode: CONTINUATION }),
      frame('next'),
    ],
    ['ping !', `text ${euro.toString('latin1')}`, 'text next'],
  ],
  [
    'bytes in fragments that are no text',
    [
      frame(Buffer.from([0xff]), { opcode: BINARY, final: false }),
      frame(Buffer.from([0xfe]), { opcode: CONTINUATION }),
    ],
    ['binary \xff\xfe'],
  ],
  [
    'lengths of each kind',
    [125, 126, 65_535, 65_536].map((n) => frame('x'.repeat(n))),
    [125, 126, 65_535, 65_536].map((n) => `text ${'x'.repeat(n)}`),
  ],
  ['a close with frames behind it', [close(4000, 'κόσμε'), frame('x'), frame('', { rsv: 0x70 })], ['close 4000']],
  ['a close that says nothing', [close()], ['close undefined']],
  ['a close within a message', [frame('a', { final: false }), close(1000)], ['close 1000']],
];

test.each(fine)('%s is understood, however it arrives', (_what, sends, says) => {
  const data = Buffer.concat(sends);
  expect(said([data])).toEqual(says);
  expect(said(sends)).toEqual(says);
  expect(said(inBytes(data))).toEqual(says);
  for (let seed = 1; seed < 10; seed++) expect(said(inPieces(data, seed))).toEqual(says);
});

test('a message may be as large as it may be, in one frame or in several, and no larger', () => {
  const bounds = { maxPayload: 200_000 };
  const whole = 'x'.repeat(200_000);
  const halves = [
    frame(whole.slice(0, 70_000), { final: false }),
    frame(whole.slice(70_000), { opcode: CONTINUATION }),
  ];
  expect(said([frame(whole)], bounds)).toEqual([`text ${whole}`]);
  expect(said(halves, bounds)).toEqual([`text ${whole}`]);
  expect(said([...halves, frame('', { claims: 200_001 })], bounds).at(-1)).toBe('fault 1009');
  const tooMuch = frame('', { opcode: CONTINUATION, claims: 130_001 });
  expect(said([halves[0]!, tooMuch], bounds)).toEqual(['fault 1009']);
});

test('fragments without bytes cost nothing, however many there are', () => {
  const empty = frame('', { opcode: CONTINUATION, final: false });
  const many = Buffer.concat(Array<Buffer>(100_000).fill(empty));
  expect(said([frame('a', { final: false }), many, frame('b', { opcode: CONTINUATION })])).toEqual(['text ab']);
});

/** Room for `most` bytes at a time; what does not fit waits until `free` is called, if `patient`. */
function roomFor(most: number, patient: boolean) {
  let taken = 0;
  const asked: number[] = [];
  const waiting: ((granted: boolean) => void)[] = [];
  return {
    asked,
    get taken() {
      return taken;
    },
    free(granted: boolean) {
      for (const wake of waiting.splice(0)) wake(granted);
    },
    room: {
      take(bytes) {
        asked.push(bytes);
        if (taken + bytes <= most) {
          taken += bytes;
          return true;
        }
        if (!patient) return false;
        return new Promise<boolean>((resolve) =>
          waiting.push((granted) => {
            if (granted) taken += bytes;
            resolve(granted);
          }),
        );
      },
      give: (bytes) => void (taken -= bytes),
    } as Room,
  };
}

test('memory is asked for as bytes arrive, not as they are announced, and given back with the message', () => {
  const books = roomFor(100_000_000, false);
  const { asked, room } = books;
  const bounds = { maxPayload: 50_000_000, room };
  const large = frame(Buffer.alloc(20_000_000, 'x'));
  said([large.subarray(0, 1000)], bounds);
  expect(asked.splice(0)).toEqual([1024 * 1024]);
  const words = said(inPieces(large, 3), bounds);
  expect(words).toHaveLength(1);
  expect(asked.reduce((sum, bytes) => sum + bytes)).toBe(20_000_000);
  expect(asked.length).toBeLessThan(10);
  expect(said([frame('in one piece')], bounds)).toEqual(['text in one piece']);
  expect(books.taken).toBe(1024 * 1024); // the message that is still under way
});

test('what there is no room for is a fault, and nothing stays taken', () => {
  const books = roomFor(1_500_000, false);
  const data = frame(Buffer.alloc(3_000_000, 'x'));
  expect(said(inPieces(data, 5), { maxPayload: 5_000_000, room: books.room })).toEqual(['fault 1009']);
  expect(books.taken).toBe(0);
});

test.each([true, false])('a reader waits for room; granted: %s', async (granted) => {
  const books = roomFor(1_500_000, true);
  const data = Buffer.concat([frame(Buffer.alloc(3_000_000, 'x')), frame('next')]);
  const words = said(inPieces(data, 7), { maxPayload: 5_000_000, room: books.room });
  expect(words).toEqual(['pause']);
  while (words.at(-1) === 'pause') {
    books.free(granted);
    await new Promise(setImmediate);
  }
  const rest = words.filter((word) => word !== 'pause').map((word) => word.slice(0, 10));
  expect(rest).toEqual(granted ? ['text xxxxx', 'text next', 'resume'] : ['fault 1009', 'resume']);
  expect(books.taken).toBe(0);
});

test('a reader continues in its next turn, before data that arrived since', async () => {
  let frames = 0;
  const turns: (() => void)[] = [];
  const pace = {
    isOver: () => frames++ % 3 === 2,
    next: () => new Promise<void>((resolve) => turns.push(resolve)),
  };
  const texts = ['a', 'b', 'c', 'd', 'e'];
  const data = Buffer.concat([...texts.map((text) => frame(text)), close(1000)]);
  const words = said([data.subarray(0, 25), data.subarray(25)], { pace });
  expect(words).toEqual(['text a', 'text b', 'pause']);
  while (turns.length > 0) {
    turns.shift()!();
    await new Promise(setImmediate);
  }
  expect(words.filter((word) => word !== 'pause')).toEqual([
    ...texts.map((text) => `text ${text}`),
    'close 1000',
    'resume',
  ]);
});
