import { BINARY, close, CLOSE, CONTINUATION, frame, PING, PONG } from './frames.ts';

const bytes = (...list: number[]) => Buffer.from(list);
const start = (payload: string | Buffer) => frame(payload, { final: false });
const last = (payload: string | Buffer) => frame(payload, { opcode: CONTINUATION });
const middle = (payload: string | Buffer) => frame(payload, { opcode: CONTINUATION, final: false });
const word = 'κόσμε';
const cut = Buffer.from(word);

/** Sequences that are no UTF-8, each behind text that is. */
const badText: [what: string, bad: Buffer][] = [
  ['a lone continuation byte', bytes(0x80)],
  ['two of them', bytes(0xbf, 0x80)],
  ['a sequence that is cut off', bytes(0xce)],
  ['a longer sequence that is cut off', bytes(0xf0, 0x90, 0x80)],
  ['a first byte without its continuation', bytes(0xe2, 0x28, 0xa1)],
  ['an overlong slash in two bytes', bytes(0xc0, 0xaf)],
  ['an overlong slash in three', bytes(0xe0, 0x80, 0xaf)],
  ['an overlong slash in four', bytes(0xf0, 0x80, 0x80, 0xaf)],
  ['the most that is overlong in three', bytes(0xe0, 0x9f, 0xbf)],
  ['the most that is overlong in four', bytes(0xf0, 0x8f, 0xbf, 0xbf)],
  ['the first surrogate', bytes(0xed, 0xa0, 0x80)],
  ['the last surrogate', bytes(0xed, 0xbf, 0xbf)],
  ['a pair of surrogates', bytes(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80)],
  ['a character above U+10FFFF', bytes(0xf4, 0x90, 0x80, 0x80)],
  ['five bytes', bytes(0xf8, 0x88, 0x80, 0x80, 0x80)],
  ['six bytes', bytes(0xfc, 0x84, 0x80, 0x80, 0x80, 0x80)],
  ['0xfe', bytes(0xfe)],
  ['0xff', bytes(0xff)],
];

export interface Fault {
  what: string;
  sends: Buffer;
  code: number;
}

const fault = (what: string, code: number, ...frames: Buffer[]): Fault => ({
  what,
  code,
  sends: Buffer.concat(frames),
});

/**
 * What a server must refuse (RFC 6455, 5 and 7), with the code it closes the connection with. The bytes are all there is: a server
 * that waits for more has not refused.
 */
export const faults: Fault[] = [
  // 5.1: a client masks
  fault('an empty text that is not masked', 1002, frame('', { masked: false })),
  fault('a text of one byte that is not masked', 1002, frame('a', { masked: false })),
  fault('a text that is not masked', 1002, frame('hello there', { masked: false })),
  fault('a long text that is not masked', 1002, frame('a'.repeat(70_000), { masked: false })),
  fault('a ping that is not masked', 1002, frame('', { opcode: PING, masked: false })),
  fault('a close that is not masked', 1002, frame(bytes(3, 232), { opcode: CLOSE, masked: false })),
  fault('a continuation that is not masked', 1002, start('a'), frame('b', { opcode: CONTINUATION, masked: false })),
  fault('the first two bytes of a frame that is not masked', 1002, bytes(0x81, 0x05)),

  // 5.2: reserved bits, reserved opcodes
  ...[0x40, 0x20, 0x10, 0x70].flatMap((rsv) => [
    fault(`a text with reserved bits ${rsv.toString(16)}`, 1002, frame('a', { rsv })),
    fault(`a ping with reserved bits ${rsv.toString(16)}`, 1002, frame('', { opcode: PING, rsv })),
    fault(
      `a continuation with reserved bits ${rsv.toString(16)}`,
      1002,
      start('a'),
      frame('b', { opcode: CONTINUATION, rsv }),
    ),
    fault(`a close with reserved bits ${rsv.toString(16)}`, 1002, frame('', { opcode: CLOSE, rsv })),
  ]),
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].flatMap((opcode) => [
    fault(`a frame of opcode ${opcode}`, 1002, frame('', { opcode })),
    fault(`a frame of opcode ${opcode} within a message`, 1002, start('a'), frame('b', { opcode })),
  ]),
  fault('the first byte of a frame of opcode 3', 1002, bytes(0x83)),

  // 5.2: lengths, in as few bytes as they take
  fault('a length of 0 in two bytes', 1002, frame('', { lengthBytes: 2 })),
  fault('a length of 125 in two bytes', 1002, frame('a'.repeat(125), { lengthBytes: 2 })),
  fault('a length of 0 in eight bytes', 1002, frame('', { lengthBytes: 8 })),
  fault('a length of 65535 in eight bytes', 1002, frame('a'.repeat(65_535), { lengthBytes: 8 })),
  fault('a length with its highest bit set', 1002, frame('', { lengthBytes: 8, claims: 2n ** 63n + 5n })),
  fault('the largest length there is', 1002, frame('', { lengthBytes: 8, claims: 2n ** 64n - 1n })),
  fault('the largest length that is allowed', 1009, frame('', { lengthBytes: 8, claims: 2n ** 63n - 1n })),

  // 5.4: order of fragments
  fault('a continuation of nothing', 1002, last('a')),
  fault('a continuation of nothing that is not the last', 1002, middle('a')),
  fault('a second continuation after the last', 1002, start('"a'), last('b"'), last('c')),
  fault('a text within a text', 1002, start('a'), frame('b')),
  fault('a binary message within a text', 1002, start('a'), frame('b', { opcode: BINARY })),
  fault('a text that begins within a text', 1002, start('a'), start('b')),
  fault('a text within a binary message', 1002, frame('a', { opcode: BINARY, final: false }), frame('b')),

  // 5.5: control frames
  ...[CLOSE, PING, PONG].flatMap((opcode) => [
    fault(`a control frame (${opcode}) in pieces`, 1002, frame('', { opcode, final: false })),
    fault(`a control frame (${opcode}) of 126 bytes`, 1002, frame(Buffer.alloc(126, 'a'), { opcode })),
    fault(`a control frame (${opcode}) of 65536 bytes`, 1002, frame(Buffer.alloc(65_536, 'a'), { opcode })),
  ]),

  // 7.4: close frames
  fault('a close of one byte', 1002, frame(bytes(3), { opcode: CLOSE })),
  ...[0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map((code) =>
    fault(`a close with code ${code}`, 1002, close(code)),
  ),
  fault('a close within a message, with a code of none', 1002, start('a'), close(1005)),
  ...badText.map(([what, bad]) =>
    fault(`a close whose reason has ${what}`, 1007, close(1000, Buffer.concat([cut, bad]))),
  ),

  // 8.1: text is UTF-8
  ...badText.flatMap(([what, bad]) => {
    const text = Buffer.concat([cut, bad]);
    return [
      fault(`a text that has ${what}`, 1007, frame(text)),
      fault(`a text that begins with ${what}`, 1007, frame(bad)),
      fault(`a text in fragments that has ${what}`, 1007, start(cut), last(bad)),
      fault(
        `a text in fragments of a byte that has ${what}`,
        1007,
        start(''),
        ...[...text].map((byte) => middle(bytes(byte))),
        last(''),
      ),
    ];
  }),
  fault('a text in fragments that is wrong before its last', 1007, start(cut), middle(bytes(0xed, 0xa0))),
  fault('the first of several fragments that is no UTF-8', 1007, start(bytes(0xff))),
  fault('a first fragment whose character cannot be finished', 1007, start(bytes(0xf4, 0x90))),
  fault('a character whose last fragment breaks it', 1007, start(bytes(0xe2, 0x82)), middle('a')),
  fault('a character that the next text would finish', 1007, start(bytes(0xce)), last(''), frame(bytes(0xba))),
  fault('a long text whose first bytes are no UTF-8', 1007, frame(Buffer.concat([bytes(0xff), Buffer.alloc(70_000)]))),
  fault(
    'a long text whose last byte is no UTF-8',
    1007,
    frame(Buffer.concat([Buffer.alloc(70_000, 'a'), bytes(0xce)])),
  ),
  fault('the beginning of a long text that is no UTF-8', 1007, frame(Buffer.alloc(70_000, 0xff)).subarray(0, 4000)),
];
