import type net from 'node:net';
import { within } from '../../lib/deadline.ts';
import { turns } from '../../lib/turns.ts';
import {
  checkSize,
  keyEvent,
  pointerEvent,
  RAW,
  reader,
  requestUpdate,
  setEncodings,
  shakeHands,
  type Read,
} from '../display/rfb.ts';

/** Encodings beside those of rfb.ts: the pointer's shape, so that it is not drawn into the picture, and its position. */
const CURSOR = -239;
const POINTER_POSITION = 0x574d5666;
const DESKTOP_SIZE = -223;
/** Pixels are read in bands of about this many bytes, independent of the announced size of the display. */
const BAND = 256 * 1024;
/** TigerVNC ends a connection for which it would have to keep more than 32 MiB. Larger pictures are requested in parts. */
const MOST_SENT = 3840 * 2160 * 4;
/** The deadline for the display's answer. It answers within a frame, unless its machine is very busy. */
const PATIENCE_MS = 10_000;

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Four bytes per pixel: blue, green, red, unused. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Buffer;
}

/** A connection to a session's display (RFB): sends pointer and key events, and reads pictures. */
export interface DisplayClient {
  readonly size: { readonly width: number; readonly height: number };
  /** The position of the pointer, whichever client moved it. */
  readonly pointer: { readonly x: number; readonly y: number };
  readonly closed: boolean;
  /** Both resolve when the display takes the next event. */
  point(buttons: number, x: number, y: number): Promise<void>;
  key(keysym: number, down: boolean): Promise<void>;
  /** The current picture; the whole screen without a region. */
  capture(region?: Rectangle): Promise<Picture>;
  /** Resolves when the display has processed all earlier events. */
  settled(): Promise<void>;
  /** Whether pictures show the pointer. */
  showPointer(shown: boolean): void;
  /** From now on `onChange` is called after each change of `picture`, until the client is closed. The picture stays the same until it resolves. */
  follow(onChange: (picture: Picture) => Promise<void>): void;
  /** Requests the next change; repeated requests get one answer. */
  next(): void;
  close(): void;
}

export async function connectDisplay(
  connect: () => net.Socket,
  onClose: () => void = () => {},
): Promise<DisplayClient> {
  const socket = connect();
  const read = reader(socket);
  let closed = false;
  /** The capture in progress. */
  let wanted: { region: Rectangle; pixels: Buffer; left: number; done: () => void; failed: () => void } | undefined;
  socket.once('close', () => {
    closed = true;
    wanted?.failed();
    onClose();
  });
  let { width, height } = await within(PATIENCE_MS, 'The display', shakeHands(socket, read)).catch((error: Error) => {
    socket.destroy();
    throw error;
  });
  let pointer = { x: 0, y: 0 };
  let followed: Picture | undefined;
  let onChange: ((picture: Picture) => Promise<void>) | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const send = eventSender(socket);

  socket.write(PIXELS);
  showPointer(true);
  listen(read).catch(() => socket.destroy());

  function showPointer(shown: boolean) {
    // Not the extended form of the size: with that, the display sends its size in answer to every request, before the picture.
    socket.write(setEncodings(RAW, DESKTOP_SIZE, POINTER_POSITION, ...(shown ? [] : [CURSOR])));
  }

  async function listen(read: Read): Promise<never> {
    for (;;) {
      const type = (await read(1)).readUInt8();
      if (type === 2) continue; // the bell
      if (type === 3)
        await read.skip(Math.abs((await read(7)).readInt32BE(3))); // the clipboard of another client
      else if (type === 0) await update(read);
      else throw new Error(`The display sent an unexpected message of type ${type}.`);
    }
  }

  async function update(read: Read): Promise<void> {
    let changed = false;
    for (let rectangles = (await read(3)).readUInt16BE(1); rectangles > 0; rectangles--) {
      const head = await read(12);
      const [x, y, w, h] = [head.readUInt16BE(0), head.readUInt16BE(2), head.readUInt16BE(4), head.readUInt16BE(6)];
      switch (head.readInt32BE(8)) {
        case RAW:
          for (const part of bands({ x, y, width: w, height: h }, BAND)) {
            const pixels = await read(w * part.height * 4);
            if (wanted) wanted.left -= copy(pixels, part, wanted.pixels, wanted.region);
            if (followed) copy(pixels, part, followed.pixels, { x: 0, y: 0, ...followed });
          }
          changed = true;
          break;
        case CURSOR:
          await read.skip(w * h * 4 + Math.ceil(w / 8) * h);
          break;
        case POINTER_POSITION:
          pointer = { x, y };
          break;
        case DESKTOP_SIZE:
          resized(w, h);
          break;
        default:
          throw new Error('The display sent an encoding that was not requested.');
      }
    }
    // Size and pointer updates come alone and use up the request without answering it, so the rest is requested again.
    if (wanted && wanted.left > 0) request('changes', wanted.region);
    else wanted?.done();
    if (!followed) return;
    if (changed) await onChange?.(followed);
    else request('changes', { x: 0, y: 0, width, height });
  }

  function resized(w: number, h: number) {
    if (w === width && h === height) return;
    checkSize(w, h);
    [width, height] = [w, h];
    if (followed) follow();
  }

  function follow() {
    followed = { width, height, pixels: Buffer.alloc(width * height * 4) };
    request('all', { x: 0, y: 0, width, height });
  }

  function request(what: 'all' | 'changes', region: Rectangle) {
    if (!closed) socket.write(requestUpdate(what, region));
  }

  function capture(region: Rectangle = { x: 0, y: 0, width, height }): Promise<Picture> {
    const captured = turn.then(async () => {
      const { width: w, height: h } = region;
      const pixels = Buffer.alloc(w * h * 4);
      for (const part of bands(region, MOST_SENT)) await fill(pixels.subarray((part.y - region.y) * w * 4), part);
      return { width: w, height: h, pixels };
    });
    turn = captured.catch(() => {});
    return captured;
  }

  async function fill(pixels: Buffer, region: Rectangle): Promise<void> {
    const filled = new Promise<void>((done, reject) => {
      const failed = () => reject(new Error('The display went away.'));
      if (closed) return failed();
      wanted = { region, pixels, left: region.width * region.height, done, failed };
      request('all', region);
    });
    await within(PATIENCE_MS, 'The display', filled).finally(() => (wanted = undefined));
  }

  return {
    get size() {
      return { width, height };
    },
    get pointer() {
      return pointer;
    },
    get closed() {
      return closed;
    },
    capture,
    showPointer,
    settled: async () => void (await capture({ x: 0, y: 0, width: 1, height: 1 })),

    point(buttons, x, y) {
      pointer = { x, y };
      return send(pointerEvent(buttons, x, y));
    },

    key: (keysym, down) => send(keyEvent(keysym, down)),

    follow(listener) {
      onChange = listener;
      follow();
    },
    next: () => request('changes', { x: 0, y: 0, width, height }),

    close: () => void socket.destroy(),
  };
}

/**
 * One request has up to ten million events. If the display does not keep up, they must not wait in the memory of this process; if it does,
 * the sender still has to yield to the event loop.
 */
function eventSender(socket: net.Socket): (event: Buffer) => Promise<void> {
  const turn = turns();
  let drained: Promise<void> | undefined;

  const untilDrained = () =>
    new Promise<void>((resolve) => {
      const done = () => {
        socket.off('drain', done).off('close', done);
        drained = undefined;
        resolve();
      };
      socket.once('drain', done).once('close', done);
    });

  return async (event) => {
    if (!socket.write(event) && !socket.closed) await within(PATIENCE_MS, 'The display', (drained ??= untilDrained()));
    await turn();
  };
}

/** A rectangle in parts of at most so many bytes, or one row. */
function* bands({ x, y, width, height }: Rectangle, bytes: number): Generator<Rectangle> {
  const rows = Math.max(1, Math.floor(bytes / (width * 4)));
  for (let row = 0; row < height && width > 0; row += rows) {
    yield { x, y: y + row, width, height: Math.min(rows, height - row) };
  }
}

/** Copies the part of `from` that lies in `to`; answers the number of pixels. */
function copy(pixels: Buffer, from: Rectangle, into: Buffer, to: Rectangle): number {
  const left = Math.max(from.x, to.x);
  const right = Math.min(from.x + from.width, to.x + to.width);
  const top = Math.max(from.y, to.y);
  const bottom = Math.min(from.y + from.height, to.y + to.height);
  if (left >= right || top >= bottom) return 0;
  for (let y = top; y < bottom; y++) {
    const start = ((y - from.y) * from.width + left - from.x) * 4;
    pixels.copy(into, ((y - to.y) * to.width + left - to.x) * 4, start, start + (right - left) * 4);
  }
  return (right - left) * (bottom - top);
}

/** SetPixelFormat: 32 bits, 24 of them colour, little-endian, true colour, red at bit 16, green at 8, blue at 0. */
const PIXELS = Buffer.from([0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]);
