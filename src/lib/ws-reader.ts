import { isUtf8 } from 'node:buffer';
import type { Pace } from './turns.ts';
import { wholeUtf8 } from './utf8.ts';
import {
  BINARY,
  CLOSE,
  CONTINUATION,
  isCloseCode,
  MOST_CONTROL,
  PING,
  PONG,
  TEXT,
  turnMask,
  unmask,
} from './ws-frames.ts';

/** Receives what a client's frames contain. Nothing is called after `close` or `fault`. */
interface FrameListener {
  message(data: Buffer, binary: boolean): void;
  ping(payload: Buffer): void;
  /** `code` is undefined where the frame has none. */
  close(code: number | undefined): void;
  /** The far end violates the protocol: nothing that it sends from here on can be understood. */
  fault(code: number, reason: string): void;
  /** There is no room yet for what arrives, or its turn is over. */
  pause(): void;
  resume(): void;
}

/** Called before memory is taken for a message that does not arrive in one piece. */
export interface Room {
  /** False: refused. A promise: not yet, and the connection is not read until it resolves; false then means refused. */
  take(bytes: number): boolean | Promise<boolean>;
  /** The message was delivered or dropped. */
  give(bytes: number): void;
}

export interface ReaderOptions {
  maxPayload: number;
  room?: Room | undefined;
  /** Without it, a whole chunk is parsed at once. */
  pace?: Pace | undefined;
}

/** Allocated at first for a message that announces more; then the size doubles as data arrives. */
const FIRST_BYTES = 1024 * 1024;

/** The message being assembled: one frame that arrives in several chunks, or several frames. */
interface Assembly {
  opcode: number;
  bytes: Buffer;
  filled: number;
  checked: number;
  reserved: number;
}

const NOTHING = Buffer.alloc(0);
const NO_UTF8 = 'A text message has to be UTF-8.';
const NO_ROOM = 'There is no room for so large a message now.';

/**
 * Parses what a client sends by the rules of RFC 6455 for servers: bytes in, messages out, without a socket. Each rule is
 * checked at the first byte that can break it: a text that is not UTF-8 fails at the wrong byte, not after 200 MB have
 * arrived.
 */
export class FrameReader {
  /** Bytes that are not parsed yet: an incomplete head or control frame, or data that there is no room for. */
  #rest: Buffer | undefined;
  /** The data frame with the arriving payload. */
  #frame: { final: boolean; mask: number; left: number; offset: number } | undefined;
  #message: Assembly | undefined;
  #waiting = false;
  #over = false;
  readonly #listener: FrameListener;
  readonly #maxPayload: number;
  readonly #room: Room | undefined;
  readonly #pace: Pace | undefined;

  constructor(listener: FrameListener, { maxPayload, room, pace }: ReaderOptions) {
    this.#listener = listener;
    this.#maxPayload = maxPayload;
    this.#room = room;
    this.#pace = pace;
  }

  take(chunk: Buffer): void {
    if (this.#over) return;
    const data = !this.#rest ? chunk : chunk.length === 0 ? this.#rest : Buffer.concat([this.#rest, chunk]);
    this.#rest = undefined;
    if (this.#waiting) {
      this.#rest = data;
      return;
    }
    let at = 0;
    while (at < data.length) {
      if (this.#pace?.isOver()) {
        this.#rest = data.subarray(at);
        return void this.#yield(this.#pace);
      }
      const next = this.#frame ? this.#fill(data, at) : this.#begin(data, at);
      if (this.#over) return;
      if (next === undefined) {
        this.#rest = data.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** Parses a frame's head at `at`, and the frame if all of it is there. Returns where to continue; undefined when more bytes are needed. */
  #begin(data: Buffer, at: number): number | undefined {
    const first = data[at]!;
    const opcode = first & 0x0f;
    const final = first >= 0x80;
    const wrong = this.#wrongStart(opcode, final, (first & 0x70) !== 0);
    if (wrong !== undefined) return this.#fault(1002, wrong);
    if (at + 1 === data.length) return undefined;
    const second = data[at + 1]!;
    if (second < 0x80) return this.#fault(1002, 'A client has to mask its frames.');
    const short = second & 0x7f;
    if (opcode >= CLOSE && short > MOST_CONTROL)
      return this.#fault(1002, `A control frame has at most ${MOST_CONTROL} bytes.`);
    const headLength = short < 126 ? 6 : short === 126 ? 8 : 14;
    const payloadAt = at + headLength;
    if (data.length < payloadAt) return undefined;
    let length = short;
    if (short === 126) {
      length = data.readUInt16BE(at + 2);
      if (length < 126) return this.#fault(1002, 'A length has to be written in as few bytes as it takes.');
    } else if (short === 127) {
      const high = data.readUInt32BE(at + 2);
      length = high * 2 ** 32 + data.readUInt32BE(at + 6);
      if (high >= 2 ** 31) return this.#fault(1002, 'The highest bit of a length has to be 0.');
      if (length < 65_536) return this.#fault(1002, 'A length has to be written in as few bytes as it takes.');
    }
    const mask = data.readInt32LE(payloadAt - 4);
    const end = payloadAt + length;

    if (opcode >= CLOSE) {
      if (data.length < end) return undefined;
      const payload = data.subarray(payloadAt, end);
      unmask(payload, mask);
      this.#control(opcode, payload);
      return end;
    }
    if (length + (this.#message?.filled ?? 0) > this.#maxPayload)
      return this.#fault(1009, `A message may have ${this.#maxPayload} bytes.`);
    if (final && !this.#message && end <= data.length) {
      const payload = data.subarray(payloadAt, end);
      unmask(payload, mask);
      if (opcode === TEXT && !isUtf8(payload)) return this.#fault(1007, NO_UTF8);
      this.#listener.message(payload, opcode === BINARY);
      return end;
    }
    this.#message ??= { opcode, bytes: NOTHING, filled: 0, checked: 0, reserved: 0 };
    this.#frame = { final, mask, left: length, offset: 0 };
    return length === 0 ? this.#fill(data, payloadAt) : payloadAt;
  }

  #wrongStart(opcode: number, final: boolean, reserved: boolean): string | undefined {
    if (reserved) return 'A reserved bit is set, and no extension was agreed on.';
    if (opcode === TEXT || opcode === BINARY)
      return this.#message ? 'A message begins within another that is not finished.' : undefined;
    if (opcode === CONTINUATION) return this.#message ? undefined : 'There is no message to be continued.';
    if (opcode !== CLOSE && opcode !== PING && opcode !== PONG) return `There is no opcode ${opcode}.`;
    return final ? undefined : 'A control frame comes in one piece.';
  }

  /** Copies the available payload of a data frame into the message. Undefined: there is no room yet. */
  #fill(data: Buffer, at: number): number | undefined {
    const { left, mask, offset, final } = this.#frame!;
    const whole = this.#message!;
    const count = Math.min(left, data.length - at);
    if (!this.#makeRoom(whole, count)) return undefined;
    const end = at + count;
    data.copy(whole.bytes, whole.filled, at, end);
    unmask(whole.bytes.subarray(whole.filled, whole.filled + count), turnMask(mask, offset));
    whole.filled += count;
    this.#frame!.left -= count;
    this.#frame!.offset += count;
    const done = this.#frame!.left === 0;
    if (whole.opcode === TEXT && !this.#isTextSoFar(whole, done && final)) return this.#fault(1007, NO_UTF8);
    if (!done) return end;
    this.#frame = undefined;
    if (!final) return end;
    this.#drop();
    this.#listener.message(whole.bytes.subarray(0, whole.filled), whole.opcode === BINARY);
    return end;
  }

  #isTextSoFar(whole: Assembly, finished: boolean): boolean {
    const good = wholeUtf8(whole.bytes.subarray(whole.checked, whole.filled));
    if (good === undefined) return false;
    whole.checked += good;
    return !finished || whole.checked === whole.filled;
  }

  /**
   * An announced length is only a claim: memory is allocated for at most twice what has arrived, so that filling it costs
   * the far end as much as it costs the service.
   */
  #makeRoom(whole: Assembly, count: number): boolean {
    const needed = whole.filled + count;
    if (needed <= whole.bytes.length) return true;
    const announced = whole.filled + this.#frame!.left;
    const doubled = Math.min(2 * whole.bytes.length, this.#maxPayload);
    const size = Math.max(needed, doubled, Math.min(announced, FIRST_BYTES));
    // The last frame determines the length of the message.
    const exact = this.#frame!.final ? Math.min(size, announced) : size;
    const more = exact - whole.bytes.length;
    const may = this.#room?.take(more) ?? true;
    if (may === true) {
      this.#grow(whole, exact);
      return true;
    }
    if (may === false) this.#fault(1009, NO_ROOM);
    else void this.#wait(may, whole, exact);
    return false;
  }

  #grow(whole: Assembly, size: number): void {
    whole.reserved += size - whole.bytes.length;
    const larger = Buffer.allocUnsafeSlow(size);
    whole.bytes.copy(larger, 0, 0, whole.filled);
    whole.bytes = larger;
  }

  async #wait(granted: Promise<boolean>, whole: Assembly, size: number): Promise<void> {
    this.#hold();
    const may = await granted.catch(() => false);
    if (this.#over) {
      if (may) this.#room?.give(size - whole.bytes.length);
      return;
    }
    if (may) this.#grow(whole, size);
    else this.#fault(1009, NO_ROOM);
    this.#goOn();
  }

  async #yield(pace: Pace): Promise<void> {
    this.#hold();
    await pace.next();
    if (!this.#over) this.#goOn();
  }

  #hold(): void {
    this.#waiting = true;
    this.#listener.pause();
  }

  #goOn(): void {
    this.#waiting = false;
    this.take(NOTHING);
    if (!this.#waiting) this.#listener.resume();
  }

  #control(opcode: number, payload: Buffer): void {
    if (opcode === PING) return this.#listener.ping(payload);
    if (opcode === PONG) return;
    const code = payload.length === 0 ? undefined : payload.length === 1 ? 0 : payload.readUInt16BE();
    if (code !== undefined && !isCloseCode(code)) this.#fault(1002, 'There is no such code to close with.');
    else if (!isUtf8(payload.subarray(2))) this.#fault(1007, 'The reason to close is no UTF-8.');
    else {
      this.end();
      this.#listener.close(code);
    }
  }

  #fault(code: number, reason: string): undefined {
    this.end();
    this.#listener.fault(code, reason);
  }

  #drop(): void {
    const reserved = this.#message?.reserved ?? 0;
    this.#message = undefined;
    if (reserved > 0) this.#room?.give(reserved);
  }

  /** Stops reading and drops the data read so far. */
  end(): void {
    this.#over = true;
    this.#rest = this.#frame = undefined;
    this.#drop();
  }
}
