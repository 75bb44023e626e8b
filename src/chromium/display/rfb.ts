import type net from 'node:net';
import { addAbortSignal } from 'node:stream';
import { turns } from '../../lib/turns.ts';
import { MOST_PIXELS } from './viewport.ts';

/** The part of the RFB protocol (RFC 6143, and the community's ExtendedDesktopSize) that is needed to resize a display. */

export const RAW = 0;
const EXTENDED_DESKTOP_SIZE = -308;
const BY_THIS_CLIENT = 1;
/** Most bytes of one read. Pictures are read in bands. */
const MOST_WHOLE = 1024 * 1024;
/** Most bytes of one skip: a picture of the largest screen, and more than any clipboard. */
const MOST_SKIPPED = 512 * 1024 * 1024;
/** Unread bytes at which the socket is paused. */
const FULL = 1024 * 1024;
const REFUSALS = ['', 'resizing is prohibited', 'out of resources', 'invalid screen layout'];

/** Sets the size of a display. Viewers stay connected and are notified. Rejects if the display refuses. */
export async function resizeDisplay(
  connect: () => net.Socket,
  { width, height }: { width: number; height: number },
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const socket = addAbortSignal(signal, connect());
  try {
    const read = reader(socket);
    const { bytesPerPixel } = await shakeHands(socket, read);
    socket.write(setEncodings(RAW, EXTENDED_DESKTOP_SIZE));

    // The first update has the present layout with the screen's id; the next one says whether the new size was accepted.
    socket.write(requestUpdate('all'));
    const { screens } = await nextLayout(read, bytesPerPixel, () => true);
    socket.write(setDesktopSize(width, height, screens[0] ?? 0));
    socket.write(requestUpdate('changes'));
    const { status } = await nextLayout(read, bytesPerPixel, ({ by }) => by === BY_THIS_CLIENT);
    if (status !== 0)
      throw new Error(`The display refused ${width}x${height}: ${REFUSALS[status] ?? `status ${status}`}.`);
  } finally {
    socket.destroy();
  }
}

export interface Read {
  (bytes: number): Promise<Buffer>;
  /** Reads and discards this many bytes. */
  skip(bytes: number): Promise<void>;
}

interface Layout {
  readonly by: number;
  readonly status: number;
  readonly screens: readonly number[];
}

export async function shakeHands(
  socket: net.Socket,
  read: Read,
): Promise<{ bytesPerPixel: number; width: number; height: number }> {
  await read(12); // its version; every server of the last twenty years speaks 3.8
  socket.write('RFB 003.008\n');
  const offered = await read((await read(1)).readUInt8()); // a byte, so 255 at most
  if (!offered.includes(1)) throw new Error('The display asks for a password.');
  socket.write(Buffer.from([1]));
  if ((await read(4)).readUInt32BE() !== 0) throw new Error('The display refused the connection.');
  socket.write(Buffer.from([1])); // shared: other viewers stay
  const init = await read(24);
  await read.skip(init.readUInt32BE(20)); // its name
  const [width, height, bits] = [init.readUInt16BE(0), init.readUInt16BE(2), init.readUInt8(4)];
  checkSize(width, height);
  if (![8, 16, 32].includes(bits))
    throw new Error(`The display uses ${bits} bits for a pixel; 8, 16 and 32 are supported.`);
  return { bytesPerPixel: bits / 8, width, height };
}

/** Call it before memory is allocated for a picture of the screen. */
export function checkSize(width: number, height: number): void {
  // A display starts with one row and one column more than its viewport.
  if (width === 0 || height === 0 || (width - 1) * (height - 1) > MOST_PIXELS)
    throw new Error(`The display reports a size of ${width} by ${height}, which is not valid.`);
}

/** Reads server messages until the wanted layout comes. */
async function nextLayout(read: Read, bytesPerPixel: number, wanted: (layout: Layout) => boolean): Promise<Layout> {
  for (;;) {
    const type = (await read(1)).readUInt8();
    if (type === 2) continue; // the bell
    if (type === 3) {
      const length = (await read(7)).readInt32BE(3); // the clipboard; negative in the extended form
      await read.skip(Math.abs(length));
      continue;
    }
    if (type !== 0) throw new Error(`The display sent an unexpected message of type ${type}.`);
    let found: Layout | undefined;
    for (let rectangles = (await read(3)).readUInt16BE(1); rectangles > 0; rectangles--) {
      const head = await read(12);
      const encoding = head.readInt32BE(8);
      if (encoding === EXTENDED_DESKTOP_SIZE) {
        const count = (await read(4)).readUInt8();
        const body = await read(16 * count);
        const screens = Array.from({ length: count }, (_, i) => body.readUInt32BE(16 * i));
        const layout = { by: head.readUInt16BE(0), status: head.readUInt16BE(2), screens };
        if (wanted(layout)) found = layout;
      } else if (encoding === RAW) {
        await read.skip(head.readUInt16BE(4) * head.readUInt16BE(6) * bytesPerPixel);
      } else {
        throw new Error(`The display sent an encoding that was not requested (${encoding}).`);
      }
    }
    if (found) return found;
  }
}

export function setEncodings(...encodings: number[]): Buffer {
  const message = Buffer.alloc(4 + 4 * encodings.length);
  message.writeUInt8(2, 0);
  message.writeUInt16BE(encodings.length, 2);
  encodings.forEach((encoding, i) => message.writeInt32BE(encoding, 4 + 4 * i));
  return message;
}

/** One pixel is enough where only events matter, not the picture. The layout is sent only in answer to 'all'. */
const ONE_PIXEL = { x: 0, y: 0, width: 1, height: 1 };

export function requestUpdate(what: 'all' | 'changes', { x, y, width, height } = ONE_PIXEL): Buffer {
  const message = Buffer.from([3, what === 'all' ? 0 : 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  [x, y, width, height].forEach((value, i) => message.writeUInt16BE(value, 2 + 2 * i));
  return message;
}

export function pointerEvent(buttons: number, x: number, y: number): Buffer {
  const message = Buffer.from([5, buttons, 0, 0, 0, 0]);
  message.writeUInt16BE(x, 2);
  message.writeUInt16BE(y, 4);
  return message;
}

export function keyEvent(keysym: number, down: boolean): Buffer {
  const message = Buffer.from([4, down ? 1 : 0, 0, 0, 0, 0, 0, 0]);
  message.writeUInt32BE(keysym, 4);
  return message;
}

function setDesktopSize(width: number, height: number, screen: number): Buffer {
  const message = Buffer.alloc(24);
  message.writeUInt8(251, 0);
  message.writeUInt16BE(width, 2);
  message.writeUInt16BE(height, 4);
  message.writeUInt8(1, 6);
  message.writeUInt32BE(screen, 8);
  message.writeUInt16BE(width, 16);
  message.writeUInt16BE(height, 18);
  return message;
}

/**
 * Reads exactly the requested number of bytes. Rejects when the socket ends or fails, and when the length, which the display
 * announces, is above the limit. Unread bytes stay in the socket. Reads yield to the event loop: a display that was taken over can send a
 * million messages of a few bytes at once.
 */
export function reader(socket: net.Socket): Read {
  let parts: Buffer[] = [];
  let unread = 0;
  let failure: Error | undefined;
  let wake: (() => void) | undefined;
  const turn = turns();
  socket.on('data', (part) => {
    parts.push(part);
    unread += part.length;
    if (unread > FULL) socket.pause();
    wake?.();
  });
  socket.on('error', (error) => ((failure = error), wake?.()));
  socket.on('close', () => ((failure ??= new Error('The display hung up.')), wake?.()));

  async function more(): Promise<void> {
    if (failure) throw failure;
    socket.resume();
    await new Promise<void>((resolve) => (wake = resolve));
  }

  function take(bytes: number): Buffer {
    // Parts are concatenated once, when all of them have arrived.
    const whole = parts.length === 1 || parts[0]!.length >= bytes ? parts[0]! : Buffer.concat(parts);
    if (whole !== parts[0]) parts = [whole];
    unread -= bytes;
    if (whole.length === bytes) parts.shift();
    else parts[0] = whole.subarray(bytes);
    return whole.subarray(0, bytes);
  }

  async function read(bytes: number): Promise<Buffer> {
    if (bytes > MOST_WHOLE) throw new Error(`The display announced ${bytes} bytes, which is too much.`);
    await turn();
    if (bytes === 0) return Buffer.alloc(0);
    while (unread < bytes) await more();
    return take(bytes);
  }

  return Object.assign(read, {
    async skip(bytes: number) {
      if (bytes > MOST_SKIPPED) throw new Error(`The display announced ${bytes} bytes, which is too much.`);
      for (let left = bytes; left > 0;) {
        await turn();
        while (unread === 0) await more();
        left -= take(Math.min(left, parts[0]!.length)).length;
      }
    },
  });
}
