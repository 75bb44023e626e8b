/** The picture of the tab: drawn as it arrives, scaled to the window, and the size of the window is sent to the session. */
import type { Box } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import type { Parts } from './parts.ts';
import { zoomer } from './zoom.ts';

export type Screen = ReturnType<typeof picture>;

/** How long the window keeps its size before it is sent to the session. */
const RESIZED_MS = 200;

/** `onDrawn` is called for each picture. */
export function picture({ send, listen, signal, readOnly, onDrawn }: Parts & { onDrawn(): void }) {
  const canvas = $('screen');
  const context = canvas.getContext('2d', { alpha: false })!; // null only if the canvas has another context
  let viewport = { width: 1, height: 1 };
  let drawing = Promise.resolve();
  const zoom = zoomer({
    listen,
    content: canvas,
    grow: fit,
    actualScale: () => 1 / fitting(),
    settled: tellSize, // an enlarged picture needs more pixels
    oneFingerMoves: readOnly,
  });

  async function draw(jpeg: ArrayBuffer): Promise<void> {
    try {
      const bitmap = await createImageBitmap(new Blob([jpeg], { type: 'image/jpeg' }));
      if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
        canvas.width = bitmap.width;
        canvas.height = bitmap.height;
      }
      context.drawImage(bitmap, 0, 0);
      bitmap.close();
      canvas.hidden = false;
      onDrawn();
    } finally {
      send({ type: 'ack' });
    }
  }

  /** Applies the size to the following pictures, not to those that still wait to be drawn. */
  async function inTurn(before: Promise<void>, size: typeof viewport): Promise<void> {
    await before;
    viewport = size;
    zoom.refit();
  }

  /** As large as fits, but never larger than the page. */
  function fitting(): number {
    const { clientWidth, clientHeight } = $('stage');
    return Math.min(1, clientWidth / viewport.width, clientHeight / viewport.height) || 1;
  }

  function fit(zoomed: number): void {
    const scale = fitting() * zoomed;
    canvas.style.width = `${Math.round(viewport.width * scale)}px`;
    canvas.style.height = `${Math.round(viewport.height * scale)}px`;
  }

  function tellSize(): void {
    const { clientWidth, clientHeight } = $('stage');
    const pixels = (length: number) =>
      Math.max(1, Math.min(16_384, Math.round(length * devicePixelRatio * zoom.scale)));
    send({ type: 'size', width: pixels(clientWidth), height: pixels(clientHeight) });
  }

  let sizeTimer: number | undefined;
  const observer = new ResizeObserver(() => {
    zoom.refit();
    clearTimeout(sizeTimer);
    sizeTimer = setTimeout(tellSize, RESIZED_MS);
  });
  observer.observe($('stage'));
  signal.addEventListener('abort', () => observer.disconnect());

  return {
    canvas,
    zoom,
    tellSize,
    get viewport() {
      return viewport;
    },
    show: (jpeg: ArrayBuffer) => void (drawing = drawing.then(() => draw(jpeg))),
    resize: (size: typeof viewport) => void (drawing = inTurn(drawing, size)),

    /** Where in the stage a box of the page is. */
    place({ x, y, width, height }: Box) {
      const box = canvas.getBoundingClientRect();
      const stage = $('stage').getBoundingClientRect();
      const scale = box.width / viewport.width;
      const [left, top] = [box.left - stage.left + x * scale, box.top - stage.top + y * scale];
      return { left, top, width: width * scale, height: height * scale };
    },

    /** Where in the page an event happened. */
    at({ clientX, clientY }: { clientX: number; clientY: number }) {
      const box = canvas.getBoundingClientRect();
      const x = ((clientX - box.left) / box.width) * viewport.width;
      const y = ((clientY - box.top) / box.height) * viewport.height;
      return { x: Math.round(x * 10) / 10, y: Math.round(y * 10) / 10 };
    },
  };
}
