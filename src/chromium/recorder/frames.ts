import type net from 'node:net';
import { turns } from '../../lib/turns.ts';
import { activePage } from '../pages/active-page.ts';
import { isLayout, isScreencastFrame } from '../cdp/shapes.ts';
import { connectDisplay, type Picture } from '../computer/display-client.ts';
import type { Engine } from '../engine.ts';
import { MOST_PIXELS, type Size } from './encoder.ts';

/** Pictures of a session as they change. */
export interface Frames {
  readonly pictures: 'pixels' | 'jpeg';
  readonly size: Size;
  /** After each picture the caller asks for the next one by `next`; it comes when something has changed. */
  start(onPicture: (picture: Buffer) => void, onGone: () => void): void;
  next(): void;
  close(): void;
}

const JPEG_QUALITY = 85;
/** The most bytes of a JPEG of that quality, for each pixel and beside them. Only a browser that was taken over sends more. */
const BYTES_A_PIXEL = 3;
const HEAD_BYTES = 64 * 1024;
const BASE64 = 4 / 3;
/** How often the page in front is looked up. */
const LOOK_MS = 500;

export function framesOf(engine: Engine): Promise<Frames> {
  const { connectDisplay: connect } = engine.browser;
  return connect === undefined ? pageFrames(engine) : displayFrames(connect);
}

/** The display sends no changes of so many pixels. */
export class DisplayTooLarge extends Error {}

/** Headful: the whole display. After a resize its picture is cropped, or padded with black. */
async function displayFrames(connect: () => net.Socket): Promise<Frames> {
  let gone = () => {};
  const display = await connectDisplay(connect, () => gone());
  const { size } = display;
  if (size.width * size.height > MOST_PIXELS) {
    display.close();
    throw new DisplayTooLarge(
      `A display of ${size.width} by ${size.height} is too large to be recorded: ${MOST_PIXELS} pixels (3840 by 2160) are the most.`,
    );
  }
  return {
    pictures: 'pixels',
    size,
    start(onPicture, onGone) {
      gone = onGone;
      // A copy, because the display changes the picture while it is written.
      display.follow(async (picture) => onPicture(await copyOf(picture, size)));
    },
    next: () => display.next(),
    close() {
      gone = () => {};
      display.close();
    },
  };
}

/** The pixels of a picture in this size, copied in pieces: the largest have 32 MiB. */
async function copyOf({ width, height, pixels }: Picture, size: Size): Promise<Buffer> {
  const copy = Buffer.alloc(size.width * size.height * 4);
  const bytes = Math.min(width, size.width) * 4;
  const turn = turns();
  for (let y = 0; y < Math.min(height, size.height); y++) {
    const from = y * width * 4;
    pixels.copy(copy, y * size.width * 4, from, from + bytes);
    await turn();
  }
  return copy;
}

/** The size in which a page is recorded: its own, or the largest one of the same shape. A client may give a page any size. */
export function recordedSize({ width, height }: Size): Size {
  const scale = Math.min(1, Math.sqrt(MOST_PIXELS / (width * height)));
  return { width: Math.floor(width * scale), height: Math.floor(height * scale) };
}

/** Headless: a screencast of the active page. It switches when another page becomes active. */
async function pageFrames({ mux }: Engine): Promise<Frames> {
  const active = activePage(mux);
  const { client } = active;
  const first = await active.find().catch((error: Error) => {
    active.close();
    throw error;
  });
  if (!first) {
    active.close();
    throw new Error('The session has no page that could be recorded.');
  }
  const measured = client.ask(isLayout, 'Page.getLayoutMetrics', {}, first.sessionId);
  const { cssLayoutViewport } = await measured.catch((error: Error) => {
    active.close();
    throw error;
  });
  const size = recordedSize({ width: cssLayoutViewport.clientWidth, height: cssLayoutViewport.clientHeight });
  const mostData = BASE64 * (BYTES_A_PIXEL * size.width * size.height + HEAD_BYTES);
  let shown: string | undefined;
  let looking: NodeJS.Timeout | undefined;
  let unacknowledged: { sessionId: string; number: number } | undefined;
  let over = false;

  async function show(sessionId: string | undefined): Promise<void> {
    if (sessionId === shown || over) return;
    const previous = shown;
    shown = sessionId;
    unacknowledged = undefined;
    if (previous !== undefined) client.send('Page.stopScreencast', {}, previous).catch(() => {});
    if (sessionId === undefined) return;
    const bounds = { maxWidth: size.width, maxHeight: size.height };
    const picture = { format: 'jpeg' as const, quality: JPEG_QUALITY, everyNthFrame: 1, maxFramesInFlight: 1 };
    await client.send('Page.startScreencast', { ...picture, ...bounds }, sessionId);
  }

  async function look(): Promise<void> {
    const page = await active.find().catch(() => undefined);
    await show(page?.sessionId).catch(() => (shown = undefined));
    if (!over) looking = setTimeout(() => void look(), LOOK_MS);
  }

  return {
    pictures: 'jpeg',
    size,
    start(onPicture, onGone) {
      client.on('Page.screencastFrame', isScreencastFrame, ({ data, sessionId: number }, sessionId) => {
        if (over || sessionId === undefined || sessionId !== shown || data.length > mostData) return;
        unacknowledged = { sessionId, number };
        onPicture(Buffer.from(data, 'base64'));
      });
      void client.closed.then(() => over || onGone());
      void look();
    },
    next() {
      if (!unacknowledged) return;
      const { sessionId, number } = unacknowledged;
      unacknowledged = undefined;
      client.send('Page.screencastFrameAck', { sessionId: number }, sessionId).catch(() => {});
    },
    close() {
      over = true;
      clearTimeout(looking);
      active.close();
    },
  };
}
