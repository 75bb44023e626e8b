import { isScreencastFrame, type ScreencastFrame } from '../cdp/shapes.ts';
import type { Shown, Viewer } from './viewer.ts';

const JPEG_QUALITY = 80;
const MAX_UNDRAWN = 2;
/** A restart forgets the frames before it, so some more may arrive. */
const MOST_UNDRAWN = 20;
/** The limit for a viewer that acknowledges frames without reading them. */
const MAX_UNREAD = 16 * 1024 * 1024;
/** If no picture arrives for this long, one is requested. */
const QUIET_MS = 150;

/**
 * Pictures of the shown tab. A picture is acknowledged to Chromium when the viewer has drawn it, so a slow viewer gets fewer pictures and
 * never older ones, and at most two of them are in memory. A refresh rate is kept by acknowledging no faster than that.
 */
export function viewerPictures(viewer: Viewer, refreshRate: () => number | undefined = () => undefined) {
  const { sink } = viewer;
  let size = { width: 1920, height: 1080 };
  let lastAt = -Infinity;
  viewer.onShown('Page.screencastFrame', isScreencastFrame, frame);

  async function start(tab: Shown): Promise<void> {
    const bounds = { maxWidth: size.width, maxHeight: size.height };
    const picture = {
      format: 'jpeg',
      quality: JPEG_QUALITY,
      everyNthFrame: 1,
      maxFramesInFlight: MAX_UNDRAWN,
    } as const;
    await viewer.send(tab, 'Page.startScreencast', { ...picture, ...bounds }); // its first frame arrives even if the page does not change
  }

  async function restart(tab: Shown): Promise<void> {
    tab.undrawn = [];
    tab.missed = false;
    await viewer.send(tab, 'Page.stopScreencast');
    if (viewer.shown === tab) await start(tab);
  }

  function frame(tab: Shown, { data, metadata, sessionId: number }: ScreencastFrame): void {
    if (sink.bufferedAmount > MAX_UNREAD)
      return viewer.end(1008, 'Dropped: this viewer does not read what it is sent.');
    const { deviceWidth: width, deviceHeight: height } = metadata;
    if (tab.viewport !== `${width}x${height}`) {
      tab.viewport = `${width}x${height}`;
      viewer.tell({ type: 'viewport', width, height });
    }
    if (tab.undrawn.length >= MOST_UNDRAWN)
      return viewer.end(1011, 'The browser sends more pictures than it was asked for.');
    tab.undrawn.push(number);
    if (tab.undrawn.length >= MAX_UNDRAWN) tab.missed = true;
    sink.sendBinary([Buffer.from(data, 'base64')]);
  }

  /** If frames were dropped meanwhile, the viewer may lack the newest picture. */
  function acknowledge(): void {
    const tab = viewer.shown;
    const number = tab?.undrawn.shift();
    if (!tab || number === undefined) return;
    void viewer.send(tab, 'Page.screencastFrameAck', { sessionId: number });
    if (!tab.missed || tab.undrawn.length > 0) return;
    tab.missed = false;
    viewer.later(QUIET_MS, () => {
      if (viewer.shown === tab && tab.undrawn.length === 0 && !tab.missed) void restart(tab);
    });
  }

  return {
    start,

    /** The viewer has drawn a frame. */
    drawn(): void {
      const rate = refreshRate();
      const now = performance.now();
      lastAt = Math.max(now, rate === undefined ? now : lastAt + 1000 / rate);
      if (lastAt > now) viewer.later(lastAt - now, acknowledge);
      else acknowledge();
    },

    resize({ width, height }: { width: number; height: number }): void {
      const next = { width: clamp(width, 200, 3840), height: clamp(height, 150, 2160) };
      if (next.width === size.width && next.height === size.height) return;
      size = next;
      if (viewer.shown?.sessionId !== undefined) void restart(viewer.shown);
    },
  };
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
