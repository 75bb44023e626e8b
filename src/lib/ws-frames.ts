/** The opcodes of RFC 6455, 5.2. Those from 8 on are control frames. */
export const CONTINUATION = 0;
export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** Maximum payload of a control frame. */
export const MOST_CONTROL = 125;

/** Messages up to this size are copied behind their frame's head: cheaper than one more entry in a writev. */
const JOIN_BELOW = 16 * 1024;

/** Appends a frame to `out`, and returns its number of bytes. */
export function appendFrame(opcode: number, pieces: readonly Buffer[], out: Buffer[]): number {
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

/** The payload of a close frame: the code, and as much of the reason as fits, in whole characters. */
export function closePayload(code: number, reason: string, suffix = ''): Buffer {
  const text = Buffer.from(reason);
  let end = Math.min(text.length, MOST_CONTROL - 2 - Buffer.byteLength(suffix));
  if (end < text.length) while ((text[end]! & 0xc0) === 0x80) end -= 1; // back to the start of a character
  return Buffer.concat([Buffer.from([code >> 8, code & 0xff]), text.subarray(0, end), Buffer.from(suffix)]);
}

/** The codes that are valid in a close frame (7.4): 1004 to 1006 and 1015 never are, 1016 to 2999 have no meaning yet. */
export function isCloseCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);
}

/** Unmasks a client's payload, four bytes at a time where it is large. `mask` is read little-endian. */
export function unmask(payload: Buffer, mask: number): void {
  const { length } = payload;
  let at = 0;
  if (length > 64) {
    while (((payload.byteOffset + at) & 3) !== 0) {
      payload[at]! ^= mask >>> ((at & 3) * 8);
      at += 1;
    }
    const words = new Int32Array(payload.buffer, payload.byteOffset + at, (length - at) >> 2);
    const turned = turnMask(mask, at);
    for (let word = 0; word < words.length; word++) words[word]! ^= turned;
    at += words.length * 4;
  }
  for (; at < length; at++) payload[at]! ^= mask >>> ((at & 3) * 8);
}

/** The mask, rotated for the bytes of a payload from `offset` on. */
export function turnMask(mask: number, offset: number): number {
  const bits = (offset & 3) * 8;
  return bits === 0 ? mask : (mask >>> bits) | (mask << (32 - bits));
}
