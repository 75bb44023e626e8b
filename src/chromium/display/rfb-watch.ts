/**
 * Parses the client's side of RFB (RFC 6143 and the extensions of noVNC and TigerVNC) as far as needed to remove the messages
 * that send keys, pointer events or clipboard text, or resize.
 */

/** A message's length in bytes, given its first bytes; undefined while those are too few. Infinity for a message that is too long. */
type Length = (start: Buffer) => number | undefined;

interface Kind {
  readonly length: Length;
  readonly passes: boolean;
}

const fixed = (bytes: number): Length => {
  return () => bytes;
};

const CUT_TEXT = 6;
const kinds = new Map<number, Kind>([
  [0, { length: fixed(20), passes: true }], // SetPixelFormat
  [2, { length: encodingsLength, passes: true }], // SetEncodings
  [3, { length: fixed(10), passes: true }], // FramebufferUpdateRequest
  [4, { length: fixed(8), passes: false }], // KeyEvent
  [5, { length: fixed(6), passes: false }], // PointerEvent
  [CUT_TEXT, { length: cutTextLength, passes: false }], // ClientCutText
  [150, { length: fixed(10), passes: true }], // EnableContinuousUpdates
  [248, { length: (start) => (start.length < 9 ? undefined : 9 + start.readUInt8(8)), passes: true }], // ClientFence
  [250, { length: fixed(4), passes: false }], // xvp: shutdown, reboot, reset
  [251, { length: (start) => (start.length < 8 ? undefined : 8 + 16 * start.readUInt8(6)), passes: false }], // SetDesktopSize
  [255, { length: fixed(12), passes: false }], // QEMU's key event, the only QEMU message that TigerVNC accepts
]);

/**
 * The most encodings of one message; noVNC sends about 20. A message that passes is assembled first, and each of its pieces, which may be a
 * byte, costs a copy of what came before.
 */
const MOST_ENCODINGS = 1000;

function encodingsLength(start: Buffer): number | undefined {
  if (start.length < 4) return undefined;
  const count = start.readUInt16BE(2);
  return count > MOST_ENCODINGS ? Infinity : 4 + 4 * count;
}

/** The clipboard's length is negative in its extended form. */
function cutTextLength(start: Buffer): number | undefined {
  return start.length < 8 ? undefined : 8 + Math.abs(start.readInt32BE(4));
}

/** Encodings that would change the form of later messages, or transfer the clipboard. */
const EXTENDED_MOUSE_BUTTONS = -316;
const EXTENDED_CLIPBOARD = 0xc0a1e5ce | 0;
const QEMU_KEYS = -258;
const refusedEncodings = new Set([EXTENDED_MOUSE_BUTTONS, EXTENDED_CLIPBOARD, QEMU_KEYS]);

const SET_ENCODINGS = 2;
/** The version, security type None (the only one offered), and the shared flag. noVNC sends exactly this. */
const GREETING = Buffer.from('RFB 003.008\n\x01\x01', 'latin1');

/**
 * Takes the client's bytes in pieces of any size and returns those that may pass. After a message that is
 * unknown or too long, it always returns undefined.
 */
export function watchOnly(): (data: Buffer) => Buffer | undefined {
  let unread: Buffer = Buffer.alloc(0);
  /** Remaining bytes of a message that is being dropped. */
  let dropping = 0;
  /** How much of the greeting was read. */
  let greeted = 0;
  let lost = false;

  function greeting(): Buffer | undefined {
    const part = handOn(Math.min(unread.length, GREETING.length - greeted));
    const wanted = GREETING.subarray(greeted, greeted + part.length);
    greeted += part.length;
    return part.equals(wanted) ? part : undefined;
  }

  function handOn(length: number): Buffer {
    const part = unread.subarray(0, length);
    unread = unread.subarray(length);
    return part;
  }

  /** The next message; empty if it may not pass or is incomplete, undefined if its type is unknown or it is too long. */
  function message(): Buffer | undefined {
    const kind = kinds.get(unread.readUInt8(0));
    if (!kind) return undefined;
    const length = kind.length(unread);
    if (length === undefined) return handOn(0);
    if (length === Infinity) return undefined;
    if (kind.passes) return unread.length < length ? handOn(0) : harmless(handOn(length));
    const here = Math.min(length, unread.length);
    handOn(here);
    dropping = length - here;
    return handOn(0);
  }

  return (data) => {
    if (lost) return undefined;
    unread = unread.length === 0 ? data : Buffer.concat([unread, data]);
    const passed: Buffer[] = [];
    for (let before = -1; unread.length > 0 && unread.length !== before;) {
      before = unread.length;
      if (dropping > 0) {
        dropping -= handOn(Math.min(dropping, unread.length)).length;
        continue;
      }
      const part = greeted < GREETING.length ? greeting() : message();
      lost = part === undefined;
      if (!part) return undefined;
      passed.push(part);
    }
    return Buffer.concat(passed);
  };
}

function harmless(message: Buffer): Buffer {
  if (message.readUInt8(0) !== SET_ENCODINGS) return message;
  const encodings = Array.from({ length: message.readUInt16BE(2) }, (_, i) => message.readInt32BE(4 + 4 * i));
  const kept = encodings.filter((encoding) => !refusedEncodings.has(encoding));
  const shorter = Buffer.alloc(4 + 4 * kept.length);
  shorter.writeUInt8(SET_ENCODINGS, 0);
  shorter.writeUInt16BE(kept.length, 2);
  kept.forEach((encoding, i) => shorter.writeInt32BE(encoding, 4 + 4 * i));
  return shorter;
}
